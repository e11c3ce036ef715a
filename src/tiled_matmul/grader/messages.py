"""All sentences that the grader itself says to a learner, each under its diagnosis.

A key is "diagnosis: detail". Placeholders have names, and `sentence` fills them in. What only one
exercise says about its own mistakes stands with that exercise, and what the microscope says about
any kernel stands with the microscope.

`{at}` is the place in the answer, such as "`a @ b` in line 3"; `{case}` is the product that was
computed, such as "A 9×9 times B 9×9"; `{line}` is a number; `{where}` is " (line 3)" or nothing.
"""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, str] = {
    # error: the answer is not Python, or it raised an exception.
    "error: notebook commands": "More than {most} lines are notebook commands, not Python.",
    "error: syntax": "Line {line} is not Python{quote} ({reason}).",
    "error: not python": "The cell is not Python: {reason}.",
    "error: nested": "it is nested too deeply",
    "error: exception": "{kind}{where}: {message}",
    "error: no entry": "the cell defines no {entry}",
    "error: second reading": "{name} can be read as another function than the one that runs",
    "error: no json": (
        "the result is a {kind}; it should consist of numbers, strings, lists and dictionaries"
    ),
    "error: whole number": "an element of {matrix} is no whole number: no {name} of it",
    "error: annotation": "a type for annotations makes no array",
    "error: not its own": ".{name} of a {kind} is not known here",
    "error: no number": "{name} takes a number, got a {kind}",
    "error: no index": "an index should be a whole number or a slice, got a {kind}",
    "error: no value": "an element of a matrix should be a number, got a {kind}",
    "error: not launched": "the kernel cannot be launched: {reason}.",
    # forbidden: the answer uses something that it may not use.
    "forbidden: length": (
        "The cell has {characters:,} characters; an answer may have at most {most:,}."
    ),
    "forbidden: cell magic": (
        "The cell begins with `%%{magic}`, which does not run it as Python, so it defines nothing. "
        "Remove that line."
    ),
    "forbidden: depth": "The cell nests its expressions more deeply than an answer may.",
    "forbidden: character": (
        "Line {line} contains a character that an answer may not use: {character}."
    ),
    "forbidden: def": "Line {line} begins with `def` but defines no function. Remove it.",
    "forbidden: import": (
        "An answer may not import this: {at}. What it may use is already imported."
    ),
    "forbidden: underscore": "An answer may not use a name that begins with an underscore: {name}.",
    "forbidden: no entry": "The cell should define `def {wanted}`, but it does not.",
    "forbidden: parameters": "The function should be `{wanted}`, but here it is `{actual}`.",
    "forbidden: no decorator": (
        "`{entry}` has to be a kernel: put `@{decorator}` on the line above it."
    ),
    "forbidden: meaning": (
        "{name} already has a meaning and may not be assigned to, in line {line}."
    ),
    "forbidden: decorator option": "An answer may not give its decorator this option: {at}.",
    "forbidden: not called": (
        "{at} names a function but does not call it: it should be `{name}()`."
    ),
    "forbidden: large number": "This number has more than 64 bits: {at}.",
    "forbidden: shape compared": (
        "{at}: a shape is a pair; shape[0] is the number of rows, shape[1] the number of columns."
    ),
    "forbidden: precedence": (
        "{at}: & and | come before < and >. Join comparisons with `and` or `or`; where they are "
        "tiles of Triton's, put each comparison in parentheses."
    ),
    "forbidden: reach": "An answer may only use what this exercise gives it: {at}.",
    "forbidden: called": "{at} is called cuda.{name}.",
    "forbidden: spelled": "{at} is spelled {name}.",
    "forbidden: launch": (
        "{at}: {name} belongs to one launch and may differ in the next one. A kernel reads "
        "`{instead}`."
    ),
    "forbidden: unknown": (
        "{name} is not known here: {at}. You may use {given}, and the names that this function "
        "assigns."
    ),
    "forbidden: other exercise": (
        "{name} is not for this exercise: {at}. You may use {given}, and the names that this "
        "function assigns."
    ),
    "forbidden: not a function": "{name} is not a function: {at}.",
    "forbidden: number called": "{at} calls something that is not a function: it is a number.",
    "forbidden: member called": "{at} calls something that is not a function: {meant}.",
    "forbidden: shape is a pair": (
        "a shape is a pair of numbers, and shape[0] is the number of rows"
    ),
    "forbidden: dtype": "a zero of an array's type is c.dtype.type(0)",
    "forbidden: size": "size is a number",
    "forbidden: ndim": "ndim is a number",
    "forbidden: two numbers": (
        "{at}: the shape is a pair with parentheses of its own, as in {name}((2, 3), a.dtype)."
    ),
    "forbidden: python type": (
        "{at}: instead of {name}, write np.int32, np.float32 or an array's type, as in a.dtype."
    ),
    # forbidden, with a name near the one that was meant.
    "forbidden: meant": "{at}: {meant}.",
    "forbidden: barrier": "the barrier is called cuda.syncthreads()",
    "forbidden: synchronize": "this is for the host; a block's barrier is cuda.syncthreads()",
    "forbidden: shared array": "it is called cuda.shared.array",
    "forbidden: local array": "it is called cuda.local.array",
    "forbidden: type": (
        "a type is called np.int32 or np.float32, or taken from an array, as in a.dtype"
    ),
    "forbidden: warp barrier": (
        "it waits for one warp; the barrier of a block is cuda.syncthreads()"
    ),
    "forbidden: fence": (
        "a fence makes no thread wait; the barrier of a block is cuda.syncthreads()"
    ),
    "forbidden: atomic": "nothing has to be atomic where one thread owns each element of C",
    "forbidden: axes": "{at}: it has an x and a y: {name}.x, {name}.y.",
    "forbidden: array": (
        "an array of a block is made by cuda.shared.array, one of a thread by cuda.local.array"
    ),
    # unknown: harmless, and not known to the grader. This is no mark.
    "unknown: command": (
        "The answer needs `{text}` in line {line}. That is a command of the notebook, and the "
        "grader runs none. Write it in Python."
    ),
    "unknown: construct": (
        "{at}: the grader cannot run {construct} in an answer. Write it without {construct}."
    ),
    "unknown: interpreter": (
        "{message} The grader runs kernels in an interpreter, and it does not know this; write it "
        "as the chapter's kernels do."
    ),
    "unknown: cut": (
        "Of a cell only what the answer needs is run, and this one cannot be cut in line {line}: "
        "write each statement and each decorator on a line of its own, without a backslash at its "
        "end."
    ),
    "unknown: outside": (
        "{at}: outside of its functions, a kernel's cell should only hold numbers and tuples of "
        "them, each computed in one expression."
    ),
    "unknown: pattern": (
        "{at}: the grader runs no pattern that takes attributes from an object. Ask for its class, "
        "as in `case Point():`, and read the attributes in the case."
    ),
    "unknown: pointer": "A pointer was cast to one of elements that are wider or narrower.",
    "unknown: class": (
        "{at}: the grader runs a class without a base class, or with one of yours, an exception, "
        "NamedTuple or Enum. Plain functions do as well."
    ),
    "unknown: import": (
        "{at}: the grader does not have this. Write it with what the chapter uses, or with math, "
        "itertools, functools or collections in an exercise in plain Python."
    ),
    "unknown: decorator": "{at}: the grader does not know this decorator. Write it without.",
    "unknown: attribute assigned": (
        "{at}: the grader runs no assignment to an attribute. Keep the value in a variable."
    ),
    "unknown: attribute": (
        "{at}: the grader does not know .{name}. Write it with what the chapter uses."
    ),
    "unknown: name": (
        "{at}: the grader does not know {name}. Write it with what the chapter uses."
    ),
    # library: the answer calls a library's product in place of writing it.
    "library: kernel": "A kernel may not call the library's product: {at}. {instead}",
    "library: function": "The answer may not call the library's product: {at}. {instead}",
    "library: operator": ("The answer may not be the library's product: {at}. Write the loops."),
    "library: module in a kernel": "A kernel may not use anything from {name}: {at}.",
    "library: module": "The answer may not use anything from {name}: {at}.",
    "library: same name": "Here it is tl.{name}.",
    "library: dot": "Two tiles are multiplied by tl.dot.",
    "library: loop": "Write the loop over k.",
    "library: sum": "write the loop over k",
    # timeout, crash, memory: the process of the answer.
    "timeout: case": (
        "The answer did not finish within {seconds:g} s. Which loop never ends, or runs far too "
        "often?"
    ),
    "timeout: all cases": "The cases so far took over {seconds:g} s together.",
    "timeout: gpu": (
        "the kernel did not finish within {seconds:g} s. Which loop never ends there, or waits for "
        "something that no thread does?"
    ),
    "crash: ended": "The answer ended its process: {reason}.",
    "crash: stopped": "The answer stops its process with {kind}{where}.",
    "crash: reply": "The answer's process sent an invalid reply.",
    "crash: message": "The answer's process sent an invalid reply: {reason}.",
    "crash: sizes": "The answer's process sent arrays of the wrong sizes.",
    "crash: no count": "The answer's process did not report {count}.",
    "compile: no reason": "Triton does not say why. Block pointers are one thing that it compiles "
    "in `for` loops only, and not in `while` loops.",
    "pool: not forked": "Each answer's process starts by itself, which takes longer: {reason}",
    "crash: signal": "the process was ended by {signal}",
    "crash: status": "the process ended with status {status}",
    "crash: closed": "the process closed its connection to the grader",
    "memory: too much": "The answer needs more memory than it may use{where}.",
    # types, unbound: exceptions that have a usual cause.
    "types: do not match": (
        "The types of the tiles and of the sum have to match: tl.dot returns `out_dtype`, which is "
        "float32 by default, and the sum that it adds to has to have that type."
    ),
    "unbound: no first value": "Where does it get its first value, before the loop?",
    # not finite: NaN in C.
    "not finite: triton": (
        "Elements that a mask or a boundary_check leaves out of a load are undefined, here NaN, "
        'unless other=0.0 or padding_option="zero" defines them.'
    ),
    "not finite: cuda": (
        "An array of cuda.local or cuda.shared begins with garbage, here NaN: write every element "
        "of it before any thread reads it. Threads share data in a cuda.shared.array; a local "
        "array belongs to one thread."
    ),
    # rounded, digits: whole numbers that went through floats.
    "rounded: float32": (
        "Every element is near its value but not equal to it: somewhere on the way the numbers are "
        "float32, which holds whole numbers up to 2**24 = 16,777,216, and beyond that only every "
        "second, fourth or eighth. Which of the tiles, the products and the sum is not an integer?"
    ),
    "digits: float": (
        "Numbers this large lose their last digits in a float: a float32 holds 24 binary digits, a "
        "float64 53, and no cast afterwards brings them back. Which of the tiles, the products and "
        "the sum is not an integer?"
    ),
    # restarted: a sum over part of k.
    "restarted: set to zero": "Is the sum set to zero again, or overwritten, within the loop?",
    "restarted: from one": "Does its loop begin at 1, and the sum at zero?",
    # stale, guard, no store: elements that no thread writes.
    "stale: block size": (
        "Blocks have {x} × {y} threads in this launch. Does the kernel use another number where it "
        "could read cuda.blockDim?"
    ),
    "stale: no owner": "No thread owns the {lines}: x is the column, y the row.",
    "stale: from on": "{axis}s from {first} on",
    "guard: wrong size": (
        "They begin at {axis} {first}, and {size} is {first}: which size does the guard compare "
        "with? C has {extent} {axis}s."
    ),
    "guard: last line": (
        "Only the last row or column is left out: by a guard, or by the formula of the row or the "
        "column?"
    ),
    "no store: nothing": "The kernel loads from A and B, but it stores nothing at all.",
    # unread: staged, but not used.
    "unread: tiles": "No thread reads what is staged: compute the products from the tiles.",
    # inputs, value, nothing, counts, slow.
    "inputs: changed": "The answer changes its input {name}; it may only read it.",
    "value: parts": "The sum of the parts: {message}",
    "value: layer": "Matrix {number} of the batch ({wrong} of {layers} are wrong):",
    "value: result": "{call} is {result}.",
    "value: wrong result": "{call} is {result}, should be {wanted}.",
    "value: here alone": "So it looks in this call, and yet {call} is right.",
    "value: others": "another one",
    "value: how many": "{count} values are asked for.",
    "value: which": "Counted from 1, these of the {count} values are wrong: {numbers}.",
    "value: setting": "{call} is {result} in this run. {message}",
    "nothing: return": "Does it end with a `return`?",
    "order: another": (
        "In tiles of {high}×{wide} elements, program {program} should store the tile in row "
        "{row}, column {column} of tiles. Its stores begin at c[{top}, {left}]."
    ),
    "order: nothing": (
        "Program {program} stores nothing; it should store the tile in row {row}, column {column} "
        "of tiles."
    ),
    "counts: needless": "waits of a block that protect nothing, over all iterations",
    "counts: barriers": "barriers of all blocks",
    "counts: one program": (
        "The result is right, and one of the {programs} programs does the work of others: let each "
        "program load and store what it owns."
    ),
    "counts: too many": "{message} ({count}: {actual:,}, at most {most:,}.)",
    "counts: too few": "{message} ({count}: {actual:,}, at least {least:,}.)",
    "slow: ratio": (
        "the result is right, but the kernel has {ratio:.2f} of the speed of {against}; {least:g} "
        "is asked for. {message}"
    ),
    # out of bounds, and what it is called where more can be said.
    "out of bounds: guard": (
        "There is a guard, and it lets this through: it has to compare both of the indices that "
        "are used here with the sizes of their own axes, with < and `and`."
    ),
    "out of bounds: loops": "{line} accesses {element}, and {array} is {shape}.",
    "out of bounds: loops axes": "The first index counts rows, the second one columns.",
    "out of bounds: A": "A has M rows and K columns: a[i, k].",
    "out of bounds: B": "B has K rows and N columns: b[k, j].",
    "out of bounds: C": "C has M rows and N columns: c[i, j].",
    "swapped indices: question": (
        "{remedy} Or are the two indices swapped, here, in the guard, or where they are computed? "
        "{axes}."
    ),
    "swapped indices: a": "a has M rows and K columns, a[row, k]",
    "swapped indices: b": "b has K rows and N columns, b[k, col]",
    "swapped indices: c": "c has M rows and N columns, c[row, col]",
    "swapped indices: any": "the row's index comes first, the column's second",
    "along K: question": (
        "{remedy} Or does the loop along K go too far, or in steps of the wrong size?"
    ),
    "beyond a tile: shape": (
        "{array} is {shape}: is its shape the wrong way round, or are the indices?"
    ),
    "beyond a tile: too small": (
        "{array} is {shape}, and each block has its own: indices count from 0 within it, whether "
        "they are the thread's place in the block or a k of the tile. If yours do, make it as "
        "large as what you keep in it."
    ),
    "negative index: loops": (
        "{line} accesses {element}. Python counts a negative index from the end and raises no "
        "error."
    ),
    "negative index: remedy": "Here no index is below 0.",
    # uninitialised read, never copied.
    "uninitialised read: loops": (
        "{line} reads {element} before anything was written there: C still holds old numbers."
    ),
    "uninitialised read: remedy": "Each sum has to start from zero.",
    "uninitialised read: operation": (
        "Write an element of C before you read it. A sum that is kept there starts from zero."
    ),
    "never copied: remedy": (
        "No thread has begun a copy to it: all threads of the block take part in a copy of a tile, "
        "and its last argument is the number of threads along x and y, (TILE, TILE)."
    ),
    # Races, by their cause.
    "race: between lines": (
        "A cuda.syncthreads() between the two lines, which all threads of the block reach, makes "
        "each thread wait until all have come so far."
    ),
    "race on the next turn: remedy": (
        "In the next iteration of the loop a thread that is ahead reaches line {low} again, while "
        "others are still at line {high}: between line {high} and the next line {low} no barrier "
        "keeps them together."
    ),
    "copied twice: remedy": (
        "Two threads copy to one element: the last argument of a copy is the number of threads "
        "that the block has along x and y, (TILE, TILE)."
    ),
    "staged twice: remedy": (
        "Two threads store to one element of {array}: let the threads of a block share the work. "
        "Each thread stores elements of its own, at [y, x], and after a barrier it may read those "
        "of the others."
    ),
    "clamped: remedy": (
        "One of the two stands beyond the end of {array} and has no element there. It must not "
        "store to another thread's element: a guard leaves it without work."
    ),
    "same element: remedy": (
        "Two threads have the same element of {array}: look at its indices there, and at the "
        "formulas of the row and the column. Among the threads of all blocks, each element has "
        "exactly one owner."
    ),
    # On a GPU: where a finding comes from, faults, and a machine that fails (INFRA).
    "gpu: launched": "On the GPU, {case}: {message}",
    "gpu: compiled": "Compiled for a GPU, {case}: {message}",
    "gpu: passed": ", on the GPU too",
    "gpu: passed with speed": ", on the GPU at {ratio:.2f} of the speed of {against}",
    "fault: process": "{reason}.",
    "fault: driver": "{name}, a fault that ends the process. {finding}",
    "fault: sanitizer": "compute-sanitizer: {finding}",
    "infra: no gpu": "a GPU was asked for, but {reason}",
    "infra: no answer": "the GPU does not answer: {reason} {printed}",
    "infra: no compiler": "no kernel can be compiled here: {reason}",
    "infra: launcher": "the launcher sent an invalid reply: {reason}",
    "infra: sanitizer wrote nothing": "compute-sanitizer wrote nothing: {printed}",
    "infra: sanitizer did not finish": "compute-sanitizer did not finish: {log}",
    "infra: clock": (
        "a time of {time_ms:.3g} ms for {case} is impossible: at its peak rates this GPU needs "
        "{least_ms:.3g} ms. The clock is wrong, so this run is not graded"
    ),
    "infra: grader": "INFRA: the grader failed: {kind}: {reason}",
    # An entry of a teacher's folder that is not graded.
    "submission: link": "a link is not followed: it may lead to another learner's files",
    "submission: not a notebook": "not a notebook: its name does not end in .ipynb",
    "submission: too many": "more than {most:,} notebooks",
    "submission: too deep": "folders in it are more than {most} deep, and deeper ones are not read",
    "submission: no notebook": "no notebook in it",
    "submission: none": "it holds nothing but hidden files and copies that an editor keeps",
    # On a cluster.
    "cluster: crash": (
        "CRASH: the worker that graded it ended each of {times} times, also when nothing else was "
        "graded"
    ),
    # In the notebook, at the command line, and of nbval.
    "notebook: passed": "{exercise} passed{gpu}",
    "notebook: counted": "  In the whole launch, {case}:",
    "notebook: counted in loops": "  For {case}:",
    "notebook: count": "  {count}: {actual:,}; the target is {target}{best}",
    "notebook: best": ", the best known {best:,}",
    "notebook: at most": "at most {number:,}",
    "notebook: at least": "at least {number:,}",
    "notebook: not yet": "Not yet.\n\n{message}",
    "notebook: verdict": "{exercise} {status}: {message}",
    "notebook: points": "{points:g} of {max_points} points so far.",
    "notebook: hint": "Read hint {hint} of {hints}, below the exercise.",
    "notebook: no answer": (
        "There is no {entry} yet: first run the cell that begins with `{marker}`, and fix what it "
        "reports."
    ),
    "notebook: undefined": (
        "Note: the text of the cell was judged. Its last run defined no {entry} in this notebook: "
        "it ended before that, or it has a command that keeps names to itself."
    ),
    "notebook: stale": (
        "Note: the text of the cell was judged. Its last run defined no {entry}, so this notebook "
        "still has an older one. Run the cell again, and fix what it reports."
    ),
    "notebook: other cell": "a line of another cell",
    "notebook: elsewhere": (
        "check() reads the cells of a notebook; at the command line use: grade NOTEBOOK"
    ),
    "nbval: unfinished": "nbval did not finish: {reason}",
    "nbval: not installed": "nbval did not run: is it installed? (pip install nbval)",
    "nbval: cell": "nbval, cell {cell}:\n{output}",
}


def sentence(key: str, /, **values: Any) -> str:
    """Return the message of a key with its placeholders filled in. KeyError for an unknown key."""
    return MESSAGES[key].format(**values)
