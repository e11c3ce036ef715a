"""A GPU's counters of each rung: what is read is whole, and the program that takes them."""

import importlib.util
import json
import sys

import pytest
from counters_example import file, kernel

from tiled_matmul import ROOT
from tiled_matmul.measure import counters

MARK = "launch::_3clocals_3e::end_of_rung"


@pytest.fixture(scope="module")
def tool():
    tools = str(ROOT / "tools")
    sys.path.insert(0, tools)
    try:
        path = ROOT / "tools" / "take_ladder_counters.py"
        spec = importlib.util.spec_from_file_location("take_ladder_counters", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(tools)


def write(path, stored):
    text = counters.as_text(*(stored[key] for key in ("provenance", "problem", "unknown", "rungs")))
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
    assert list(found.rungs) == ["cublas", "a"] and "a" in found and "b" not in found
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
    assert set(wanted) == set(counters.DERIVED)


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
        ({"rungs": {}}, "is not a file of counters: KeyError"),
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

    for path in counters.COUNTERS.glob("*.json"):
        found = counters.load(path)
        rungs = {rung.name for rung in LADDER if (rung.device, rung.dtype) == ("gpu", found.dtype)}
        assert counters.BASELINE in found and len(found.rungs) > 1
        assert set(found.rungs) <= rungs | {counters.BASELINE}
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
        stored["problem"]["dtype"] = dtype
        write(tmp_path / name, stored)
    assert [each.n for each in counters.taken("float16")] == [1024, 512]
    assert [each.n for each in counters.taken("float32")] == [4096]
    write(tmp_path / "h200-again-float16.json", stored)
    stored["problem"] |= dict.fromkeys("mnk", 512)
    write(tmp_path / "h200-again-float16.json", stored)
    with pytest.raises(ValueError, match="counted in two files"):
        counters.taken("float16")


# The program that takes them


def rows(*names):
    return [{"Kernel Name": name} for name in names]


def test_kernels_are_told_apart_by_the_empty_one_between_them(tool):
    printed = rows("gemm", "reduce", MARK, "naive", MARK)
    found = [
        (name, [row["Kernel Name"] for row in part]) for name, part in tool.split(printed, "ab")
    ]
    assert found == [("a", ["gemm", "reduce"]), ("b", ["naive"])]


@pytest.mark.parametrize(
    "printed",
    [
        rows("gemm", MARK),
        rows("gemm", MARK, MARK),
        rows("gemm", MARK, "naive"),
        rows("gemm", MARK, "naive", MARK, "other", MARK),
        rows(),
    ],
)
def test_rows_that_do_not_fit_are_shown(tool, printed):
    with pytest.raises(tool.CountersError, match="2 functions were launched"):
        list(tool.split(printed, "ab"))


def test_a_row_is_stored(tool, capsys):
    row = {"Kernel Name": "k", "Grid Size": "(4, 2, 1)", "Block Size": "(256, 1, 1)"}
    row |= {"smsp__inst_executed.sum": "1,536", "lts__t_bytes.sum": "2.5"}
    row |= {"lts__t_sectors.sum": "n/a"}
    stored = tool.stored("a", row, [name for name in row if "__" in name])
    assert stored == {
        "name": "k",
        "grid": [4, 2, 1],
        "block": [256, 1, 1],
        "counters": {"smsp__inst_executed.sum": 1536, "lts__t_bytes.sum": 2.5},
    }
    assert "a: no number for lts__t_sectors.sum: 'n/a'" in capsys.readouterr().out
    with pytest.raises(tool.CountersError, match="a: no number for dram__bytes_read.sum: ''"):
        tool.stored("a", row, ["dram__bytes_read.sum"])


def test_counters_that_ncu_does_not_know_are_told(tool):
    known = {name.split(".")[0] for name in counters.METRICS.values()}
    assert tool.choose(known) == (list(counters.METRICS.values()), [])
    taken, unknown = tool.choose(known - {"lts__t_bytes"})
    assert unknown == ["lts__t_bytes.sum"] and "lts__t_bytes.sum" not in taken
    # Those that the course needs are asked for in any case.
    assert tool.choose(set())[0] == list(counters.NEEDED.values())


def test_counters_that_ncu_refuses_are_left_out_the_second_time(tool):
    text = "==ERROR== Failed to find metric regex:^lts__t_bytes(\\.|$)\n==PROF== lts__t_sectors\n"
    taken = ["lts__t_bytes.sum", "lts__t_sectors.sum", "gpu__time_duration.sum"]
    assert tool.refused(text, taken) == ["lts__t_bytes.sum"]
    assert tool.refused("==ERROR== Failed to find metric gpu__time_duration", taken) == []


def test_sizes_are_an_edge_or_three(tool):
    assert tool.sizes("4096") == (4096,) * 3
    assert tool.sizes("512x512x16384") == (512, 512, 16384)
    for text in ("0", "x", "4096x2", "1x2x3x4", "-5", "1x0x1"):
        with pytest.raises(tool.argparse.ArgumentTypeError, match="wanted N or MxNxK"):
            tool.sizes(text)
