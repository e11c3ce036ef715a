"""What a finding of the interpreter means in an exercise: which mistake it is, and what mends it.

The interpreter knows nothing of the kernel that it runs. In an exercise A is M × K, B is K × N, and
each element of C is one thread's; so more can be said, and a hint chosen. Runs in the worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda.findings import NO_BARRIER

AXES = {
    "a": "a has M rows and K columns, a[row, k]",
    "b": "b has K rows and N columns, b[k, col]",
    "c": "c has M rows and N columns, c[row, col]",
}


def said(kind: str, message: str) -> str:
    """Return a finding's message, without the barrier where none would help."""
    return message.replace(NO_BARRIER, "") if kind in ("same element", "clamped") else message


def advise(t: Any, found: Any) -> tuple[str, str]:
    """Return the kind of a finding of the trace `t`, narrowed where it can be, and the remedy."""
    if found.kind == "out of bounds" and found.space == "global" and " if " in found.texts[0]:
        return found.kind, (
            "There is a guard, and it lets this through: it has to ask of both indices, the very "
            "ones that are used, whether they are below their own axis's size, with < and `and`."
        )
    if found.kind == "out of bounds" and found.space == "global" and _swapped(t, found):
        axes = AXES.get(found.array, "the row's index comes first, the column's second")
        said = "Or are the two indices swapped, here, in the guard, or where they are computed?"
        return "swapped indices", f"{found.remedy} {said} {axes}."
    if found.kind == "out of bounds" and found.space == "global" and _along_k(t, found):
        return "along K", f"{found.remedy} Or does the loop along K go too far, or in wrong steps?"
    if found.kind == "out of bounds" and found.space == "shared":
        return "beyond a tile", _too_small(t, found)
    if found.kind == "uninitialised read" and _copies_to(t, found) and not _begun(t, found):
        return "never copied", (
            "No thread has begun a copy to it: all threads of the block take part in a copy of a "
            "tile, and its last argument is how many they are along x and y, (TILE, TILE)."
        )
    if found.kind != "race":
        return found.kind, found.remedy
    if found.space == "shared" and _copied_twice(t, found):
        return "copied twice", (
            "Two threads copy to one element: the last argument of a copy is how many threads the "
            "block has along x and y, (TILE, TILE)."
        )
    plain = found.space == "shared" and not _copies_to(t, found)
    if plain and len(found.lines) == 1 and _one_element(t, found):
        return "staged twice", (
            f"Two threads store to one element of {found.array}: let the threads of a block share "
            "the work. Each stores elements of its own, at [y, x], and a barrier later it may read "
            "those of the others."
        )
    if found.space == "global" and _one_element(t, found) and _beyond(t, found):
        return "clamped", (
            f"One of the two stands beyond the end of {found.array}, where there is no element for "
            "it. Let it take no other thread's: a guard leaves it without work."
        )
    if found.space == "global" and _one_element(t, found):
        return "same element", (
            f"Two threads have the same element of {found.array}: look at its indices there, and "
            "at the formulas of the row and the column. Each element has one owner, and a thread "
            "owns what no other one does, of any block."
        )
    if found.space == "shared" and len(found.lines) == 2:
        return _between(t, found)
    return found.kind, found.remedy


def _too_small(t: Any, found: Any) -> str:
    """Return what mends an index beyond the end of a shared array, which needs no guard."""
    info = _info(t, found)
    shape = "×".join(map(str, info.shape))
    if _swapped(t, found):
        return f"{found.array} is {shape}: is its shape the wrong way round, or are the indices?"
    return (
        f"{found.array} is {shape}, and each block has its own: indices count from 0 within it, "
        "be it the thread's place in the block or a k of the tile. If that is so, make it as large "
        "as what you keep in it."
    )


def _copies_to(t: Any, found: Any) -> bool:
    """Is anything copied to the array asynchronously, in any block?"""
    return _copied(t, found, None).size > 0


def _begun(t: Any, found: Any) -> bool:
    """Has a thread of the block begun a copy to the element?"""
    block, _ = found.threads[0]
    return _copiers(t, found, block).size > 0


def _copied_twice(t: Any, found: Any) -> bool:
    """Do the two threads that race for an element both copy to it?"""
    (block, one), (other_block, other) = (*found.threads, *found.threads)[:2]
    if block != other_block or one == other:
        return False
    copiers = _copiers(t, found, block)
    return all(_number(t, thread) in copiers for thread in (one, other))


def _copiers(t: Any, found: Any, block: tuple) -> np.ndarray:
    """Return which threads of a block copy to a finding's element."""
    rows = _copied(t, found, block)
    return np.unique(rows["thread"][rows["element"] == _place(t, found)])


def _copied(t: Any, found: Any, block: tuple | None) -> np.ndarray:
    """Return the asynchronous copies to a finding's array, in a block or in all."""
    rows = t.accesses(block)
    copies = np.array([site.asynchronous for site in t.sites], bool)[rows["site"]]
    return rows[np.isin(rows["array"], _ids(t, found)) & copies]


def _ids(t: Any, found: Any) -> list[int]:
    """Return the ids of a finding's array: one for each block, if it is a shared one."""
    return [info.id for info in t.arrays if info.name == found.array]


def _info(t: Any, found: Any) -> Any:
    """Return what the trace knows of a finding's array, None if nothing."""
    return next((info for info in t.arrays if info.name == found.array), None)


def _place(t: Any, found: Any) -> int:
    """Return the number of a finding's element in its array."""
    return int(np.ravel_multi_index(found.index, _info(t, found).shape))


def _number(t: Any, thread: tuple[int, int, int]) -> int:
    x, y, z = thread
    return x + t.block[0] * (y + t.block[1] * z)


def _between(t: Any, found: Any) -> tuple[str, str]:
    """Say whether the barrier is missing between two lines or on the way round the loop."""
    low, high = sorted(found.lines)
    firsts = {line for who in found.threads for line in _first_lines(t, found, who)}
    if firsts == {low}:
        return "race", (
            "A cuda.syncthreads() between the two lines, which all threads of the block pass, lets "
            "nobody go on before all have come so far."
        )
    if firsts == {high}:
        return "race on the next turn", (
            f"On the next turn of the loop a thread that is ahead comes to line {low} again, while "
            f"others are still at line {high}. A cuda.syncthreads() that all threads of the block "
            "pass on the way round the loop keeps them together."
        )
    return found.kind, found.remedy


def _first_lines(t: Any, found: Any, who: tuple) -> set[int]:
    """Return which of two lines a thread comes to first, in the phases in which it is at both.

    0 stands for asynchronous copies, of which the order says nothing.
    """
    rows = _at(t, found, who)
    firsts = set()
    for phase in np.unique(rows["phase"]):
        sites = [t.sites[site] for site in rows["site"][rows["phase"] == phase]]
        if any(site.asynchronous for site in sites):
            return {0}
        lines = [site.line for site in sites]
        if len(set(lines)) == 2:
            firsts.add(lines[0])
    return firsts


def _one_element(t: Any, found: Any) -> bool:
    """Do both threads store to the element that they race for, in global memory?"""
    place = _place(t, found)
    for who in found.threads:
        rows = _at(t, found, who)
        if not any(t.sites[s].op == "store" for s in rows["site"][rows["element"] == place]):
            return False
    return True


def _beyond(t: Any, found: Any) -> bool:
    """Is C the array, and stands just one of the two threads outside of it, x being the column?"""
    info = _info(t, found)
    if found.array != "c" or info is None or len(info.shape) != 2:
        return False
    rows, columns = info.shape
    outside = 0
    for block, thread in found.threads:
        x, y = (block[axis] * t.block[axis] + thread[axis] for axis in range(2))
        outside += x >= columns or y >= rows
    return outside == 1


def _swapped(t: Any, found: Any) -> bool:
    """Would all that is asked for there be inside, were the two indices swapped?"""
    info = _info(t, found)
    if info is None or len(info.shape) != 2 or len(found.index) != 2:
        return False
    (rows, columns), (i, j) = info.shape, found.index
    if rows == columns or not (0 <= j < rows and 0 <= i < columns):
        return False
    i, j = np.divmod(_at(t, found)["element"], columns)
    return bool((j < rows).all() and (i < columns).all())


def _along_k(t: Any, found: Any) -> bool:
    """Is it the index along K that is too large, and the other one inside?"""
    info = _info(t, found)
    if found.array not in ("a", "b") or info is None or len(found.index) != 2:
        return False
    axis = 1 if found.array == "a" else 0
    other = 1 - axis
    return found.index[axis] >= info.shape[axis] and 0 <= found.index[other] < info.shape[other]


def _at(t: Any, found: Any, who: tuple | None = None) -> np.ndarray:
    """Return the accesses to a finding's array in its lines, of all threads or of one."""
    block, thread = who or (None, None)
    rows = t.accesses(block)
    lines = np.array([site.line for site in t.sites])[rows["site"]]
    rows = rows[np.isin(rows["array"], _ids(t, found)) & np.isin(lines, found.lines)]
    if thread is None:
        return rows
    return rows[rows["thread"] == _number(t, thread)]
