"""operands.py: kernels write through views of arrays. On a GPU the same tests launch on it."""

import ctypes

import numpy as np
import pytest

from tiled_matmul.kit.backend import select
from tiled_matmul.microscope.cuda import trace

ON_GPU = select().on_gpu
pytestmark = [pytest.mark.gpu] * ON_GPU

import torch  # noqa: E402
from numba import cuda  # noqa: E402


@cuda.jit
def fill(x):
    row, column = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        x[row, column] = 10 * row + column


VIEWS = {
    "every second": lambda x: x[::2, :],
    "a column": lambda x: x[:, 1:2],
    "backwards": lambda x: x[::-1, ::-2],
    "a part": lambda x: x[1:3, 2:5],
    "a part of a part": lambda x: x[1:, ::2][::2, 1:],
    "a row": lambda x: x[2].reshape(1, 6),
    "reshaped": lambda x: x.reshape(3, 8),
    "flat": lambda x: x.ravel().reshape(8, 3),
}
COPIES = ("a row", "reshaped", "flat")  # of a matrix that lies by columns
EMPTY = {"empty": lambda x: x[4:, :], "an empty part": lambda x: x[0:0, 1:]}
VIEWS |= {} if ON_GPU else EMPTY


def of_torch(x):
    return torch.from_numpy(x.copy()).to("cuda" if ON_GPU else "cpu")


def on_host(make):
    def made(x):
        array = make(x.shape, x.dtype)
        array[:] = x
        return array

    return made


MAKES = {
    "device": cuda.to_device,
    "by columns": lambda x: cuda.to_device(np.asfortranarray(x)),
    "pinned": on_host(cuda.pinned_array),
    "mapped": on_host(cuda.mapped_array),
    "managed": on_host(cuda.managed_array),
    "torch": of_torch,
    "as_cuda_array": lambda x: cuda.as_cuda_array(of_torch(x)),
}

if ON_GPU:  # where Numba copies arrays of the host as a whole
    for host in ("pinned", "mapped", "managed"):
        del MAKES[host]


def content(array):
    if hasattr(array, "copy_to_host"):
        return array.copy_to_host()
    return array.cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)


def launched(x):
    fill[(2, 2), (8, 8)](x)
    cuda.synchronize()


@pytest.mark.parametrize("run", [launched, lambda x: trace(fill, (2, 2), (8, 8), x)])
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_kernel_writes_through_a_view(make, view, run):
    expected = np.arange(24, dtype=np.float32).reshape(4, 6)
    array, seen = MAKES[make](expected), VIEWS[view]
    if make == "torch" and view == "backwards":
        with pytest.raises(ValueError, match="step must be greater than zero"):
            seen(array)
        return
    if make == "by columns" and view == "reshaped" and ON_GPU:
        pytest.skip("Numba takes the elements in their order in memory")
    if make == "by columns" and view in COPIES:
        with pytest.raises(NotImplementedError):
            seen(array)
        return
    part = seen(expected)
    part[:] = 10 * np.arange(part.shape[0])[:, None] + np.arange(part.shape[1])
    run(seen(array))
    np.testing.assert_array_equal(content(array), expected)


@cuda.jit
def shift(x, y):
    for i in range(x.size):
        y[i] = x[i]


@pytest.mark.parametrize("run", [lambda *x: shift[1, 1](*x), lambda *x: trace(shift, 1, 1, *x)])
def test_views_that_overlap_are_one_memory(run):
    x = cuda.to_device(np.arange(6.0))
    run(x[:-1], x[1:])
    assert x.copy_to_host().tolist() == [0] * 6
    x[::2] = 5
    x[1::4] = cuda.to_device(np.array([7.0, 8.0]))
    assert x.copy_to_host().tolist() == [5, 7, 5, 0, 5, 8]
    assert x[1:4].copy_to_host().tolist() == [7, 5, 0] and x[5] == 8


def test_an_array_has_the_limits_of_one_on_a_gpu():
    x = cuda.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    for index in (None, ..., [0, 1], (0, None)):
        with pytest.raises(TypeError):
            x[index]
    with pytest.raises(NotImplementedError):
        x[::-1].copy_to_host()
    with pytest.raises(NotImplementedError):
        x[0].T  # noqa: B018
    with pytest.raises(ValueError, match="contiguous"):
        x[:, ::2].copy_to_device(np.zeros((2, 2), np.float32))
    transposed = x.T  # new memory
    fill[1, (4, 4)](transposed)
    assert transposed.copy_to_host()[2, 1] == 21 and x.copy_to_host()[1, 2] == 5


@cuda.jit
def scalar(x):
    x[()] = 3


def test_an_array_without_axes():
    x = cuda.to_device(np.zeros(()))
    scalar[1, 1](x)
    assert x.copy_to_host() == 3


class OnGpu:
    """An array of a GPU, in memory of the host."""

    def __init__(self, array):
        interface = array.__array_interface__
        names = ("shape", "typestr", "data", "strides", "version")
        self.__cuda_array_interface__ = {name: interface[name] for name in names}


class Raw:
    """Its bytes, as Numba has them."""

    def __init__(self, interface):
        (size,), (address, _) = interface["shape"], interface["data"]
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def copy_to_host(self):
        return self.bytes.copy()

    def copy_to_device(self, host):
        self.bytes[:] = host


@pytest.mark.skipif(ON_GPU, reason="there is a GPU")
@pytest.mark.parametrize("view", VIEWS)
def test_memory_of_a_gpu_is_copied_there_and_back(monkeypatch, view):
    monkeypatch.setattr(cuda, "from_cuda_array_interface", Raw, raising=False)
    array, expected = (np.arange(24, dtype=np.float32).reshape(4, 6) for _ in range(2))
    VIEWS[view](expected)[:] = 1
    VIEWS[view](expected)[:1] = 2

    @cuda.jit
    def two_views(x, first):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                x[i, j] = 1
                if i == 0:
                    first[i, j] += 1

    x = VIEWS[view](array)
    trace(two_views, 1, 1, OnGpu(x), OnGpu(x[:1]))
    np.testing.assert_array_equal(array, expected)
