"""What PyTorch's users hang on operators and layers: swapped layers answer as `nn.Linear` does."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from tiled_matmul.kit.backend import select
from tiled_matmul.torch import MLP, Linear, bmm, linear, matmul, swap

PLACE = "cuda" if select().on_gpu else "cpu"
HALF = torch.bfloat16


def model(kind=nn.Linear):
    torch.manual_seed(0)
    return nn.Sequential(kind(24, 40), nn.ReLU(), kind(40, 8)).to(PLACE)


def pair():
    """Return a model of torch's layers and a copy whose layers are the course's."""
    plain = model()
    ours = copy.deepcopy(plain)
    assert swap(ours) == 2
    return plain, ours


def numbers(*shape, seed=1, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(PLACE, dtype)


def largest(x):
    return float(x.detach().abs().max())


def assert_alike(plain, ours, x, tolerance=1e-5):
    """Compare outputs and all gradients."""
    outputs = []
    for net in (plain, ours):
        net.zero_grad()
        each = x.clone().requires_grad_()
        y = net(each)
        (y.float() ** 2).sum().backward()
        grads = [p.grad for p in net.parameters() if p.requires_grad]
        outputs.append([y, each.grad, *grads])
    assert len(outputs[0]) == len(outputs[1])
    for one, other in zip(*outputs, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance * largest(one))


# --- autocast -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias_dtype", [torch.float32, HALF, torch.float16])
@pytest.mark.parametrize("weight_dtype", [torch.float32, HALF])
@pytest.mark.parametrize("x_dtype", [torch.float32, HALF, torch.float16])
def test_under_autocast_dtypes_may_differ_as_for_nn_linear(x_dtype, weight_dtype, bias_dtype):
    x, weight = numbers(6, 24, dtype=x_dtype), numbers(40, 24, seed=2, dtype=weight_dtype)
    bias = numbers(40, seed=3, dtype=bias_dtype)
    results = []
    for layer in (nn.functional.linear, linear):
        leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
        with torch.autocast(PLACE, HALF):
            y = layer(*leaves)
            assert y.dtype == HALF
        y.float().square().sum().backward()
        results.append([y, *(leaf.grad for leaf in leaves)])
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(other, one, rtol=2e-2, atol=2e-2 * largest(one))


@pytest.mark.parametrize("by", ["grad", "vmap", "jvp"])
def test_under_autocast_and_torch_func_dtypes_may_differ(by):
    x, weight, bias = numbers(6, 24), numbers(40, 24, seed=2, dtype=HALF), numbers(40, seed=3)

    def total(x):
        return linear(x, weight, bias).float().sum()

    with torch.autocast(PLACE, HALF):
        if by == "grad":
            got = torch.func.grad(total)(x)
        elif by == "vmap":
            got = torch.func.vmap(lambda row: linear(row, weight, bias))(x)
        else:
            _, got = torch.func.jvp(lambda x: linear(x, weight, bias), (x,), (torch.ones_like(x),))
    assert bool(torch.isfinite(got.float()).all())


def test_without_autocast_a_bias_of_another_dtype_is_quoted():
    x, weight, bias = numbers(6, 24), numbers(40, 24), numbers(40, dtype=HALF)
    message = r"bias \(40,\) is torch.bfloat16 and weight \(40, 24\) is torch.float32"
    with pytest.raises(TypeError, match=message):
        linear(x, weight, bias)
    with pytest.raises(TypeError, match=message):
        torch.func.vmap(lambda row: linear(row, weight, bias))(x)
    with torch.autocast(PLACE, enabled=False), pytest.raises(TypeError, match=message):
        linear(x, weight, bias)


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_a_swapped_model_trains_under_autocast_as_before(where):
    plain, ours = pair()
    x, grads = numbers(6, 24), []
    for net in (plain, ours):
        with torch.autocast(PLACE, HALF):
            loss = net(x).float().square().mean()
            if where == "inside":
                loss.backward()
        if where == "outside":
            loss.backward()
        grads.append([p.grad for p in net.parameters()])
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(other, one, rtol=3e-2, atol=3e-2 * largest(one))


# --- FLOPs, profiler, graphs ----------------------------------------------------------------------


def flops(call):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_a_swapped_model_counts_the_flops_of_nn_linear():
    plain, ours = pair()
    x = numbers(7, 24)
    for call in (lambda net: net(x), lambda net: net(x.clone().requires_grad_()).sum().backward()):
        wanted = flops(lambda call=call: call(plain))
        assert wanted and flops(lambda call=call: call(ours)) == wanted
    assert flops(lambda: plain(x)) == 2 * 7 * (24 * 40 + 40 * 8)


@pytest.mark.parametrize("ours, theirs", [(matmul, torch.mm), (bmm, torch.bmm)])
def test_products_count_their_flops_forwards_and_backwards(ours, theirs):
    batch = () if ours is matmul else (3,)
    a, b = numbers(*batch, 6, 10), numbers(*batch, 10, 4)

    def both(product):
        product(a.clone().requires_grad_(), b.clone().requires_grad_()).sum().backward()

    assert flops(lambda: both(ours)) == flops(lambda: both(theirs)) == 3 * flops(lambda: ours(a, b))


@pytest.mark.parametrize("first", ["the counter", "the course"])
def test_flops_are_counted_in_either_order_of_imports(first):
    lines = [
        "from torch.utils.flop_counter import FlopCounterMode",
        "from tiled_matmul.torch import matmul",
    ]
    code = "\n".join(lines if first == "the counter" else lines[::-1])
    code += """
import torch
with FlopCounterMode(display=False) as counter:
    matmul(torch.ones(4, 4), torch.ones(4, 4))
assert counter.get_total_flops() == 128, counter.get_total_flops()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_the_profiler_names_the_operator_and_its_shapes():
    _, ours = pair()
    with torch.profiler.profile(record_shapes=True) as profiler:
        ours(numbers(7, 24))
    rows = profiler.key_averages(group_by_input_shape=True)
    shapes = [each.input_shapes[:2] for each in rows if each.key == "tiled_matmul::linear"]
    assert sorted(shapes) == [[[7, 24], [40, 24]], [[7, 40], [8, 40]]]


def test_symbolic_tracing_gives_the_same_model():
    for net in (Linear(24, 8, device=PLACE), MLP(24, device=PLACE), pair()[1]):
        x = numbers(5, 24)
        traced = torch.fx.symbolic_trace(net)
        assert torch.equal(traced(x), net(x))
        assert any("linear" in str(node.target) for node in traced.graph.nodes)
        again = pickle.loads(pickle.dumps(traced))
        assert torch.equal(again(x), net(x))
    for product, shapes in ((matmul, ((3, 4), (4, 5))), (bmm, ((2, 3, 4), (2, 4, 5)))):
        a, b = (numbers(*shape) for shape in shapes)
        traced = torch.fx.symbolic_trace(product)
        assert torch.equal(traced(a, b), product(a, b))


def test_export_keeps_the_operator_and_a_size_that_changes():
    _, ours = pair()
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(ours, (numbers(7, 24),), dynamic_shapes=({0: batch},))
    assert "tiled_matmul.linear" in str(program.graph)
    x = numbers(31, 24)
    assert torch.equal(program.module()(x), ours(x))


def test_a_subclass_of_tensor_is_asked():
    class Seen(torch.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = numbers(6, 24)
    y = linear(x.as_subclass(Seen), numbers(40, 24))
    assert "fused_linear" in Seen.calls and isinstance(y, Seen)
    assert torch.equal(y.as_subclass(torch.Tensor), linear(x, numbers(40, 24)))
    assert isinstance(matmul(x.as_subclass(Seen), x.T), Seen) and "matmul" in Seen.calls


# --- what changes a layer -------------------------------------------------------------------------


def old_hook(name):
    """Return one of the functions that set the weight in a hook before each forward."""

    def change(layer):
        with pytest.warns(FutureWarning) if name == "weight_norm" else _nothing():
            return getattr(nn.utils, name)(layer)

    return change


class _nothing:  # noqa: N801
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


class Doubled(nn.Module):
    def forward(self, weight):
        return 2 * weight


def doubled(layer):
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "bias", Doubled())
    return layer


CHANGES = {
    "weight_norm": parametrizations.weight_norm,
    "spectral_norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
    "two of one's own": doubled,
    "weight_norm, as a hook": old_hook("weight_norm"),
    "spectral_norm, as a hook": old_hook("spectral_norm"),
    "pruned": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
}


def changed(change):
    net = model()
    torch.manual_seed(1)
    for layer in (net[0], net[2]):
        CHANGES[change](layer)
    return net.eval()  # spectral_norm changes with every step of training


@pytest.mark.parametrize("change", CHANGES)
def test_layers_whose_weight_is_made_anew_are_swapped(change):
    plain, ours = changed(change), changed(change)
    assert swap(ours) == 2 and swap(ours) == 0
    assert all(isinstance(layer, Linear) for layer in (ours[0], ours[2]))
    assert not any(isinstance(layer, Linear) for layer in plain)
    assert list(ours.state_dict()) == list(plain.state_dict())
    assert_alike(plain, ours, numbers(6, 24))


@pytest.mark.parametrize("change", ["weight_norm", "orthogonal", "two of one's own"])
def test_copies_of_a_parametrised_layer_are_swapped_one_by_one(change):
    plain = changed(change)
    ours = copy.deepcopy(plain)  # which shares the class that torch made
    assert swap(ours) == 2
    assert not any(isinstance(layer, Linear) for layer in plain)
    assert_alike(plain, copy.deepcopy(ours), numbers(6, 24))
    for layer in (ours[0], ours[2]):
        for name in list(layer.parametrizations):
            parametrize.remove_parametrizations(layer, name)
        assert type(layer) is Linear
    torch.testing.assert_close(ours(numbers(6, 24)), plain(numbers(6, 24)))


def test_a_lazy_layer_becomes_ours():
    lazy = nn.Sequential(nn.LazyLinear(40), nn.ReLU(), nn.LazyLinear(8)).to(PLACE)
    assert swap(lazy) == 2 and swap(lazy) == 0
    lazy(numbers(6, 24))
    assert [type(layer) for layer in (lazy[0], lazy[2])] == [Linear, Linear]
    plain = model()
    plain.load_state_dict(lazy.state_dict())
    assert_alike(plain, lazy, numbers(6, 24))


def test_tied_weights_stay_tied_and_are_counted_once_a_layer():
    net = nn.Sequential(nn.Linear(24, 24), nn.Linear(24, 24)).to(PLACE)
    net[1].weight = net[0].weight
    net.append(net[0])
    plain = copy.deepcopy(net)
    assert swap(net) == 2
    assert net[0].weight is net[1].weight and net[2] is net[0]
    assert_alike(plain, net, numbers(5, 24))


def test_subclasses_with_a_forward_of_their_own_are_left_alone():
    class Scaled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 3

    net = nn.Sequential(Scaled(4, 4), parametrizations.weight_norm(Scaled(4, 4)))
    assert swap(net) == 0 and not any(isinstance(layer, Linear) for layer in net)


def test_meta_and_fake_tensors_have_shapes_alone():
    from torch._subclasses import FakeTensorMode

    ours = Linear(24, 40, device="meta")
    assert ours(torch.empty(6, 24, device="meta")).shape == (6, 40)
    with FakeTensorMode():
        assert Linear(24, 40)(torch.empty(6, 24)).shape == (6, 40)
