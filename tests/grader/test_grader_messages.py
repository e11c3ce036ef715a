"""The grader's messages: all stand in one place, and they quote lines and name axes."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.grader import messages
from tiled_matmul.grader.advice import advise
from tiled_matmul.grader.compare import readable
from tiled_matmul.grader.messages import MESSAGES, sentence
from tiled_matmul.microscope.cuda import trace

FOLDER = Path(messages.__file__).parent
# The modules whose words a learner reads. They hold keys; the sentences stand in messages.py.
CORE = "gate allowed compare advice kinds judge on_gpu practice explain watched worker own".split()
CORE += ["teacher", "submission", "transform"]
MOST_WORDS = 5
DIAGNOSES = {key.partition(":")[0] for key in MESSAGES}


def placeholders(key: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(MESSAGES[key]) if name)


def keywords(call: ast.Call, tree: ast.Module) -> frozenset[str]:
    """Return the names that a call passes, with those of a dict behind `**`."""
    names = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    for keyword in call.keywords:
        if keyword.arg is None:
            above = [
                node
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == ast.unparse(keyword.value)
                and node.lineno < call.lineno
            ]
            names |= {ast.literal_eval(k) for k in max(above, key=lambda n: n.lineno).value.keys}
    return frozenset(names)


def literals(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield each string in a module that is not a docstring, an f-string as one text."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            yield node, "…".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in skipped:
                yield node, node.value


def used_and_faults(source: str) -> tuple[set[str], list[str]]:
    """Return the keys that a module uses, and what is wrong with its use of messages."""
    tree, used, faults = ast.parse(source), set(), []
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "sentence"
    ]
    direct = {call.args[0]: call for call in calls if isinstance(call.args[0], ast.Constant)}
    indirect = {keywords(call, tree) for call in calls if call.args[0] not in direct}
    for node, text in literals(tree):
        words = [word for word in text.split() if any(map(str.isalpha, word))]
        key_like = ": " in text and text.partition(": ")[0] in DIAGNOSES and len(words) <= 8
        if node in direct or key_like:
            if text not in MESSAGES:
                faults.append(f"line {node.lineno}: there is no message {text!r}")
                continue
            used.add(text)
            passed = {keywords(direct[node], tree)} if node in direct else indirect
            if placeholders(text) not in passed:
                faults.append(f"line {node.lineno}: {text!r} needs {sorted(placeholders(text))}")
        elif len(words) > MOST_WORDS and not text.startswith("<"):  # markup of a page
            faults.append(f"line {node.lineno}: a sentence outside messages.py: {text!r}")
    return used, faults


def test_every_message_is_used_with_its_placeholders_and_none_stands_elsewhere():
    used = set()
    for name in CORE:
        keys, faults = used_and_faults((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        used |= keys
        assert faults == [], f"{name}.py"
    for name in ("pool", "sealed", "cluster"):  # which also speak to authors and teachers
        keys, _ = used_and_faults((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        used |= keys
    assert sorted(MESSAGES.keys() - used) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("sentence('forbidden: no such thing', at=at)", "there is no message"),
        ("KEYS = {'x': 'forbidden: no such thing'}", "there is no message"),
        ("sentence('forbidden: reach')", "needs ['at']"),
        ("sentence('forbidden: reach', at=at, name=name)", "needs ['at']"),
        ("place = {'line': 1}\nsentence('forbidden: reach', **place)", "needs ['at']"),
        ("sentence('forbidden: reach' if x else 'forbidden: reach', name=x)", "needs ['at']"),
        ("raise Refused('This is what you may not do here.')", "a sentence outside"),
        ("raise Refused(f'This is {what} you may {not_} do in here.')", "a sentence outside"),
    ],
)
def test_a_message_that_does_not_fit_is_noticed(source, fault):
    _, faults = used_and_faults(source)
    assert faults and all(fault in text for text in faults), faults


def test_right_uses_of_messages_have_no_faults():
    source = '"""A docstring may have more than five words."""\nplace = {"at": 1}\n'
    source += 'sentence("forbidden: reach", **place)\nsentence(KEYS[x])\n"forbidden: ndim"\n'
    source += 'z = "forbidden: size"\nprint(f"{line} has these few words {x}")\n'
    assert used_and_faults(source) == ({"forbidden: reach", "forbidden: size"}, [])


def test_a_sentence_is_filled_in():
    assert sentence("forbidden: reach", at="`(f)()` in line 3") == (
        "An answer may only use what this exercise gives it: `(f)()` in line 3."
    )
    with pytest.raises(KeyError):
        sentence("forbidden: reach")
    with pytest.raises(KeyError):
        sentence("no such key")


SOURCE = "# exercise 05.1: the 9×9 puzzle\n@cuda.jit\ndef puzzle(a, b, c):\n    x = a[0]\n    " + (
    "c[row, col] = a[row, 0] * b[0, col] + a[row, 1] * b[1, col] + 1000\n\n    pass\n"
)


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("KeyError (line 4): 'x'", "KeyError (line 4: `x = a[0]`): 'x'"),
        ("Line 4 reads C. Line 4 again.", "Line 4 (`x = a[0]`) reads C. Line 4 again."),
        ("in line 4 of puzzle, and", "in line 4 of puzzle (`x = a[0]`), and"),
        ("in line 4 of copy_async, and", "in copy_async, and"),
        ("line 4 of puzzle: x = a[0]: no", "line 4 of puzzle: x = a[0]: no"),
        ("in line 6", "in line 6"),
        ("in line 99", "in line 99"),
        ("in line 0", "in line 0"),
        (f"in line {'9' * 5000}", f"in line {'9' * 5000}"),
        ("lines 3 and 4", "lines 3 and 4"),
        ("thread (3, 0, 0) waits", "thread (x 3, y 0) waits"),
        ("thread (3, 1, 2) of block (1, 0, 0)", "thread (x 3, y 1, z 2) of block (x 1, y 0)"),
    ],
)
def test_lines_are_quoted_and_axes_named(message, wanted):
    assert readable(message, SOURCE) == wanted


def test_a_long_line_is_cut():
    message = readable("in line 5.", SOURCE)
    assert message == "in line 5 (`c[row, col] = a[row, 0] * b[0, col] + a[row, 1] * b[1, col]…`)."


def kinds(kernel, block, *shapes):
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    t = trace(kernel, (1, 1), block, *arrays)
    return [advise(t, finding) for finding in (*t.out_of_bounds, *t.races)]


def test_swapped_indices_and_a_guard_that_is_missing():
    @cuda.jit
    def swapped(b):
        b[cuda.threadIdx.x, cuda.threadIdx.y] = 1

    @cuda.jit
    def unguarded(b):
        b[cuda.threadIdx.y, cuda.threadIdx.x] = 1

    ((kind, remedy),) = kinds(swapped, (7, 5), (5, 7))
    assert kind == "swapped indices" and "b has K rows and N columns, b[k, col]" in remedy
    for shape in ((5, 6), (4, 5), (2, 3)):
        ((kind, _),) = kinds(unguarded, (7, 5), shape)
        assert kind == "out of bounds", shape
    ((kind, remedy),) = kinds(unguarded, (7, 5), (4, 7))  # the rows of b are along K
    assert kind == "along K" and "Or does the loop along K go too far" in remedy


def test_which_of_two_barriers_is_missing():
    @cuda.jit
    def first(a):
        tile = cuda.shared.array(4, np.float32)
        for step in range(3):
            tile[cuda.threadIdx.x] = step
            a[cuda.threadIdx.x] = tile[3 - cuda.threadIdx.x]
            cuda.syncthreads()

    @cuda.jit
    def second(a):
        tile = cuda.shared.array(4, np.float32)
        for step in range(3):
            tile[cuda.threadIdx.x] = step
            cuda.syncthreads()
            a[cuda.threadIdx.x] = tile[3 - cuda.threadIdx.x]

    @cuda.jit
    def reads_first(a):
        tile = cuda.shared.array(4, np.float32)
        tile[cuda.threadIdx.x] = 0
        cuda.syncthreads()
        for step in range(3):
            a[cuda.threadIdx.x] = tile[3 - cuda.threadIdx.x]
            cuda.syncthreads()
            tile[cuda.threadIdx.x] = step

    assert [kind for kind, _ in kinds(first, 4, 4)] == ["race"]
    assert [kind for kind, _ in kinds(second, 4, 4)] == ["race on the next turn"]
    assert [kind for kind, _ in kinds(reads_first, 4, 4)] == ["race on the next turn"]


def test_an_element_of_two_threads():
    @cuda.jit
    def same(c):
        c[cuda.threadIdx.y, cuda.threadIdx.y] = 1

    @cuda.jit
    def handed_on(c):
        c[0, cuda.threadIdx.x] = 1
        c[1, cuda.threadIdx.x] = c[0, 3 - cuda.threadIdx.x]

    assert {kind for kind, _ in kinds(same, (4, 4), (4, 4))} == {"same element"}
    assert {kind for kind, _ in kinds(handed_on, (4, 1), (4, 4))} == {"race"}
