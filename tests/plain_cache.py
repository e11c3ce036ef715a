"""What `models.cache` counts, the slow way: dictionaries for sets, nothing compiled."""

from collections import OrderedDict
from itertools import islice, product

from tiled_matmul.models.cache import iterations


def in_tiles(order, tile, m, n, k):
    """Yield (i, j, k, start): start says that the innermost loop begins anew."""
    inner = order[2]
    for i0, j0, k0 in product(range(0, m, tile), range(0, n, tile), range(0, k, tile)):
        sizes = (min(tile, m - i0), min(tile, n - j0), min(tile, k - k0))
        for i, j, p in iterations(order, *sizes):
            yield i0 + i, j0 + j, k0 + p, {"i": i, "j": j, "k": p}[inner] == 0


def played(order, m, n, k, cache, itemsize=4, tile=None, turns=None):
    """Return (misses of each matrix, accesses, lines in each set, the newest last).

    With `turns`, after so many turns of the innermost loop.
    """
    lines_of = lambda elements: -(-elements * itemsize // cache.line)  # noqa: E731
    base = {"a": 0, "b": lines_of(m * k), "c": lines_of(m * k) + lines_of(k * n)}
    sets = [OrderedDict() for _ in range(cache.sets)]
    misses, accesses = {"a": 0, "b": 0, "c": 0}, 0
    lacks = {"j": "a", "i": "b", "k": "c"}[order[2]]
    for i, j, p, start in islice(in_tiles(order, tile or max(m, n, k), m, n, k), turns):
        for name, element in (("a", i * k + p), ("b", p * n + j), ("c", i * n + j)):
            if name == lacks and not start:
                continue
            accesses += 1
            line = base[name] + element * itemsize // cache.line
            kept = sets[line % cache.sets]
            if line in kept:
                kept.move_to_end(line)
                continue
            misses[name] += 1
            kept[line] = True
            if len(kept) > cache.ways:
                kept.popitem(last=False)
    return misses, accesses, [list(kept) for kept in sets]
