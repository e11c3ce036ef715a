"""A GPU's counters of each rung, and of each order: what is read is whole."""

from dataclasses import replace

import pytest
from counters_example import file, kernel, order_file, order_kernel

from tiled_matmul.measure import counters
from tiled_matmul.measure import records as store


def parsed(entries):
    """Return the Counters of entries of one setting."""
    (found,) = counters.parse(entries)
    return found


def write(path, *files):
    store.save(path, counters.SUITE, [entry for each in files for entry in each])
    return path


def test_a_file_comes_back_as_it_was_stored(tmp_path):
    stored = file({"cublas": [kernel()], "a": [kernel(registers=64)]}, unknown=["x__y.sum"])
    (found,) = counters.load(write(tmp_path / "a.json", stored))
    assert (found.m, found.n, found.k, found.dtype, found.gpu) == (
        *(4096, 4096, 4096, "float32"),
        "NVIDIA H200",
    )
    assert list(found.launches) == ["cublas", "a"] and "a" in found and "b" not in found
    assert found.unknown == ("x__y.sum",)
    assert found["a"]["registers"] == 64 and found["cublas"]["registers"] == 32
    assert found["a"].kernels[0].grid == (4, 2, 1)


def test_what_follows_from_the_counters():
    counted = parsed(file({"a": [kernel()]}))["a"]
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
    counted = parsed(file({"a": [kernel(thread_fmas=0)]}))["a"]
    assert counted["fmas"] == 0 and "instructions_per_fma" not in counted
    with pytest.raises(ValueError, match="instructions_per_fma was not counted of a; there are"):
        counted["instructions_per_fma"]


def test_sums_are_of_all_kernels_and_the_rest_is_the_longest_ones():
    parts = [kernel(time_ns=10, registers=16), kernel(time_ns=90, registers=200)]
    counted = parsed(file({"a": parts}))["a"]
    assert counted["time_ns"] == 100 and counted["instructions"] == 10_000
    assert counted["registers"] == 200 and counted["sectors_per_load"] == 16.5


def test_a_table_of_some_counters():
    found = parsed(file({"a": [kernel()], "b": [kernel(leave_out=["fma_pipe_pct"])]}))
    lines = repr(found.table(["registers", "fma_pipe_pct"])).splitlines()
    assert lines[0].split() == ["rung", "registers", "fma_pipe_pct"]
    assert [line.split() for line in lines[1:]] == [["a", "32", "40.5"], ["b", "32", "None"]]
    assert len(repr(found.table(["registers"], ["b"])).splitlines()) == 2


def test_unknown_rungs_are_quoted():
    with pytest.raises(ValueError, match="no counters of b; there are a"):
        parsed(file({"a": [kernel()]}))["b"]


def without(entries, key):
    """Return entries whose cases lack a key."""
    return [replace(e, case={x: y for x, y in e.case.items() if x != key}) for e in entries]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (file({"a": []}), "a has no kernel"),
        (file({"a": [kernel(leave_out=["registers"])]}), "a lacks launch__registers_per_thread"),
        (file({"a": [kernel(registers="32")]}), "must be a number of 0 or more, got '32'"),
        (file({"a": [kernel(registers=-1)]}), "must be a number of 0 or more, got -1"),
        (file({"a": [kernel(registers=True)]}), "must be a number of 0 or more, got True"),
        (file({"a": [kernel()]}, gpu=""), "the provenance lacks gpu"),
        ([], "nothing was counted"),
        (without(file({"a": [kernel()]}), "m"), "is not a file of the suite 'counters': KeyError"),
    ],
)
def test_what_is_no_file_of_counters_is_refused(tmp_path, stored, message):
    path = write(tmp_path / "a.json", stored)
    with pytest.raises(ValueError, match=message) as caught:
        counters.load(path)
    assert str(path) in str(caught.value)


def test_unreadable_files_are_value_errors(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        counters.load(tmp_path / "absent.json")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        counters.load(tmp_path / "a.json")


def test_the_books_counters_know_the_ladder():
    from tiled_matmul.ladder import LADDER

    for dtype in ("float32", "float16"):
        taken = counters.taken(dtype)
        assert taken and taken[0].n >= taken[-1].n and counters.reference(dtype) in taken
        rungs = {rung.name for rung in LADDER if (rung.device, rung.dtype) == ("gpu", dtype)}
        for found in taken:
            assert counters.BASELINE in found and len(found.launches) > 1
            assert set(found.launches) <= rungs | {counters.BASELINE}
    assert {1, 8} <= set(counters.order().groups(8192))
    assert {label.rpartition("; ")[2] for label in counters.lowest().launches} == {"torch", "ours"}


def test_names_are_ours_and_metrics_are_nsights():
    assert len(set(counters.METRICS.values())) == len(counters.METRICS)
    assert not set(counters.DERIVED) & set(counters.METRICS)


def test_products_of_one_file_are_told_apart(tmp_path):
    path = write(
        tmp_path / "h200.json",
        file({"cublas": [kernel(registers=1)]}),
        file({"cublas": [kernel(registers=2)]}, 512, dtype="float16"),
        file({"cublas": [kernel(registers=3)]}, 1024, dtype="float16"),
        order_file({(8192, 8): order_kernel()}),
    )
    assert [each["cublas"]["registers"] for each in counters.taken("float16", path)] == [3, 2]
    assert [each.n for each in counters.taken("float32", path)] == [4096]
    assert counters.taken("bfloat16", path) == []
    assert counters.order(path).edges == (8192,)
    with pytest.raises(ValueError, match=r"h200\.json has no counters of where rungs are slowest"):
        counters.lowest(path)


def test_without_counters_at_the_common_product_there_is_no_reference():
    with pytest.raises(ValueError, match="nothing was counted at 4096³ in bfloat16"):
        counters.reference("bfloat16")


# Orders of programs


def test_a_file_of_orders_comes_back_as_it_was_stored(tmp_path):
    launches = {(8192, 8): order_kernel(), (8192, 1): order_kernel(time_ns=3_000_000)}
    path = write(tmp_path / "a.json", order_file(launches, unknown=["x__y.sum"]))
    (orders,) = counters.load(path)
    assert (orders.gpu, orders.dtype, orders.block) == ("NVIDIA H200", "float16", (128, 256, 64))
    assert (orders.edges, orders.groups(8192), orders.groups(4096)) == ((8192,), (1, 8), ())
    assert orders.unknown == ("x__y.sum",)
    assert orders.find(8192, 1).time_ms == 3.0 and orders.find(8192, 8)["l2_hit_pct"] == 81.5
    assert orders.find(8192, 8).longest.grid == (2048, 1, 1)
    assert orders.times(8192, 8) == 4


def test_bytes_from_the_l2_leave_out_what_its_halves_exchange_where_that_is_known():
    unknown = order_kernel(leave_out=["l2_tex_read_sectors"])
    orders = parsed(order_file({(8192, 8): order_kernel(), (8192, 1): unknown}))
    assert orders.find(8192, 8).l2_read_bytes == 900 * 32
    assert orders.find(8192, 1).l2_read_bytes == 1000 * 32


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (order_file({}), "nothing was counted"),
        (
            order_file({(8192, 8): order_kernel(leave_out=["dram_read_bytes"])}),
            "GROUP_M=8 lacks dram__bytes_read.sum",
        ),
        (order_file({(8192, 8): order_kernel(time_ns="32")}), "0 or more, got '32'"),
        (order_file({"N=0 GROUP_M=8": order_kernel()}), "be called as .* is, got 'N=0 GROUP_M=8'"),
        (order_file({"N=8192 GROUP_M=True": order_kernel()}), "got 'N=8192 GROUP_M=True'"),
        (order_file({(8192, 8): order_kernel()}, gpu=""), "the provenance lacks gpu"),
        (order_file({(8192, 8): order_kernel()}, block=(128, 256)), "three positive integers"),
    ],
)
def test_what_is_no_file_of_orders_is_refused(tmp_path, stored, message):
    path = write(tmp_path / "a.json", stored)
    with pytest.raises(ValueError, match=message) as caught:
        counters.load(path)
    assert str(path) in str(caught.value)


def test_an_order_that_was_not_counted_is_quoted():
    orders = parsed(order_file({(8192, 8): order_kernel()}))
    with pytest.raises(ValueError, match="no counters of N=8192 GROUP_M=2; there are N=8192 GR"):
        orders.find(8192, 2)
    with pytest.raises(ValueError, match="clock_hz was not counted of N=8192 GROUP_M=8; there"):
        orders.find(8192, 8)["clock_hz"]


def test_the_orders_are_none_before_they_were_taken(tmp_path):
    path = write(tmp_path / "h200.json", file({"cublas": [kernel()]}))
    assert counters.order(path) is None
