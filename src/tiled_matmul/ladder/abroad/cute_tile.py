"""C (M, N) = A (M, K) · B (K, N) in CuTe DSL: TMA in, wgmma, TMA out, sums in float32."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.memory import SmemAllocator
from cutlass.pipeline import Agent, CooperativeGroup, PipelineTmaAsync
from cutlass.utils import LayoutEnum
from cutlass.utils import hopper_helpers as hopper

F16, F32, Const = cutlass.Float16, cutlass.Float32, cutlass.Constexpr
BM, BK = 128, 64
GROUP = 8  # rows of tiles that blocks take together, column by column
WARPS = 8  # they multiply, and one more copies


def partition(atom, shared, tiles):
    shared, tiles = cute.group_modes(shared, 0, 2), cute.group_modes(tiles, 0, 2)
    return cpasync.tma_partition(atom, 0, cute.make_layout(1), shared, tiles)


@cute.kernel
def cute_tile(
    mma: cute.TiledMma,
    tma_atom_a: cute.CopyAtom,
    a: cute.Tensor,
    tma_atom_b: cute.CopyAtom,
    b: cute.Tensor,
    tma_atom_c: cute.CopyAtom,
    c: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    layout_c: cute.ComposedLayout,
    BN: Const,
    STAGES: Const,
):
    i, j, panel = cute.arch.block_idx()
    i += GROUP * panel
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    memory = SmemAllocator()
    a_shared = memory.allocate_tensor(F16, layout_a.outer, 1024, layout_a.inner)
    b_shared = memory.allocate_tensor(F16, layout_b.outer, 1024, layout_b.inner)
    c_at = cute.recast_ptr(b_shared.iterator, layout_c.inner, F16)
    c_shared = cute.make_tensor(c_at, layout_c.outer)  # over B's, when that is read
    producer, consumer = PipelineTmaAsync.create(
        num_stages=STAGES,
        barrier_storage=memory.allocate_array(cutlass.Int64, 2 * STAGES),
        tx_count=(BM + BN) * BK * 2,  # bytes that a stage waits for
        producer_group=CooperativeGroup(Agent.Thread),
        consumer_group=CooperativeGroup(Agent.Thread, WARPS),
    ).make_participants()
    a_tiles = cute.local_tile(a, (BM, BK), (i, None))
    b_tiles = cute.local_tile(b, (BN, BK), (j, None))
    c_tile = cute.local_tile(c, (BM, BN), (i, j))
    steps = cute.size(a_tiles, mode=[2])
    if warp == WARPS:
        a_to, a_from = partition(tma_atom_a, a_shared, a_tiles)
        b_to, b_from = partition(tma_atom_b, b_shared, b_tiles)
        cpasync.prefetch_descriptor(tma_atom_a)
        cpasync.prefetch_descriptor(tma_atom_b)
        for k in range(steps):
            stage = producer.acquire_and_advance()
            at, full = stage.index, stage.barrier
            cute.copy(tma_atom_a, a_from[None, k], a_to[None, at], tma_bar_ptr=full)
            cute.copy(tma_atom_b, b_from[None, k], b_to[None, at], tma_bar_ptr=full)
        producer.tail()
    else:
        own = mma.get_slice(thread)
        a_part = mma.make_fragment_A(own.partition_A(a_shared))
        b_part = mma.make_fragment_B(own.partition_B(b_shared))
        acc = cute.make_rmem_tensor(mma.partition_shape_C((BM, BN)), F32)
        acc.fill(0.0)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        for _ in range(steps):
            stage = consumer.wait_and_advance()
            here = (None, None, None, stage.index)
            warpgroup.fence()
            cute.gemm(mma, acc, a_part[here], b_part[here], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            stage.release()
        rounded = cute.make_fragment_like(acc, F16)
        rounded.store(acc.load().to(F16))
        cute.arch.barrier(barrier_id=1, number_of_threads=32 * WARPS)  # all have read B
        cute.autovec_copy(rounded, own.partition_C(c_shared))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(barrier_id=1, number_of_threads=32 * WARPS)
        if warp == 0:
            c_from, c_to = partition(tma_atom_c, c_shared, c_tile)
            cute.copy(tma_atom_c, c_from, c_to)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, BN: Const, STAGES: Const):
    tile = (BM, BN, BK)
    b = cute.make_tensor(b.iterator, cute.select(b.layout, mode=[1, 0]))  # as (N, K)
    majors = OperandMajorMode.K, OperandMajorMode.MN
    mma = hopper.make_trivial_tiled_mma(F16, F16, *majors, F32, (2, 1, 1), (64, BN))
    layout_a = hopper.make_smem_layout_a(LayoutEnum.ROW_MAJOR, tile, F16, STAGES)
    layout_b = hopper.make_smem_layout_b(LayoutEnum.COL_MAJOR, tile, F16, STAGES)
    layout_c = hopper.make_smem_layout_epi(F16, LayoutEnum.ROW_MAJOR, (BM, BN), 1)
    a_stage, b_stage, layout_c = (
        cute.select(layout, mode=[0, 1]) for layout in (layout_a, layout_b, layout_c)
    )
    load, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    tma_atom_a, a = cpasync.make_tiled_tma_atom(load, a, a_stage, (BM, BK))
    tma_atom_b, b = cpasync.make_tiled_tma_atom(load, b, b_stage, (BN, BK))
    tma_atom_c, c_out = cpasync.make_tiled_tma_atom(store, c, layout_c, (BM, BN))
    operands = mma, tma_atom_a, a, tma_atom_b, b, tma_atom_c, c_out
    grid = (GROUP, cute.ceil_div(c.shape[1], BN), cute.ceil_div(c.shape[0], BM * GROUP))
    cute_tile(*operands, layout_a, layout_b, layout_c, BN, STAGES).launch(
        grid=grid, block=(32 * (WARPS + 1), 1, 1)
    )
