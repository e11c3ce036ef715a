"""tools/take_counters.py: a made-up ncu's table becomes a file, and what does not fit none."""

import argparse
import importlib.util
import json
import sys
from types import SimpleNamespace

import pytest
from counted_kernels import Case
from counters_example import ORDER_NUMBERS

from tiled_matmul import ROOT
from tiled_matmul.measure import counters

MARK = "launch::_3clocals_3e::end_of_rung"


@pytest.fixture(scope="module")
def tool():
    path = ROOT / "tools" / "take_counters.py"
    spec = importlib.util.spec_from_file_location("take_counters", path)
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


# Every rung


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
    stored = tool.stored("a", row, [name for name in row if "__" in name], counters.LADDER)
    assert stored == {
        "name": "k",
        "grid": [4, 2, 1],
        "block": [256, 1, 1],
        "counters": {"smsp__inst_executed.sum": 1536, "lts__t_bytes.sum": 2.5},
    }
    assert "a: no number for lts__t_sectors.sum: 'n/a'" in capsys.readouterr().out
    with pytest.raises(tool.CountersError, match="a: no number for dram__bytes_read.sum: ''"):
        tool.stored("a", row, ["dram__bytes_read.sum"], counters.LADDER)


def test_counters_that_ncu_does_not_know_are_told(tool):
    wanted = counters.LADDER
    known = {name.split(".")[0] for name in wanted.needed + wanted.welcome}
    assert tool.choose(known, wanted) == ([*wanted.needed, *wanted.welcome], [])
    taken, unknown = tool.choose(known - {"lts__t_bytes"}, wanted)
    assert unknown == ["lts__t_bytes.sum"] and "lts__t_bytes.sum" not in taken
    # Those that the course needs are asked for in any case.
    assert tool.choose(set(), wanted)[0] == list(wanted.needed) == list(counters.NEEDED.values())


def test_counters_that_ncu_refuses_are_named(tool):
    text = "==ERROR== Failed to find metric regex:^lts__t_bytes(\\.|$)\n==PROF== lts__t_sectors\n"
    taken = ["lts__t_bytes.sum", "lts__t_sectors.sum", "gpu__time_duration.sum"]
    assert tool.refused(text, taken, counters.LADDER) == ["lts__t_bytes.sum"]
    assert tool.refused("==ERROR== no metric gpu__time_duration", taken, counters.LADDER) == []


def test_sizes_are_an_edge_or_three(tool):
    assert tool.size("4096") == (4096,) * 3
    assert tool.size("512x512x16384") == (512, 512, 16384)
    for text in ("0", "x", "4096x2", "1x2x3x4", "-5", "1x0x1"):
        with pytest.raises(tool.argparse.ArgumentTypeError, match="wanted N or MxNxK"):
            tool.size(text)


# Programs in other orders


def row(programs, name="triton_swizzled_kernel", **cells):
    found = {"Kernel Name": name, "Grid Size": f"({programs}, 1, 1)", "Block Size": "(256, 1, 1)"}
    numbers = {counters.METRICS[key]: str(value) for key, value in ORDER_NUMBERS.items()}
    return found | numbers | cells


def table(*rows):
    """The rows as ncu prints them, ID first and units in a line of their own."""
    columns = ["ID", *rows[0]]
    lines = [columns, [""] * len(columns), *(["0", *line.values()] for line in rows)]
    printed = (",".join('"' + cell + '"' for cell in line) for line in lines)
    return "==PROF== Connected\n" + "\n".join(printed) + "\n"


@pytest.fixture
def made_up_ncu(tool, monkeypatch):
    """Let `take_…` run on a list of answers, (status, table, printed); return what it asked for."""

    def answer(answers, known):
        asked = []

        def profile(command, metrics, log, options):
            asked.append((list(command), list(metrics), list(options)))
            log.write_text("")
            return answers[len(asked) - 1]

        monkeypatch.setattr(tool, "profile", profile)
        monkeypatch.setattr(tool.shutil, "which", lambda name: "/bin/ncu")
        monkeypatch.setattr(tool, "known_metrics", lambda ncu: known)
        monkeypatch.setattr(
            tool, "of_counters", lambda ncu: dict.fromkeys(counters.PROVENANCE, "x")
        )
        return asked

    return answer


def bare(wanted):
    """Return the names of counters without their suffixes, as ncu lists them."""
    return {metric.split(".")[0] for metric in wanted.needed + wanted.welcome}


@pytest.fixture
def taken(tool, made_up_ncu, tmp_path):
    """Run `take_order` on what a made-up ncu answers."""

    def run(answers, edges=(8192,), groups=(1, 8)):
        asked = made_up_ncu(answers, bare(counters.ORDER) - {"lts__t_bytes"})
        out = tmp_path / "order" / "gpu.json"
        tool.take_order(argparse.Namespace(out=out, edges=edges, groups=groups))
        return counters.load(out), asked, out

    return run


PRINTED = "launched 8192 1, 0.5 s\nlaunched 8192 8, 0.2 s\n"


def test_what_ncu_counts_is_stored(tool, taken):
    lines = table(row(2048), row(2048, **{"dram__bytes_read.sum": "1234"}))
    found, asked, out = taken([(0, lines, PRINTED)])
    assert found.find(8192, 8)["dram_read_bytes"] == 1234
    assert found.find(8192, 1).longest.grid == (2048, 1, 1) and found.unknown == (
        "lts__t_bytes.sum",
    )
    command, metrics, options = asked[0]
    assert command[-6:] == ["order", "--edges", "8192", "--groups", "1,8", "--launch"]
    assert options[-1] == "regex:triton_swizzled"
    assert "lts__t_bytes.sum" not in metrics and "dram__bytes_read.sum" in metrics
    assert not out.with_suffix(".csv").exists()


def test_counters_that_ncu_refuses_are_left_out_the_second_time(taken):
    error = "==ERROR== Failed to find metric lts__t_sector_hit_rate.pct\n"
    found, asked, _ = taken([(1, error, ""), (0, table(row(2048), row(2048)), PRINTED)])
    assert len(asked) == 2 and "lts__t_sector_hit_rate.pct" not in asked[1][1]
    assert "lts__t_sector_hit_rate.pct" in found.unknown


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((1, "==ERROR== no permission", ""), "ncu ended with 1"),
        ((0, table(row(2048)), PRINTED), "2 launches, but ncu counted 1"),
        ((0, table(row(2048), row(2048)), 2 * "launched 8192 8, 1 s\n"), "launched twice"),
        ((0, table(row(2048), row(2048, "gemm")), PRINTED), "GROUP_M=8: ncu counted gemm"),
        ((0, table(row(2048), row(512)), PRINTED), r"on a grid of \[512, 1, 1\]"),
        (
            (0, table(row(2048), row(2048, **{"dram__bytes_read.sum": "n/a"})), PRINTED),
            "no number for dram__bytes_read.sum: 'n/a'",
        ),
    ],
)
def test_what_does_not_fit_writes_no_file(tool, taken, tmp_path, answer, message):
    with pytest.raises(tool.CountersError, match=message):
        taken([answer])
    assert not (tmp_path / "order" / "gpu.json").exists()


def test_the_command_line(tool, capsys):
    assert tool.numbers("4096,8192") == [4096, 8192]
    with pytest.raises(SystemExit):
        tool.main(["order", "--edges", "0", "--out", "x"])
    with pytest.raises(SystemExit):
        tool.main([])
    with pytest.raises(SystemExit):
        tool.main(["ladder"])
    assert "--out FILE says where the counters go" in capsys.readouterr().err


@pytest.mark.gpu
def test_orders_are_launched_on_a_gpu(tool, capsys):
    tool.launch_order(argparse.Namespace(edges=[512], groups=[1, 3]))
    assert capsys.readouterr().out.count("launched 512 ") == 2


# Every rung, from ncu's table to the file


def of_ladder(name, **cells):
    """Return a row of ncu's table with a 1 for each counter of the ladder."""
    found = {"Kernel Name": name, "Grid Size": "(4, 2, 1)", "Block Size": "(256, 1, 1)"}
    wanted = counters.LADDER.needed + counters.LADDER.welcome
    return found | dict.fromkeys(wanted, "1") | cells


def test_the_ladder_is_stored(tool, made_up_ncu, tmp_path):
    lines = table(
        *(of_ladder("gemm"), of_ladder("reduce", **{"gpu__time_duration.sum": "5"})),
        *(of_ladder(MARK), of_ladder("naive"), of_ladder(MARK)),
    )
    printed = "launched cublas, 0.1 s\nrefused cuda_async: no\nlaunched cuda_naive, 2.0 s\n"
    asked = made_up_ncu([(0, lines, printed)], bare(counters.LADDER))
    out = tmp_path / "gpu.json"
    options = {"size": (512, 256, 64), "dtype": "float32", "rungs": "cuda_naive,cuda_async"}
    tool.take_ladder(argparse.Namespace(out=out, **options))
    ladder = counters.load(out)
    assert (ladder.m, ladder.n, ladder.k, ladder.dtype) == (512, 256, 64, "float32")
    assert list(ladder.launches) == ["cublas", "cuda_naive"] and ladder.unknown == ()
    assert ladder["cublas"]["time_ns"] == 6 and ladder["cublas"].longest.name == "reduce"
    command = asked[0][0]
    assert command[-8:-1] == [
        *("ladder", "--size", "512x256x64", "--dtype", "float32"),
        *("--rungs", "cuda_naive,cuda_async"),
    ]
    assert not out.with_suffix(".csv").exists()


# Where rungs are slowest


def test_both_sides_of_a_case_are_stored(tool, made_up_ncu, tmp_path):
    lines = table(*(of_ladder(name) for name in ("nvjet", MARK, "triton_fp8", "reduce", MARK)))
    printed = "launched 8 bits, tensor: 4×4×4; torch\nlaunched 8 bits, tensor: 4×4×4; ours\n"
    asked = made_up_ncu([(0, lines, printed)], bare(counters.LADDER))
    out = tmp_path / "lowest-gpu.json"
    tool.take_lowest(argparse.Namespace(out=out))
    found = counters.load(out)
    theirs, ours = found.launches
    assert (theirs, ours) == ("8 bits, tensor: 4×4×4; torch", "8 bits, tensor: 4×4×4; ours")
    assert found[theirs]["time_ns"] == 1 and found[ours]["time_ns"] == 2
    assert asked[0][0][-2:] == ["lowest", "--launch"]


def test_the_lowest_cases_are_those_of_the_stored_benchmarks(tool, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import lowest

    labels = [label for label, _ in lowest.cases("h200")]
    kinds = [label.split(":")[0] for label in labels]
    assert kinds[:5] == ["drawn", "drawn", "fused", "batch", "groups"]
    assert kinds[5:] and all(kind.startswith("8 bits, ") for kind in kinds[5:])
    with pytest.raises(ValueError, match="no-gpu"):
        list(lowest.cases("no-gpu"))


# Patterns of access


def test_patterns_are_stored_as_the_microscope_reads_them(tool, made_up_ncu, monkeypatch, tmp_path):
    import counted_kernels

    from tiled_matmul.microscope.cuda import traffic

    wanted = tool.PATTERNS
    numbers = {m: str(i) for i, m in enumerate((*wanted.needed, *wanted.welcome))}
    cells = {"Kernel Name": "m::copy[abi:v1]", "Grid Size": "(3, 1, 1)", "Block Size": "(64, 1, 1)"}
    asked = made_up_ncu([(0, table(cells | numbers), "")], bare(wanted) - {"dram__bytes_read"})
    monkeypatch.setattr(counted_kernels, "CASES", [launched("copy", 3, 64)])
    out = tmp_path / "patterns.json"
    tool.take_patterns(argparse.Namespace(out=out))
    assert "dram__bytes_read.sum" not in asked[0][1]
    assert json.loads(out.read_text())["provenance"]["left_out"] == ["dram__bytes_read.sum"]
    monkeypatch.setattr(traffic, "COUNTERS", out)
    assert traffic.measured("copy") == {
        ours: int(numbers[theirs]) for ours, theirs in traffic.MEASURED.items()
    }
    made_up_ncu([(0, table(cells | numbers, cells | numbers), "")], bare(wanted))
    with pytest.raises(tool.CountersError, match="1 launches, but ncu counted 2"):
        tool.take_patterns(argparse.Namespace(out=out))


PATTERNS_PRINTED = """==PROF== Connected to process 7
==PROF== Disconnected from process 7
"ID","Kernel Name","Block Size","Grid Size","reads.sum","writes.sum"
"","","","","sector",""
"0","counted_kernels::copy[abi:v1](Array<float>)","(128, 1, 1)","(3, 1, 1)","1,536","8"
"1","counted_kernels::gather[abi:v2](Array<float>)","(64, 1, 1)","(2, 1, 1)","16","2.5"
"""


def launched(kernel, grid, block):
    """Return a case as far as the program looks at it."""
    function = SimpleNamespace(py_func=SimpleNamespace(__name__=kernel))
    return Case(kernel, function, grid, block, list, "", dict)


def test_ncus_table_is_read(tool):
    first, second = tool.read_rows(PATTERNS_PRINTED)
    copy, gather = launched("copy", 3, 128), launched("gather", (2,), (64, 1))
    assert tool.counted(copy, first, ["reads.sum", "writes.sum"]) == {
        "kernel": "copy",
        "grid": [3, 1, 1],
        "block": [128, 1, 1],
        "counters": [1536, 8],
    }
    assert tool.counted(gather, second, ["writes.sum"])["counters"] == [2.5]


@pytest.mark.parametrize(
    "case, metric, complaint",
    [
        (launched("scatter", 3, 128), "reads.sum", "launched scatter"),
        (launched("copy", 4, 128), "reads.sum", "grid"),
        (launched("copy", 3, (64, 2)), "reads.sum", "block"),
        (launched("copy", 3, 128), "dreams.sum", "no number for dreams.sum"),
    ],
)
def test_a_row_of_another_launch_is_refused(tool, case, metric, complaint):
    with pytest.raises(tool.CountersError, match=complaint):
        tool.counted(case, tool.read_rows(PATTERNS_PRINTED)[0], [metric])


def test_what_ncu_says_instead_of_a_table_is_shown(tool):
    with pytest.raises(tool.CountersError, match="ERR_NVGPUCTRPERM"):
        tool.read_rows("==ERROR== ERR_NVGPUCTRPERM - no permission\n")


@pytest.mark.gpu
def test_a_pattern_is_launched_on_a_gpu(tool):
    from counted_kernels import CASES

    assert tool.launch_case(CASES[0]) == []
