"""What programs call on the host, as Numba's and Triton's documentation does, without a GPU.

Each idiom works as on a GPU, or says in plain words that it needs one.
"""

import numpy as np
import pytest

from tiled_matmul.kit.backend import select
from tiled_matmul.machine.backend import NeedsGpu

if select().name != "simulator":
    pytest.skip("there is a GPU", allow_module_level=True)

import numba
import torch
import triton
import triton.language as tl
from numba import cuda, float32, int32, types


@cuda.jit
def plus_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


@cuda.jit
def fill(x):
    row, column = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        x[row, column] = 10 * row + column


@triton.jit
def double(x, n, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def zeros(*shape):
    return cuda.to_device(np.zeros(shape, np.float32))


# What works.


def streams():
    stream, x = cuda.stream(), np.zeros(8, np.float32)
    with stream.auto_synchronize():
        y = cuda.to_device(x, stream=stream)
        plus_one[1, 8, stream](y)
        plus_one[1, 8, stream, 0](y)
        y.copy_to_host(x, stream=stream)
    called = []
    stream.add_callback(lambda stream, status, arg: called.append(arg), "done")
    stream.synchronize()
    cuda.default_stream().synchronize()
    cuda.synchronize()
    assert called == ["done"]
    return x.tolist() == [2] * 8


def events():
    start, end = cuda.event(), cuda.event(timing=True)
    start.record(), end.record(stream=cuda.stream())
    end.wait(), end.synchronize()
    return start.query()


def pinned_and_mapped_memory():
    x = cuda.pinned_array(4, dtype=np.float32)
    y = cuda.mapped_array((4,), dtype=np.float32, portable=True)
    z = cuda.managed_array(8, dtype=np.float32)
    for array in (x, y, z):
        array[:] = 0
        plus_one[1, 4](array[::2])
    with cuda.pinned(x, y), cuda.mapped(x) as mapped, cuda.mapped(x, y) as (_, other):
        plus_one[1, 4](mapped)
        plus_one[1, 4](other)
    like = cuda.mapped_array_like(x), cuda.pinned_array_like(x), cuda.device_array_like(x)
    assert [each.shape for each in like] == [(4,)] * 3
    return [a.tolist() for a in (x, y.copy_to_host())] == [[2, 1, 2, 1]] * 2 and z.sum() == 4


def profiling():
    cuda.profile_start(), cuda.profile_stop()
    with cuda.profiling():
        return True


def the_device():
    device, context = cuda.get_current_device(), cuda.current_context()
    free, total = context.get_memory_info()
    with cuda.gpus[0]:
        assert cuda.select_device(0) is device and len(cuda.list_devices()) == 1
    assert "no GPU" in device.name and "no GPU" in cuda.gpus[0].name
    assert cuda.is_available() and device.MULTIPROCESSOR_COUNT == 132
    assert device.compute_capability == context.device.compute_capability == (9, 0)
    assert device.MAX_THREADS_PER_BLOCK == 1024 and device.WARP_SIZE == 32
    return 0 < free <= total


def detect():
    return cuda.detect() is False


def launches():
    x = zeros(200)
    plus_one.forall(200)(x)
    plus_one.forall(200, tpb=64, stream=cuda.stream(), sharedmem=0)(x)
    plus_one.configure(2, 128)(x)
    plus_one.specialize(x)[2, 128](x)
    launch = plus_one[2, 128]
    launch(x)
    return x.copy_to_host().tolist() == [5] * 200


def hints():
    x, y = np.zeros(4, np.float32), np.zeros(4, np.float32)
    plus_one[1, 4](cuda.In(x))
    plus_one[1, 4](cuda.InOut(y))
    z = np.zeros((2, 2), np.float32)
    fill[1, (2, 2)](cuda.Out(z))
    return (x.sum(), y.sum(), z.sum()) == (0, 4, 22)


def options_of_the_compiler():
    for options in (
        {"lineinfo": True, "fastmath": True, "max_registers": 64, "launch_bounds": (128, 2)},
        {"debug": True, "opt": False},
        {"cache": True, "inline": "always", "lto": True},
    ):
        x = zeros(4)
        cuda.jit(**options)(plus_one.py_func)[1, 4](x)
        assert x.copy_to_host().sum() == 4
    return True


SIGNATURES = (
    "void(float32[:], int32)",
    "void(float32[::1], int32)",
    "(float32[:], int32)",
    ["void(float64[:], int64)", "void(float32[:], int32)"],
    numba.void(float32[:], int32),
    [numba.void(types.Array(float32, 1, "C"), int32)],
    (float32[:], int32),
)


def half_of(n):
    return n / 2


def signatures():
    def plus(x, n):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += half(n)

    half = cuda.jit("float32(float32)", device=True)(half_of)
    for signature in SIGNATURES:
        x = zeros(4)
        kernel = cuda.jit(signature)(plus)
        kernel[1, 4](x, 7.9)  # an int32 by the signature
        assert x.copy_to_host().tolist() == [3.5] * 4, signature
        with pytest.raises(TypeError, match=r"plus is compiled for .*, got \(array\(int8, 1d, C\)"):
            kernel[1, 4](np.zeros(4, np.int8), 7)
    return True


def reductions():
    total = cuda.reduce(lambda a, b: a + b)
    return total(np.arange(10.0)) == 45


def arrays_of_torch():
    x = torch.zeros(6)
    assert cuda.is_cuda_array(cuda.as_cuda_array(x))
    plus_one[1, 4](cuda.as_cuda_array(x[::2]))
    return x.tolist() == [1, 0] * 3


def tuner(**options):
    configs = [triton.Config({"BLOCK": block}, num_warps=4, num_stages=2) for block in (16, 32)]
    return triton.autotune(configs, key=["n"], **options)(double)


def autotune():
    for options in (
        {},
        {"reset_to_zero": ["x"]},
        {"restore_value": ["x"]},
        {"warmup": 5, "rep": 10},
        {"use_cuda_graph": True},
        {"prune_configs_by": {"early_config_prune": lambda configs, *a, **b: configs[:2]}},
    ):
        kernel = tuner(**options)
        x = torch.ones(40)
        with pytest.warns(UserWarning, match="nothing is timed without a GPU: double takes"):
            kernel[lambda meta: (triton.cdiv(40, meta["BLOCK"]),)](x, 40)
        wanted = 0 if "reset_to_zero" in options else 2
        assert x.tolist() == [wanted] * 40, options
        assert kernel.best_config.kwargs == {"BLOCK": 16}
    return True


def autotune_by_a_clock_of_your_own():
    calls = []

    def timed(call, quantiles):
        call()
        calls.append(call)
        return [2.0 - len(calls)] * 3

    kernel, x = tuner(do_bench=timed, restore_value=["x"]), torch.ones(32)
    kernel[(1,)](x, 32)
    return kernel.best_config.kwargs == {"BLOCK": 32} and x.tolist() == [2] * 32


def heuristics():
    kernel = triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})(double)
    x = torch.ones(20)
    kernel[(1,)](x, 20)
    kernel.run(x, 20, grid=(1,), warmup=False)
    return x.tolist() == [4] * 20


def warmup():
    double.warmup(torch.float32, 8, BLOCK=8, grid=(1,))
    tuner().warmup(torch.float32, 8, grid=(1,))
    return True


def the_driver():
    active = triton.runtime.driver.active
    properties = active.utils.get_device_properties(active.get_current_device())
    assert properties["multiprocessor_count"] == 132
    assert active.get_current_target().backend == "cuda"
    x = torch.ones(8, device=active.get_active_torch_device())
    double[(1,)](x, 8, BLOCK=8)
    return x.tolist() == [2] * 8


WORK = (
    *(streams, events, pinned_and_mapped_memory, profiling, the_device, detect, launches, hints),
    *(options_of_the_compiler, signatures, reductions, arrays_of_torch, autotune),
    *(autotune_by_a_clock_of_your_own, heuristics, warmup, the_driver),
)


@pytest.mark.parametrize("idiom", WORK, ids=lambda idiom: idiom.__name__)
def test_an_idiom_works(idiom):
    assert idiom()


# What needs a GPU.

NEEDS_GPU = """
cuda.event_elapsed_time(cuda.event(), cuda.event(timing=True))
cuda.event().elapsed_time(cuda.event())
cuda.external_stream(0)
cuda.declare_device("f", "float32(float32)")
cuda.jit(link=["f.cu"])
cuda.compile_ptx(plus_one.py_func, (float32[:],))
cuda.compile(plus_one.py_func, (float32[:],))
cuda.get_current_device().CLOCK_RATE
cuda.runtime.get_version()
cuda.open_ipc_array(b"", 4, np.float32)
zeros(4).get_ipc_handle()
cuda.set_memory_manager(None)
numba.vectorize("float32(float32)", target="cuda")(half_of)
numba.guvectorize("void(float32[:], float32[:])", "(n)->(n)", target="cuda")(plus_one.py_func)
plus_one.overloads
plus_one.signatures
plus_one.inspect_asm()
plus_one.inspect_llvm()
plus_one.inspect_sass()
plus_one.inspect_types()
plus_one.get_regs_per_thread()
plus_one.get_shared_mem_per_block()
plus_one.compile("void(float32[:])")
triton.testing.do_bench(lambda: None)
triton.testing.do_bench_cudagraph(lambda: None)
double[(1,)](torch.ones(8), 8, BLOCK=8).asm["ptx"]
double.device_caches
triton.compile(triton.compiler.ASTSource(double, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}))
double.warmup(torch.float32, 8, BLOCK=8, grid=(1,)).n_regs
triton.runtime.driver.active.get_device_interface()
"""


@pytest.mark.parametrize("idiom", NEEDS_GPU.split("\n")[1:-1])
def test_an_idiom_says_that_it_needs_a_gpu(idiom):
    with pytest.raises(NeedsGpu, match="GPU|interpreter here") as raised:
        eval(idiom)
    text = str(raised.value)
    assert len(text) < 400 and not {"NoneType", "driver.active", "Fake"} & set(text.split())


def test_a_kernel_that_is_called_says_how_to_launch_it():
    with pytest.raises(TypeError, match=r"launch a kernel as double\[grid\]"):
        double(torch.ones(8), 8, 8)
    with pytest.raises(TypeError, match=r"launch it as plus_one\[grid, block\]"):
        plus_one(zeros(8))


def test_what_needs_a_gpu_is_missing_for_hasattr():
    assert not hasattr(plus_one, "overloads") and not hasattr(cuda, "IpcHandle")
    with pytest.raises(AttributeError, match="a kernel has no overload"):
        plus_one.overload  # noqa: B018
