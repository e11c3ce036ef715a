"""What the kernels of this chapter with rectangular thread tiles have in common."""

from __future__ import annotations

from typing import Any

from tiled_matmul.grader.spec import PADDED, Case, cover

TX, TY = 32, 2
OWN_M, OWN_N, TILE_K = 4, 2, 4
SECTOR = 8  # floats


def sizes(own_m: int, own_n: int, tile_k: int = TILE_K) -> dict[str, Any]:
    """Return the constants of the exercises for a thread tile of own_m × own_n."""
    own = {"OWN_M": own_m, "OWN_N": own_n}
    return own | {"TILE_M": TY * own_m, "TILE_N": TX * own_n, "TILE_K": tile_k}


GIVEN = {"TX": TX, "TY": TY, **sizes(OWN_M, OWN_N)}


# Of the cases with a large M, N and K: as little work as such a size allows.
FAR = ({"given": sizes(8, 1)}, {"given": sizes(1, 4)}, {"given": sizes(1, 1)})


def of(case: Case) -> dict[str, Any]:
    """Return the constants that hold in a case."""
    return GIVEN | dict(case.given)


def own(case: Case) -> int:
    """Return how many elements of C a thread has."""
    return of(case)["OWN_M"] * of(case)["OWN_N"]


def loads_of_a_thread(case: Case) -> int:
    """Return what a thread loads along K, with room for its part of the tiles."""
    now = of(case)
    return (now["OWN_M"] + now["OWN_N"]) * (case.k + PADDED)


def launch(case: Case) -> tuple:
    """Return the grid that covers C with the case's tiles, and a block of TX × TY threads."""
    now = of(case)
    return (cover(case.n, now["TILE_N"]), cover(case.m, now["TILE_M"])), (TX, TY)


def shared_loads(case: Case) -> int:
    """Return what thread tiles load from shared memory in whole steps: each element once."""
    now = of(case)
    (across, down), _ = launch(case)
    steps = cover(case.k, now["TILE_K"]) * now["TILE_K"]
    return across * down * TX * TY * steps * (now["OWN_M"] + now["OWN_N"])


def global_loads(case: Case) -> int:
    """Return how many elements whole tiles load: some threads load beyond an edge what is there."""
    now = of(case)
    (across, down), _ = launch(case)
    steps = cover(case.k, now["TILE_K"]) * now["TILE_K"]
    return across * down * steps * (now["TILE_M"] + now["TILE_N"])


def sectors_of_rows(case: Case) -> int:
    """Return how many sectors rows of whole tiles take at most, wherever they begin."""
    now = of(case)
    (across, down), _ = launch(case)
    steps = cover(case.k, now["TILE_K"]) * now["TILE_K"]
    each = sum(_most(now[name]) for name in ("TILE_M", "TILE_N"))
    return across * down * steps * each


def _most(elements: int) -> int:
    """Sectors of a row of a tile: pieces of a warp, which may all begin within a sector."""
    return elements // SECTOR + 2 * cover(elements, 32) + 1
