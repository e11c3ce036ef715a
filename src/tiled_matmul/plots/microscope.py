"""Figures of a traced kernel: accesses to each element, a warp's requests, and a timeline.

Everything is drawn from a `tiled_matmul.microscope.cuda.Trace`. An array has the colour of the
matrix in its name, and a shared array the colour of the matrix that is copied into it. Global
memory has a plain frame, shared memory a dashed one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from tiled_matmul.microscope.cuda import hardware
from tiled_matmul.microscope.cuda.hardware import BANK_BYTES, BANKS, SECTOR_BYTES, WARP
from tiled_matmul.microscope.table import plural
from tiled_matmul.plots import style

DONE = {"load": "loaded", "store": "stored", "atomic": "updated"}
DO = {"load": "load", "store": "store", "atomic": "update"}
ROW_BYTES = BANK_BYTES * BANKS  # of a row in a warp's figure: one word of each bank, four sectors
MOST_THREADS = 64  # of a block whose threads a timeline draws; for larger ones it draws warps
MOST_STEPS = 240
LANES, ROWS, PITCH = 2.6, 7.0, 1.4  # vertical layout of a warp's figure, in cells of four bytes
MOST_CHARACTERS = 60  # per line
LEGENDS = {
    "global": "a row: 128 bytes; framed: a sector; pale: brought along",
    "shared": "a row: 128 bytes; a column: a bank; dark orange: asked for several words",
}

Box = tuple[float, float, float, float]  # x, y, width, height


def colors(arrays: Sequence, sites: Sequence = ()) -> dict[int, str]:
    """Return {id: colour} for the ArrayInfos of one trace; its `sites` show the copies."""
    by_id = {array.id: color for array in arrays if (color := _named_after(array.name))}
    stored = {site.array for site in sites if site.op != "load"}
    free = [c for c in (style.A, style.B, style.C, *style.OTHERS) if c not in by_id.values()]
    for array in arrays:
        if array.id not in by_id and array.space == "global":
            result = array.name in stored and style.C in free
            by_id[array.id] = style.C if result else (free or [style.MUTED])[0]
            free = [color for color in free if color != by_id[array.id]]
    ids = {array.name: array.id for array in arrays if array.space == "global"}
    read = {s.line: by_id[ids[s.array]] for s in sites if s.op == "load" and s.array in ids}
    copied = {s.array: read[s.line] for s in sites if s.op == "store" and s.line in read}
    for array in arrays:
        by_id.setdefault(array.id, copied.get(array.name, (free or [style.MUTED])[0]))
    return by_id


def array_named(t, name: str):
    """Return the ArrayInfo of that name. Raises ValueError, which lists the arrays."""
    for array in t.arrays:
        if array.name == name:
            return array
    known = ", ".join(f"{array.name} ({array.space})" for array in t.arrays)
    raise ValueError(f"{t.name} has no array called {name!r}; it has {known}")


def accesses_of(t, block: tuple[int, ...]) -> np.ndarray:
    """Return `t.accesses` of one block. Raises ValueError for a block without accesses."""
    place = (*block, 0, 0)[:3]
    accesses = t.accesses(place) if place in t.blocks else np.empty(0)
    if not accesses.size:
        listed = ", ".join(map(str, t.blocks[:8])) + (", …" if len(t.blocks) > 8 else "")
        raise ValueError(f"no access was followed in block {place}; blocks there are: {listed}")
    return accesses


def find_request(
    t,
    line: int | None = None,
    block: tuple[int, ...] = (0, 0),
    warp: int = 0,
    nth: int = 0,
    array: str | None = None,
):
    """Return request number `nth`, from 0, of one warp.

    `line`, a source line, and `array`, a name, restrict the requests that count. Raises ValueError
    for a block, warp, line, array or number that does not occur.
    """
    accesses_of(t, block)
    warps = -(-math.prod(t.block) // WARP)
    if not 0 <= warp < warps:
        raise ValueError(f"there is no warp {warp}; a block has warps 0 to {warps - 1}")
    if array is not None:
        array_named(t, array)
    requests = t.requests(block=block, warp=warp)
    where = f"warp {warp} of block {tuple(block)}"
    lines = sorted({request.site.line for request in requests})
    if line is not None and line not in lines:
        listed = ", ".join(map(str, lines)) or "none"
        raise ValueError(f"{where} touches no array at line {line}; lines where it does: {listed}")
    chosen = [r for r in requests if line in (None, r.site.line) and array in (None, r.array.name)]
    if not 0 <= nth < len(chosen):
        at = ("" if array is None else f" for {array}") + (
            "" if line is None else f" at line {line}"
        )
        raise ValueError(f"there is no request {nth}{at}; {where} makes {len(chosen)}, from 0 on")
    return chosen[nth]


def reads_per_store(t, accesses: np.ndarray) -> tuple[int, int] | None:
    """Return the fewest and the most loads of an element of shared memory after a store to it.

    Only elements with stores count; the result is None without stores. Atomic operations do not
    count.
    """
    shared = [array.id for array in t.arrays if array.space == "shared"]
    stores = [site.id for site in t.sites if site.op == "store"]
    loads = [site.id for site in t.sites if site.op == "load"]
    rows = accesses[np.isin(accesses["array"], shared) & np.isin(accesses["site"], stores + loads)]
    rows = rows[np.lexsort((rows["element"], rows["array"]))]  # stable: time stays in order
    stored = np.isin(rows["site"], stores)
    if not stored.any():
        return None
    number = np.cumsum(stored)
    another = np.ones(rows.size, dtype=bool)
    another[1:] = (np.diff(rows["array"]) != 0) | (np.diff(rows["element"]) != 0)
    # The number of stores, to any element, before the first access to this element.
    earlier = np.maximum.accumulate(np.where(another, number - stored, 0))
    reads = np.bincount(number[~stored & (number > earlier)] - 1, minlength=number[-1])
    return int(reads.min()), int(reads.max())


def rectangles(cells: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return sorted boxes (row, column, rows, columns) that cover the true cells of a 2-D array."""
    boxes, growing = [], {}
    for row in range(cells.shape[0] + 1):
        runs = _runs(cells[row]) if row < cells.shape[0] else []
        for start, end in [run for run in growing if run not in runs]:
            first = growing.pop((start, end))
            boxes.append((first, start, row - first, end - start))
        for run in runs:
            growing.setdefault(run, row)
    return sorted(boxes)


def in_rows(values: np.ndarray) -> np.ndarray:
    """Return `values` as a matrix of floats: a vector in lines of 32, padded with NaN.

    Of more than two dimensions, all but the last one become the rows.
    """
    if values.ndim > 1:
        return values.reshape(-1, values.shape[-1]).astype(float)
    width = min(WARP, max(values.size, 1))
    padded = np.full(-(-values.size // width) * width, np.nan)
    padded[: values.size] = values
    return padded.reshape(-1, width)


@style.styled
def warp_views(requests: Sequence, names: Sequence[str]) -> style.Figure:
    """Draw the memory accesses of each of `requests`, one below the other, with its name.

    The lanes are on top; each row below is 128 bytes of memory with at least one access. Accessed
    elements have full colour, the rest of their sector is pale, and words that wait for another
    word of their bank have the colour of faults. Raises ValueError without requests, or if `names`
    has another length.
    """
    if not requests or len(requests) != len(names):
        raise ValueError(f"{len(requests)} requests and {len(names)} names; both are wanted, alike")
    top = -2.0 if any(names) else -0.3
    heights = [_bottom(request) - top for request in requests]
    left = max(len(label) for request in requests for label in _row_labels(request).values())
    width = BANKS + 0.62 * left + 1
    scale = (style.WIDTH - 0.15) / width
    panels = {"rows": len(requests), "squeeze": False, "height_ratios": heights}
    fig, axes = style.draw(0.65 + scale * sum(heights), **panels)
    for ax, request, name in zip(axes[:, 0], requests, names, strict=True):
        ax.set(xlim=(BANKS - width, BANKS + 0.2), ylim=(_bottom(request), top), aspect="equal")
        ax.axis("off")
        _request(ax, request, name)
    spaces = sorted({request.array.space for request in requests})
    fig.supxlabel("\n".join(LEGENDS[space] for space in spaces), fontsize=8)
    costs = [_cost(request) for request in requests]
    each = " or ".join(_short_cost(request) for request in requests)
    style.title(fig, costs[0] if len(requests) == 1 else f"One access of a warp: {each}")
    words = " ".join(
        f"{name + ': ' if name else ''}{cost} with {request.site.text} in line {request.site.line},"
        f" lane {request.lanes[0]} at {_label(request, 0)} and lane {request.lanes[-1]} at "
        f"{_label(request, -1)}."
        for name, cost, request in zip(names, costs, requests, strict=True)
    )
    return style.finish(
        fig, f"{words} Lines run from the lanes, on top, to the elements, in rows of 128 bytes."
    )


@style.styled
def timeline(t, block: tuple[int, ...] = (0, 0)) -> style.Figure:
    """Draw the accesses of a block's threads; program time runs right, barriers are lines.

    In blocks of more than 64 threads, a row is a warp. A step is one access instruction of a warp.
    Phases that end after 240 steps are left out, and the figure says so. Raises ValueError for a
    block that was not traced.
    """
    accesses = accesses_of(t, block)
    threads = math.prod(t.block)
    unit, rows = ("thread", threads) if threads <= MOST_THREADS else ("warp", -(-threads // WARP))
    starts, ends, step = _steps(accesses)
    phases = max(int((ends <= MOST_STEPS).sum()), 1)
    last = min(int(ends[phases - 1]), MOST_STEPS)
    shades = colors(t.arrays, t.sites)
    spaces = [s for s in ("global", "shared") if s in {array.space for array in t.arrays}]
    fig, axes = style.draw(1.7 + 0.85 * len(spaces), len(spaces), squeeze=False, sharex=True)
    drawn: dict[str, list[str]] = {}
    for ax, space in zip(axes[:, 0], spaces, strict=True):
        for info in [array for array in t.arrays if array.space == space]:
            selected = (accesses["array"] == info.id) & (step < last)
            cells = np.zeros((rows, last), dtype=bool)
            cells[accesses[unit][selected], step[selected]] = True
            boxes = [(x, y, w, h) for y, x, h, w in rectangles(cells)]
            draw_boxes(ax, boxes, facecolor=shades[info.id], lw=0)
            drawn.setdefault(shades[info.id], []).append(info.name)
        for end in ends[: phases - (phases == len(ends))]:
            ax.axvline(end + 0.5, color=style.INK, lw=1.3)
        ax.set(xlim=(-0.5, last + 0.5), ylim=(rows, 0), ylabel=unit)
        ax.set_title(f"{space} memory", fontsize=8, fontweight="normal")
        ax.set_yticks([0.5, rows - 0.5], ["0", str(rows - 1)])
        ax.tick_params(axis="x", length=0)
    named = range(0, phases, -(-phases // 12))
    middles = [(starts[phase] + min(ends[phase], last)) / 2 for phase in named]
    axes[-1, 0].set_xticks(middles, [str(phase) for phase in named])
    cut = f"; the first {phases} of {len(ends)}" if phases < len(ends) else ""
    if last < ends[phases - 1]:
        cut = f"; the first {last} of {ends[phases - 1]} steps"
    summary = _phases(t, accesses)
    axes[-1, 0].set_xlabel(f"phase, from barrier to barrier{cut}\n" + "\n".join(summary[:6]))
    for color, names in drawn.items():
        draw_boxes(axes[0, 0], [], facecolor=color, lw=0, label=", ".join(names))
    fig.legend(loc="outside lower center", ncols=4, fontsize=8, handlelength=1, columnspacing=1)
    reuse = reuse_finding(t, accesses, "block")
    finding = _turns(t, accesses) or reuse
    return style.conclude(
        fig,
        finding,
        f"{'' if finding == reuse else f'{reuse}. '}"
        f"Time runs right over {plural(len(ends), 'phase')}, which barriers part; each "
        f"row is one of {plural(rows, unit)}. {'; '.join(summary)}.",
    )


def _request(ax: Axes, request, name: str) -> None:
    """Draw one panel of `warp_views`; the unit of length is a cell of four bytes."""
    color = colors([request.array])[request.array.id]
    shared = request.array.space == "shared"
    left, bottom = ax.get_xlim()[0], ax.get_ylim()[0]
    middle = {"va": "center", "fontsize": 8}
    doing = f"line {request.site.line}: {DO[request.site.op]} {request.site.text}"
    doing = doing if len(doing) <= MOST_CHARACTERS else doing[: MOST_CHARACTERS - 1] + "…"
    if name:
        ax.text(left, -1.0, f"{name}: {_short_cost(request)}", fontweight="bold", **middle)
    ax.text(left, 0.5, doing, **middle)
    for words, y in (("lane", LANES), ("bank", bottom - 1.5))[: 1 + shared]:
        ax.text(-0.6, y + 0.5, words, ha="right", **middle)
    for number in (0, 8, 16, 24, 31):
        for y in (LANES - 1.3, bottom - 1.5)[: 1 + shared]:
            ax.text(number + 0.5, y + 0.5, str(number), ha="center", **middle)
    lanes = [(lane, LANES, 1, 1) for lane in range(WARP)]
    draw_boxes(ax, lanes, fill=False, edgecolor=style.MUTED, lw=0.5)
    draw_boxes(ax, [_inset(lanes[lane]) for lane in request.lanes], facecolor=style.INK, lw=0)
    labels = _row_labels(request)
    tops = {row: ROWS + PITCH * place for place, row in enumerate(labels)}
    for row, label in labels.items():
        ax.text(-0.6, tops[row] + 0.5, label, ha="right", **middle)
    size = request.array.itemsize
    firsts = sorted(set(request.addresses))
    boxes = {address: _cell(address, request.width, tops) for address in firsts}
    covered = {first + byte for first in firsts for byte in range(0, request.width, size)}
    lines = []
    for lane, address in zip(request.lanes, request.addresses, strict=True):
        x, y, width, _ = boxes[address]
        lines += [(lane + 0.5, LANES + 1), (x + width / 2, y)]
    style.segments(ax, lines, ec=color, lw=0.6, alpha=0.7)
    if shared:
        red = crowded(request)
        late = [box for address, box in boxes.items() if address in red]
        good = [box for address, box in boxes.items() if address not in red]
        frames = [(0, y, BANKS, 1) for y in tops.values()]
        draw_boxes(ax, frames, **_frame("shared", 0.5), edgecolor=style.MUTED)
        draw_boxes(ax, [_inset(box) for box in good], facecolor=color, lw=0)
        draw_boxes(ax, [_inset(box) for box in late], facecolor=style.FAULT, lw=0)
        return
    starts = [sector * SECTOR_BYTES for sector in request.sectors]
    loaded = {start + offset for start in starts for offset in range(0, SECTOR_BYTES, size)}
    pale = [_cell(address, size, tops) for address in sorted(loaded - covered)]
    frames = [(*_cell(start, size, tops)[:2], SECTOR_BYTES / BANK_BYTES, 1) for start in starts]
    draw_boxes(ax, [_inset(box) for box in pale], facecolor=color, alpha=0.35, lw=0)
    draw_boxes(ax, [_inset(box) for box in boxes.values()], facecolor=color, lw=0)
    draw_boxes(ax, frames, **_frame("global", 0.7), edgecolor=style.INK)


def _inset(box: Box) -> Box:
    """Return the box with a margin, so that neighbours are distinguishable."""
    x, y, width, height = box
    return x + 0.1 * width, y + 0.1, 0.8 * width, height - 0.2


def _cell(address: int, size: int, tops: dict[int, float]) -> Box:
    """Return the box of an element of `size` bytes at `address`, given the tops of the rows."""
    row, offset = divmod(address, ROW_BYTES)
    return offset / BANK_BYTES, tops[row], size / BANK_BYTES, 1


def _row_labels(request) -> dict[int, str]:
    """Return {row of 128 bytes: the first accessed element in it}, sorted by row."""
    labels: dict[int, str] = {}
    for address, lane in sorted((address, i) for i, address in enumerate(request.addresses)):
        labels.setdefault(address // ROW_BYTES, _label(request, lane))
    return labels


def _label(request, lane: int) -> str:
    return f"{request.array.name}[{', '.join(map(str, request.indices[lane]))}]"


def _bottom(request) -> float:
    """Return the y coordinate at which the panel of a request ends."""
    banks = 1.6 if request.array.space == "shared" else 0.2
    return ROWS + PITCH * len(_row_labels(request)) + banks


def banks_of(request) -> int:
    """Return the number of banks that a request accesses."""
    offsets = range(0, request.width, BANK_BYTES)
    return len({(a + byte) // BANK_BYTES % BANKS for a in request.addresses for byte in offsets})


def crowded(request) -> set[int]:
    """Return the addresses whose bank must deliver another word in the same request."""
    lane, address = np.array(request.lanes), np.array(request.addresses)
    ones = np.ones(lane.size, dtype=int)
    loads = np.full(lane.size, request.site.op == "load")
    late = hardware.conflicting(0 * ones, lane, address, request.width * ones, loads)
    return set(address[late].tolist())


def _cost(request) -> str:
    lanes = plural(len(request.lanes), "lane")
    if request.array.space == "shared":
        return f"{lanes}, {plural(banks_of(request), 'bank')}: {_short_cost(request)}"
    one = "s" if len(request.lanes) == 1 else ""
    does = {"load": f"ask{one} for", "store": f"store{one} to", "atomic": f"update{one}"}
    return f"{lanes} {does[request.site.op]} {_short_cost(request)}"


def _short_cost(request) -> str:
    if request.array.space == "shared":
        return plural(request.wavefronts, "wavefront")
    return plural(len(request.sectors), "sector")


counted = plural  # the name that chapter 5 imports


def times(number: int) -> str:
    """Return "never", "once", "twice", "3 times"."""
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number:,} times")


def reuse_finding(t, accesses: np.ndarray, who: str) -> str:
    """Return a sentence on how often loaded elements are used; `who` names the accessing unit."""
    reads = reads_per_store(t, accesses)
    if reads:
        low, high = reads
        often = times(low) if low == high else f"{low:,} to {high:,} times"
        return f"Each element that is put into shared memory is read {often}"
    loads = accesses[np.isin(accesses["site"], [site.id for site in t.sites if site.op == "load"])]
    if not loads.size:
        return f"The {who} loads nothing"
    different = len(np.unique(np.stack([loads["array"], loads["element"]], axis=1), axis=0))
    again = loads.size / different
    often = times(int(again)) if again == int(again) else f"{again:.3g} times on average"
    return f"The {who} loads {plural(different, 'different element')}, each {often}"


def _steps(accesses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the start and end of each phase, and the time of each access, in steps.

    A step is an access instruction of a warp. All warps start a phase together, and one empty step
    separates two phases.
    """
    keys = np.stack([accesses["phase"], accesses["warp"], accesses["request"]], axis=1)
    requests, which = np.unique(keys, axis=0, return_inverse=True)
    new = np.ones(len(requests), dtype=bool)
    new[1:] = (requests[1:, :2] != requests[:-1, :2]).any(axis=1)
    number = np.arange(len(requests))
    rank = number - np.maximum.accumulate(np.where(new, number, 0))
    lengths = np.ones(int(accesses["phase"].max()) + 1, dtype=int)
    np.maximum.at(lengths, requests[:, 0], rank + 1)
    ends = np.cumsum(lengths + 1) - 1
    starts = ends - lengths
    return starts, ends, (starts[requests[:, 0]] + rank)[which.ravel()]


def _turns(t, accesses: np.ndarray) -> str:
    """Return whether phases both store to and load from one shared array; "" without such."""
    phases: dict[str, set[tuple[int, int]]] = {"store": set(), "load": set()}
    shared = {array.id for array in t.arrays if array.space == "shared"}
    for site in (site for site in t.sites if site.op in phases):
        own = accesses[accesses["site"] == site.id]
        own = own[np.isin(own["array"], list(shared))]
        phases[site.op] |= set(zip(own["phase"].tolist(), own["array"].tolist(), strict=True))
    if not all(phases.values()):
        return ""
    both = {phase for phase, _ in phases["store"] & phases["load"]}
    if not both:
        return "No phase both stores to a shared array and loads from it"
    return f"A shared array is stored to and loaded from in {plural(len(both), 'phase')}"


def _phases(t, accesses: np.ndarray) -> list[str]:
    """Return the accesses of the phases in words: "phases 0, 2: load a, store sa"."""
    keys = np.stack([accesses["phase"], accesses["site"]], axis=1)
    pairs, first = np.unique(keys, axis=0, return_index=True)
    done: dict[int, dict[str, None]] = {}
    for phase, site in pairs[np.argsort(first)].tolist():
        done.setdefault(phase, {})[f"{DO[t.sites[site].op]} {t.sites[site].array}"] = None
    kinds: dict[str, list[int]] = {}
    for phase, touched in sorted(done.items()):
        kinds.setdefault(", ".join(touched), []).append(phase)
    lines = []
    for text, phases in kinds.items():
        listed = phases if len(phases) <= 4 else [*phases[:2], "…", phases[-1]]
        lines.append(f"phase{'s' * (len(phases) > 1)} {', '.join(map(str, listed))}: {text}")
    return lines


def _runs(cells: np.ndarray) -> list[tuple[int, int]]:
    """Return (start, end) of each run of true cells."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], cells.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _named_after(name: str) -> str | None:
    """Return the colour of the matrix in an array's name: a, sa, a_tile, tile_b, c_shared."""
    for part in name.lower().split("_"):
        letter = re.fullmatch(r"s?([abc])s?", part)
        if letter:
            return {"a": style.A, "b": style.B, "c": style.C}[letter[1]]
    return None


def _frame(space: str, width: float) -> dict:
    return {"fill": False, "lw": width, "ls": "-" if space == "global" else (0, (3, 1.5))}


def draw_boxes(ax: Axes, boxes: Sequence[Box], **look) -> None:
    """Draw boxes, of which there may be none, as one path."""
    style.boxes(ax, boxes, [(0.0, 0.0)], **look)
