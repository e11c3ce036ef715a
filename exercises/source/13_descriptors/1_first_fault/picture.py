from tiled_matmul.models.ring import run
from tiled_matmul.plots import ring as figures


def copying(ring, tiles):
    for i in range(tiles):
        while ring.empty[i % ring.stages].phase != i // ring.stages % 2:
            yield
        ring.copy(i, i % ring.stages)
        yield


def multiplying(ring, tiles):
    for i in range(tiles):
        while ring.full[i % ring.stages].phase == i // ring.stages % 2:
            yield
        yield from ring.multiply(i % ring.stages)
        ring.empty[i % ring.stages].arrive()


rings = {
    "copies take 3 units, products 2": run(copying, multiplying, 7, stages=2, copy_time=3),
    "copies take 2 units, products 3": run(
        copying, multiplying, 7, stages=2, copy_time=2, multiply_time=3
    ),
}
figures.ring(rings, "Above, products wait for full; below, copies wait for empty")
