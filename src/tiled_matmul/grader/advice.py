"""Say what a finding of the interpreter means in an exercise: which mistake it is, and its remedy.

The interpreter knows nothing about the kernel that it runs. In an exercise A is M × K, B is K × N,
and one thread owns each element of C, so the advice can be more precise. Runs in the worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiled_matmul.grader.messages import sentence
from tiled_matmul.microscope.cuda.findings import NO_BARRIER

AXES = {"a": "swapped indices: a", "b": "swapped indices: b", "c": "swapped indices: c"}


def without_barrier(kind: str, message: str) -> str:
    """Return a finding's message, without its words on a barrier that is not what is missing."""
    elsewhere = "same element", "clamped", "race on the next turn"
    return message.replace(NO_BARRIER, "") if kind in elsewhere else message


def advise(t: Any, finding: Any, product: bool = True) -> tuple[str, str]:
    """Return the kind of a finding of the trace `t`, narrowed where possible, and its remedy.

    If the kernel is no `product`, nothing is said about which axis of an array is which.
    """
    outside = finding.kind == "out of bounds" and finding.space == "global"
    if outside and " if " in finding.texts[0]:
        return finding.kind, sentence("out of bounds: guard")
    if outside and _swapped(t, finding):
        known = AXES.get(finding.array) if product else None
        axes = sentence(known or "swapped indices: any")
        remedy = sentence("swapped indices: question", remedy=finding.remedy, axes=axes)
        return "swapped indices", remedy
    if outside and product and _along_k(t, finding):
        return "along K", sentence("along K: question", remedy=finding.remedy)
    if finding.kind == "out of bounds" and finding.space == "shared":
        return "beyond a tile", _too_small(t, finding)
    if finding.kind == "uninitialised read" and _copies_to(t, finding) and not _begun(t, finding):
        return "never copied", sentence("never copied: remedy")
    if finding.kind != "race":
        return finding.kind, finding.remedy
    if finding.space == "shared" and _copied_twice(t, finding):
        return "copied twice", sentence("copied twice: remedy")
    plain = finding.space == "shared" and not _copies_to(t, finding)
    if plain and len(finding.lines) == 1 and _one_element(t, finding):
        return "staged twice", sentence("staged twice: remedy", array=finding.array)
    if finding.space == "global" and _one_element(t, finding) and _beyond(t, finding):
        return "clamped", sentence("clamped: remedy", array=finding.array)
    if finding.space == "global" and _one_element(t, finding):
        return "same element", sentence("same element: remedy", array=finding.array)
    if finding.space == "shared" and len(finding.lines) == 2:
        return _between(t, finding)
    return finding.kind, finding.remedy


def _too_small(t: Any, finding: Any) -> str:
    """Return the remedy for an index beyond the end of a shared array, which needs no guard."""
    shape = "×".join(map(str, _info(t, finding).shape))
    if _swapped(t, finding):
        return sentence("beyond a tile: shape", array=finding.array, shape=shape)
    return sentence("beyond a tile: too small", array=finding.array, shape=shape)


def _copies_to(t: Any, finding: Any) -> bool:
    """Do asynchronous copies write to the finding's array, in any block?"""
    return _copied(t, finding, None).size > 0


def _begun(t: Any, finding: Any) -> bool:
    """Has a thread of the block begun a copy to the finding's element?"""
    block, _ = finding.threads[0]
    return _copiers(t, finding, block).size > 0


def _copied_twice(t: Any, finding: Any) -> bool:
    """Do both of the threads that race for an element copy to it?"""
    (block, one), (other_block, other) = (*finding.threads, *finding.threads)[:2]
    if block != other_block or one == other:
        return False
    copiers = _copiers(t, finding, block)
    return all(_number(t, thread) in copiers for thread in (one, other))


def _copiers(t: Any, finding: Any, block: tuple) -> np.ndarray:
    """Return which threads of a block copy to a finding's element."""
    rows = _copied(t, finding, block)
    return np.unique(rows["thread"][rows["element"] == _place(t, finding)])


def _copied(t: Any, finding: Any, block: tuple | None) -> np.ndarray:
    """Return the asynchronous copies to a finding's array, in a block or in all."""
    rows = t.accesses(block)
    copies = np.array([site.asynchronous for site in t.sites], bool)[rows["site"]]
    return rows[np.isin(rows["array"], _ids(t, finding)) & copies]


def _ids(t: Any, finding: Any) -> list[int]:
    """Return the ids of a finding's array: one for each block, if it is a shared one."""
    return [info.id for info in t.arrays if info.name == finding.array]


def _info(t: Any, finding: Any) -> Any:
    """Return the trace's description of a finding's array, None if it has none."""
    return next((info for info in t.arrays if info.name == finding.array), None)


def _place(t: Any, finding: Any) -> int:
    """Return the flat index of a finding's element in its array."""
    return int(np.ravel_multi_index(finding.index, _info(t, finding).shape))


def _number(t: Any, thread: tuple[int, int, int]) -> int:
    """Return the number of a thread within its block."""
    x, y, z = thread
    return x + t.block[0] * (y + t.block[1] * z)


def _between(t: Any, finding: Any) -> tuple[str, str]:
    """Say whether the barrier is missing between two lines or between two iterations."""
    low, high = sorted(finding.lines)
    firsts = {line for thread in finding.threads for line in _first_lines(t, finding, thread)}
    if firsts == {low}:
        return "race", sentence("race: between lines")
    if firsts == {high}:
        remedy = sentence("race on the next turn: remedy", low=low, high=high)
        return "race on the next turn", remedy
    return finding.kind, finding.remedy


def _first_lines(t: Any, finding: Any, thread: tuple) -> set[int]:
    """Return which of two lines a thread reaches first, in the phases in which it reaches both.

    0 stands for asynchronous copies: their order in the record says nothing.
    """
    rows = _at(t, finding, thread)
    firsts = set()
    for phase in np.unique(rows["phase"]):
        sites = [t.sites[site] for site in rows["site"][rows["phase"] == phase]]
        if any(site.asynchronous for site in sites):
            return {0}
        lines = [site.line for site in sites]
        if len(set(lines)) == 2:
            firsts.add(lines[0])
    return firsts


def _one_element(t: Any, finding: Any) -> bool:
    """Do both threads store to the element that they race for, in global memory?"""
    place = _place(t, finding)
    for thread in finding.threads:
        rows = _at(t, finding, thread)
        if not any(t.sites[s].op == "store" for s in rows["site"][rows["element"] == place]):
            return False
    return True


def _beyond(t: Any, finding: Any) -> bool:
    """Is C the array, and exactly one of the two threads outside it, x being the column?"""
    info = _info(t, finding)
    if finding.array != "c" or info is None or len(info.shape) != 2:
        return False
    rows, columns = info.shape
    outside = 0
    for block, thread in finding.threads:
        x, y = (block[axis] * t.block[axis] + thread[axis] for axis in range(2))
        outside += x >= columns or y >= rows
    return outside == 1


def _swapped(t: Any, finding: Any) -> bool:
    """Would all accesses of those lines be inside the array if the two indices were swapped?"""
    info = _info(t, finding)
    if info is None or len(info.shape) != 2 or len(finding.index) != 2:
        return False
    (rows, columns), (i, j) = info.shape, finding.index
    if rows == columns or not (0 <= j < rows and 0 <= i < columns):
        return False
    i, j = np.divmod(_at(t, finding)["element"], columns)
    return bool((j < rows).all() and (i < columns).all())


def _along_k(t: Any, finding: Any) -> bool:
    """Is the index along K too large, and the other one inside?"""
    info = _info(t, finding)
    if finding.array not in ("a", "b") or info is None or len(finding.index) != 2:
        return False
    axis = 1 if finding.array == "a" else 0
    other = 1 - axis
    return finding.index[axis] >= info.shape[axis] and 0 <= finding.index[other] < info.shape[other]


def _at(t: Any, finding: Any, one: tuple | None = None) -> np.ndarray:
    """Return the accesses to a finding's array in its lines, of all threads or of one."""
    block, thread = one or (None, None)
    rows = t.accesses(block)
    lines = np.array([site.line for site in t.sites])[rows["site"]]
    rows = rows[np.isin(rows["array"], _ids(t, finding)) & np.isin(lines, finding.lines)]
    if thread is None:
        return rows
    return rows[rows["thread"] == _number(t, thread)]
