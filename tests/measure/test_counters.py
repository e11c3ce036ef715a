"""A GPU's counters of each rung, and of each order: what is read is whole."""

import json

import pytest
from counters_example import file, kernel, order_file, order_kernel

from tiled_matmul.measure import counters

SUBSETS = ("order", "patterns", "lowest")


def write(path, stored):
    text = counters.as_text(
        *(stored[key] for key in ("provenance", "setting", "unknown", "launches"))
    )
    path.write_text(text)
    return path


def test_a_file_comes_back_as_it_was_stored(tmp_path):
    stored = file({"cublas": [kernel()], "a": [kernel(registers=64)]}, unknown=["x__y.sum"])
    path = write(tmp_path / "a.json", stored)
    assert json.loads(path.read_text()) == stored
    found = counters.load(path)
    assert (found.m, found.n, found.k, found.dtype, found.gpu) == (
        *(4096, 4096, 4096, "float32"),
        "NVIDIA H200",
    )
    assert list(found.launches) == ["cublas", "a"] and "a" in found and "b" not in found
    assert found.unknown == ("x__y.sum",)
    assert found["a"]["registers"] == 64 and found["cublas"]["registers"] == 32
    assert found["a"].kernels[0].grid == (4, 2, 1)


def test_what_follows_from_the_counters():
    counted = counters.parse(file({"a": [kernel()]}))["a"]
    wanted = {
        "fmas": 2000,
        "instructions_per_fma": 2.5,
        "shared_wavefronts": 400,
        "wavefronts_per_fma": 0.2,
        "conflicts": 12,
        "sectors_read": 16_504,
        "sectors_per_load": 16.5,
        "dram_bytes": 800,
        "time_ms": 2.0,
    }
    assert {name: counted[name] for name in wanted} == wanted
    assert {*wanted, "l2_read_bytes"} == set(counters.DERIVED)


def test_without_multiply_adds_there_is_nothing_for_each_of_them():
    counted = counters.parse(file({"a": [kernel(thread_fmas=0)]}))["a"]
    assert counted["fmas"] == 0 and "instructions_per_fma" not in counted
    with pytest.raises(ValueError, match="instructions_per_fma was not counted of a; there are"):
        counted["instructions_per_fma"]


def test_sums_are_of_all_kernels_and_the_rest_is_the_longest_ones():
    parts = [kernel(time_ns=10, registers=16), kernel(time_ns=90, registers=200)]
    counted = counters.parse(file({"a": parts}))["a"]
    assert counted["time_ns"] == 100 and counted["instructions"] == 10_000
    assert counted["registers"] == 200 and counted["sectors_per_load"] == 16.5


def test_a_table_of_some_counters():
    found = counters.parse(file({"a": [kernel()], "b": [kernel(leave_out=["fma_pipe_pct"])]}))
    lines = repr(found.table(["registers", "fma_pipe_pct"])).splitlines()
    assert lines[0].split() == ["rung", "registers", "fma_pipe_pct"]
    assert [line.split() for line in lines[1:]] == [["a", "32", "40.5"], ["b", "32", "None"]]
    assert len(repr(found.table(["registers"], ["b"])).splitlines()) == 2


def test_unknown_rungs_are_quoted():
    with pytest.raises(ValueError, match="no counters of b; there are a"):
        counters.parse(file({"a": [kernel()]}))["b"]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (file({"a": []}), "a has no kernel"),
        (file({"a": [kernel(leave_out=["registers"])]}), "a lacks launch__registers_per_thread"),
        (file({"a": [kernel(registers="32")]}), "must be a number of 0 or more, got '32'"),
        (file({"a": [kernel(registers=-1)]}), "must be a number of 0 or more, got -1"),
        (file({"a": [kernel(registers=float("nan"))]}), "must be a number of 0 or more, got nan"),
        (file({"a": [kernel(registers=True)]}), "must be a number of 0 or more, got True"),
        (file({"a": [kernel()]}, gpu=""), "the provenance lacks gpu"),
        ({"launches": {}}, "is not a file of counters: KeyError"),
        ([], "is not a file of counters"),
    ],
)
def test_what_is_no_file_of_counters_is_refused(tmp_path, stored, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=message) as caught:
        counters.load(path)
    assert str(path) in str(caught.value)


def test_unreadable_files_are_value_errors(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        counters.load(tmp_path / "absent.json")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        counters.load(tmp_path / "a.json")


def test_every_file_of_the_checkout_loads_and_knows_the_ladder():
    from tiled_matmul.ladder import LADDER

    paths = [p for p in counters.COUNTERS.glob("*.json") if p.stem.split("-")[0] not in SUBSETS]
    assert paths
    for path in paths:
        found = counters.load(path)
        rungs = {rung.name for rung in LADDER if (rung.device, rung.dtype) == ("gpu", found.dtype)}
        assert counters.BASELINE in found and len(found.launches) > 1
        assert set(found.launches) <= rungs | {counters.BASELINE}
        assert path.name.endswith(f"-{found.dtype}.json") == (found.dtype != "float32")


def test_names_are_ours_and_metrics_are_nsights():
    assert len(set(counters.METRICS.values())) == len(counters.METRICS)
    assert not set(counters.DERIVED) & set(counters.METRICS)


def test_the_reference_of_a_dtype_is_its_own_file(monkeypatch, tmp_path):
    monkeypatch.setattr(counters, "COUNTERS", tmp_path)
    write(tmp_path / "h200.json", file({"cublas": [kernel(registers=1)]}))
    write(tmp_path / "h200-float16.json", file({"cublas": [kernel(registers=2)]}))
    assert counters.reference()["cublas"]["registers"] == 1
    assert counters.reference("float16")["cublas"]["registers"] == 2


def test_all_products_of_a_dtype_the_largest_first(monkeypatch, tmp_path):
    monkeypatch.setattr(counters, "COUNTERS", tmp_path)
    assert counters.taken("float16") == []
    for name, size, dtype in (
        ("h200.json", 4096, "float32"),
        ("h200-float16.json", 512, "float16"),
        ("h200-1024x1024x1024-float16.json", 1024, "float16"),
        ("t4-float16.json", 2048, "float16"),
    ):
        stored = file({"cublas": [kernel()]}, size)
        stored["setting"]["dtype"] = dtype
        write(tmp_path / name, stored)
    assert [each.n for each in counters.taken("float16")] == [1024, 512]
    assert [each.n for each in counters.taken("float32")] == [4096]
    write(tmp_path / "h200-again-float16.json", stored)
    stored["setting"] |= dict.fromkeys("mnk", 512)
    write(tmp_path / "h200-again-float16.json", stored)
    with pytest.raises(ValueError, match="counted in two files"):
        counters.taken("float16")


# Orders of programs


def test_a_file_of_orders_comes_back_as_it_was_stored(tmp_path):
    launches = {(8192, 8): order_kernel(), (8192, 1): order_kernel(time_ns=3_000_000)}
    stored = order_file(launches, unknown=["x__y.sum"])
    path = write(tmp_path / "a.json", stored)
    assert json.loads(path.read_text()) == stored
    orders = counters.load(path)
    assert (orders.gpu, orders.dtype, orders.block) == ("NVIDIA H200", "float16", (128, 256, 64))
    assert (orders.edges, orders.groups(8192), orders.groups(4096)) == ((8192,), (1, 8), ())
    assert orders.unknown == ("x__y.sum",)
    assert orders.find(8192, 1).time_ms == 3.0 and orders.find(8192, 8)["l2_hit_pct"] == 81.5
    assert orders.find(8192, 8).longest.grid == (2048, 1, 1)
    assert orders.times(8192, 8) == 4


def test_bytes_from_the_l2_leave_out_what_its_halves_exchange_where_that_is_known():
    unknown = order_kernel(leave_out=["l2_tex_read_sectors"])
    orders = counters.parse(order_file({(8192, 8): order_kernel(), (8192, 1): unknown}))
    assert orders.find(8192, 8).l2_read_bytes == 900 * 32
    assert orders.find(8192, 1).l2_read_bytes == 1000 * 32


def renamed(label):
    """Return a file of orders whose one launch has this label."""
    return order_file({}) | {"launches": {label: [order_kernel()]}}


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (order_file({}), "nothing was counted"),
        (
            order_file({(8192, 8): order_kernel(leave_out=["dram_read_bytes"])}),
            "GROUP_M=8 lacks dram__bytes_read.sum",
        ),
        (order_file({(8192, 8): order_kernel(time_ns="32")}), "0 or more, got '32'"),
        (order_file({(8192, 8): order_kernel(l2_hit_pct=float("nan"))}), "0 or more, got nan"),
        (renamed("N=0 GROUP_M=8"), "must be called as .* is, got 'N=0 GROUP_M=8'"),
        (renamed("N=8192 GROUP_M=True"), "got 'N=8192 GROUP_M=True'"),
        (order_file({(8192, 8): order_kernel()}, gpu=""), "the provenance lacks gpu"),
        (order_file({(8192, 8): order_kernel()}, block=(128, 256)), "three positive integers"),
    ],
)
def test_what_is_no_file_of_orders_is_refused(tmp_path, stored, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=message) as caught:
        counters.load(path)
    assert str(path) in str(caught.value)


def test_an_order_that_was_not_counted_is_quoted():
    orders = counters.parse(order_file({(8192, 8): order_kernel()}))
    with pytest.raises(ValueError, match="no counters of N=8192 GROUP_M=2; there are N=8192 GR"):
        orders.find(8192, 2)
    with pytest.raises(ValueError, match="clock_hz was not counted of N=8192 GROUP_M=8; there"):
        orders.find(8192, 8)["clock_hz"]


def test_the_orders_are_none_before_they_were_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(counters, "COUNTERS", tmp_path)
    assert counters.order() is None
    (tmp_path / "order-h200.json").write_text(json.dumps(order_file({(8192, 8): order_kernel()})))
    assert counters.order().edges == (8192,)
    assert counters.taken("float16") == []


def test_every_file_of_orders_in_the_checkout_loads():
    paths = list(counters.COUNTERS.glob("order-*.json"))
    assert paths
    for path in paths:
        assert {1, 8} <= set(counters.load(path).groups(8192)), path
