# NBVAL_CHECK_OUTPUT
from tiled_matmul.ladder import cuda_thread_tile_1d, cuda_thread_tile_2d
from tiled_matmul.microscope.cuda import watch
from tiled_matmul.problem import Problem

m, n, k = 70, 20, 9
for module in (cuda_thread_tile_1d, cuda_thread_tile_2d):
    with watch() as traces:
        module.matmul(*Problem(m, n, k).inputs(device="cpu"))
    tile = module.TILE_M, module.TILE_N
    print(tile, global_loads(m, n, k, *tile), traces[0].global_loads.lanes)
