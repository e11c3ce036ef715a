"""The hardware's rules for the 32 addresses of a warp, as functions of arrays.

Global memory moves in sectors of 32 bytes, each once for a request. Shared memory has 32 banks of
4 bytes; one wavefront serves one word of each bank, to any number of lanes.
Sources: NVIDIA, CUDA C++ Programming Guide, "Shared Memory"; Nsight Compute documentation, "Memory
Tables". The tests compare with counters that were taken on a GPU.
"""

from __future__ import annotations

import numpy as np

WARP = 32
SECTOR_BYTES = 32
L1_LINE_BYTES = 128  # four sectors
PAST_L1_BYTES = 16  # an asynchronous copy of this size per lane bypasses the L1 cache
BANKS = 32
BANK_BYTES = 4
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
STATIC_SHARED_BYTES = 48 * 1024
SHARED_BYTES = 227 * 1024  # the maximum of a block, on compute capability 9.0
ALIGNMENT = 512  # of an allocation on a GPU, at least


def distinct_sectors(request: np.ndarray, address: np.ndarray, count: int) -> np.ndarray:
    """Return the number of distinct sectors of each of `count` requests.

    `request` numbers the request of each access, `address` is its byte address.
    """
    sector = address // SECTOR_BYTES
    low = sector.min() if sector.size else 0
    span = int(sector.max() - low) + 1 if sector.size else 1
    pairs = np.unique(request * span + (sector - low))
    return np.bincount(pairs // span, minlength=count)


def past_l1(
    request: np.ndarray, lane: np.ndarray, address: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return two counters for `count` requests that copy 16 bytes per lane past the L1 cache.

    `request`, `lane` and `address` (bytes) describe each access; several accesses of a lane are
    parts of its 16 bytes. Unlike in `distinct_sectors`, only lanes 2i and 2i + 1 are combined. The
    first array holds the sectors of the copies' own counter: one for a pair of lanes that load the
    two halves of a sector, else one for each lane, even if both load the same. The second holds the
    sectors that the counter of global loads adds: the lines of 128 bytes that each pair accesses.
    No document states these rules. They were inferred from five launches on an H200, which other
    rules may fit, too.
    """
    which, first = np.unique(request * WARP + lane, return_index=True)
    piece, line = address[first] // PAST_L1_BYTES, address[first] // L1_LINE_BYTES
    pair = np.flatnonzero(which[:-1] // 2 == which[1:] // 2)
    filled = pair[piece[pair] ^ 1 == piece[pair + 1]]
    met = pair[line[pair] == line[pair + 1]]
    lanes, once_filled, once_met = (
        np.bincount(rows // WARP, minlength=count) for rows in (which, which[filled], which[met])
    )
    return lanes - once_filled, lanes - once_met


def wavefronts(
    request: np.ndarray,
    lane: np.ndarray,
    address: np.ndarray,
    width: np.ndarray,
    loads: np.ndarray,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (wavefronts, bank conflicts) of each of `count` requests.

    `request`, `lane`, `address` (bytes), `width` (bytes of the element) and `loads` (whether it is
    a load) describe each access to shared memory. Elements of 8 bytes are served half a warp at a
    time, those of 16 bytes a quarter. Two neighbouring parts of a load are served together if lanes
    2i and 2i + 1 always load the same. Within a part, a bank with n different words takes n
    wavefronts. No document states the rule for pairs: it was inferred from counters of an H200.
    """
    _, word, group = _words(request, lane, address, width, loads)
    line = word // BANKS
    lines = int(line.max()) + 1 if line.size else 1
    distinct = np.unique((group * BANKS + word % BANKS) * lines + line)
    bank, depth = np.unique(distinct // lines, return_counts=True)
    part_of, starts = np.unique(bank // BANKS, return_index=True)
    deepest = np.maximum.reduceat(depth, starts) if starts.size else depth
    waves = np.bincount(part_of // 8, weights=deepest, minlength=count).astype(np.int64)
    return waves, waves - np.bincount(part_of // 8, minlength=count)


def conflicting(
    request: np.ndarray,
    lane: np.ndarray,
    address: np.ndarray,
    width: np.ndarray,
    loads: np.ndarray,
) -> np.ndarray:
    """Return for each access whether its bank must deliver another word in the same part, too.

    Arguments and rules are those of `wavefronts`. A request has bank conflicts if any of its
    accesses has one.
    """
    access, word, group = _words(request, lane, address, width, loads)
    pairs = np.unique(np.stack([group * BANKS + word % BANKS, word]), axis=1)
    bank, depth = np.unique(pairs[0], return_counts=True)
    crowded = np.isin(group * BANKS + word % BANKS, bank[depth > 1])
    return np.bincount(access, weights=crowded, minlength=request.size) > 0


def _words(
    request: np.ndarray,
    lane: np.ndarray,
    address: np.ndarray,
    width: np.ndarray,
    loads: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each word of four bytes, its access, its number, and the part that accesses it.

    Parts are numbered across all requests, eight for each.
    """
    part = lane // np.where(width <= BANK_BYTES, WARP, WARP * BANK_BYTES // np.maximum(width, 1))
    wide = np.flatnonzero((width > BANK_BYTES) & loads)
    if wide.size:
        # Parts 2p and 2p + 1 of a request, and within them the pairs of lanes.
        both = request[wide] * 4 + part[wide] // 2
        pair = both * (WARP // 2) + lane[wide] // 2
        order = np.argsort(pair, kind="stable")
        starts = np.flatnonzero(np.r_[True, pair[order][1:] != pair[order][:-1]])
        low = np.minimum.reduceat(address[wide][order], starts)
        high = np.maximum.reduceat(address[wide][order], starts)
        apart = np.unique(both[order[starts[low != high]]])
        part[wide] -= np.where(np.isin(both, apart), 0, part[wide] % 2)
    words = np.maximum(width // BANK_BYTES, 1)
    rows = np.repeat(np.arange(request.size), words)
    step = np.arange(rows.size) - np.repeat(np.cumsum(words) - words, words)
    word = address[rows] // BANK_BYTES + step
    return rows, word, request[rows] * 8 + part[rows]
