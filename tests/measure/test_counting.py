"""A made-up ncu's table becomes records, and what does not fit becomes none."""

from types import SimpleNamespace

import pytest
from counters_example import ORDER_NUMBERS, PROVENANCE

from tiled_matmul.measure import counters, counting, lowest, ncu, patterns
from tiled_matmul.measure import records as store
from tiled_matmul.measure.records import Entry
from tiled_matmul.specimens.kernels import Case

MARK = "launch::_3clocals_3e::end_of_rung"


# Every rung


def rows(*names):
    return [{"Kernel Name": name} for name in names]


def test_kernels_are_told_apart_by_the_empty_one_between_them():
    printed = rows("gemm", "reduce", MARK, "naive", MARK)
    found = [
        (name, [row["Kernel Name"] for row in part]) for name, part in ncu.split(printed, "ab")
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
def test_rows_that_do_not_fit_are_shown(printed):
    with pytest.raises(ncu.CountersError, match="2 functions were launched"):
        list(ncu.split(printed, "ab"))


def test_a_row_is_stored(capsys):
    row = {"Kernel Name": "k", "Grid Size": "(4, 2, 1)", "Block Size": "(256, 1, 1)"}
    row |= {"smsp__inst_executed.sum": "1,536", "lts__t_bytes.sum": "2.5"}
    row |= {"lts__t_sectors.sum": "n/a"}
    stored = ncu.stored("a", row, [name for name in row if "__" in name], counters.LADDER)
    assert stored == {
        "name": "k",
        "grid": [4, 2, 1],
        "block": [256, 1, 1],
        "counters": {"smsp__inst_executed.sum": 1536, "lts__t_bytes.sum": 2.5},
    }
    assert "a: no number for lts__t_sectors.sum: 'n/a'" in capsys.readouterr().out
    with pytest.raises(ncu.CountersError, match="a: no number for dram__bytes_read.sum: ''"):
        ncu.stored("a", row, ["dram__bytes_read.sum"], counters.LADDER)


def test_counters_that_ncu_does_not_know_are_told():
    wanted = counters.LADDER
    known = {name.split(".")[0] for name in wanted.needed + wanted.welcome}
    assert ncu.choose(known, wanted) == ([*wanted.needed, *wanted.welcome], [])
    taken, unknown = ncu.choose(known - {"lts__t_bytes"}, wanted)
    assert unknown == ["lts__t_bytes.sum"] and "lts__t_bytes.sum" not in taken
    # Those that the course needs are asked for in any case.
    assert ncu.choose(set(), wanted)[0] == list(wanted.needed) == list(counters.NEEDED.values())


def test_counters_that_ncu_refuses_are_named():
    text = "==ERROR== Failed to find metric regex:^lts__t_bytes(\\.|$)\n==PROF== lts__t_sectors\n"
    taken = ["lts__t_bytes.sum", "lts__t_sectors.sum", "gpu__time_duration.sum"]
    assert ncu.refused(text, taken, counters.LADDER) == ["lts__t_bytes.sum"]
    assert ncu.refused("==ERROR== no metric gpu__time_duration", taken, counters.LADDER) == []


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
def made_up_ncu(monkeypatch):
    """Let jobs run on a list of answers, (status, table, printed); return what was asked."""

    def answer(answers, known):
        asked = []

        def profile(command, metrics, log, options):
            asked.append((list(command), list(metrics), list(options)))
            return answers[len(asked) - 1]

        monkeypatch.setattr(ncu, "profile", profile)
        monkeypatch.setattr(ncu.shutil, "which", lambda name: "/bin/ncu")
        monkeypatch.setattr(ncu, "known_metrics", lambda ncu: known)
        return asked

    return answer


def bare(wanted):
    """Return the names of counters without their suffixes, as ncu lists them."""
    return {metric.split(".")[0] for metric in wanted.needed + wanted.welcome}


def parsed(taken):
    """Return the Counters of what a job made."""
    (found,) = counters.parse([Entry("a job", *each, {}, PROVENANCE) for each in taken])
    return found


@pytest.fixture
def taken(made_up_ncu):
    """Take the orders from what a made-up ncu answers."""

    def run(answers):
        asked = made_up_ncu(answers, bare(counters.ORDER) - {"lts__t_bytes"})
        return parsed(counting.take_order()), asked

    return run


PRINTED = "launched 8192 1, 0.5 s\nlaunched 8192 8, 0.2 s\n"


def test_what_ncu_counts_is_stored(taken):
    lines = table(row(2048), row(2048, **{"dram__bytes_read.sum": "1234"}))
    found, asked = taken([(0, lines, PRINTED)])
    assert found.find(8192, 8)["dram_read_bytes"] == 1234
    assert found.find(8192, 1).longest.grid == (2048, 1, 1) and found.unknown == (
        "lts__t_bytes.sum",
    )
    command, metrics, options = asked[0]
    assert command[-3:] == ["-m", "tiled_matmul.measure.counting", "order"]
    assert options[-1] == "regex:triton_swizzled"
    assert "lts__t_bytes.sum" not in metrics and "dram__bytes_read.sum" in metrics


def test_counters_that_ncu_refuses_are_left_out_the_second_time(taken):
    error = "==ERROR== Failed to find metric lts__t_sector_hit_rate.pct\n"
    found, asked = taken([(1, error, ""), (0, table(row(2048), row(2048)), PRINTED)])
    assert len(asked) == 2 and "lts__t_sector_hit_rate.pct" not in asked[1][1]
    assert "lts__t_sector_hit_rate.pct" in found.unknown


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((1, "==ERROR== no permission", ""), "ncu ended with 1"),
        ((0, table(row(2048)), PRINTED), "2 launches, but ncu counted 1"),
        ((0, table(row(2048), row(2048, "gemm")), PRINTED), "GROUP_M=8: ncu counted gemm"),
        ((0, table(row(2048), row(512)), PRINTED), r"on a grid of \[512, 1, 1\]"),
        (
            (0, table(row(2048), row(2048, **{"dram__bytes_read.sum": "n/a"})), PRINTED),
            "no number for dram__bytes_read.sum: 'n/a'",
        ),
    ],
)
def test_what_does_not_fit_is_no_record(taken, answer, message):
    with pytest.raises(ncu.CountersError, match=message):
        taken([answer])


@pytest.mark.gpu
def test_orders_are_launched_on_a_gpu(capsys, monkeypatch):
    monkeypatch.setattr(counting, "EDGES", [512])
    monkeypatch.setattr(counting, "GROUPS", [1, 3])
    counting.launch_order()
    assert capsys.readouterr().out.count("launched 512 ") == 2


# Every rung, from ncu's table to the file


def of_ladder(name, **cells):
    """Return a row of ncu's table with a 1 for each counter of the ladder."""
    found = {"Kernel Name": name, "Grid Size": "(4, 2, 1)", "Block Size": "(256, 1, 1)"}
    wanted = counters.LADDER.needed + counters.LADDER.welcome
    return found | dict.fromkeys(wanted, "1") | cells


def test_the_ladder_is_stored(made_up_ncu):
    lines = table(
        *(of_ladder("gemm"), of_ladder("reduce", **{"gpu__time_duration.sum": "5"})),
        *(of_ladder(MARK), of_ladder("naive"), of_ladder(MARK)),
    )
    printed = "launched cublas, 0.1 s\nrefused cuda_async: no\nlaunched cuda_naive, 2.0 s\n"
    asked = made_up_ncu([(0, lines, printed)], bare(counters.LADDER))
    ladder = parsed(counting.take_ladder("512x256x64", "float32", "cuda_naive,cuda_async"))
    assert (ladder.m, ladder.n, ladder.k, ladder.dtype) == (512, 256, 64, "float32")
    assert list(ladder.launches) == ["cublas", "cuda_naive"] and ladder.unknown == ()
    assert ladder["cublas"]["time_ns"] == 6 and ladder["cublas"].longest.name == "reduce"
    assert asked[0][0][-4:] == ["ladder", "512x256x64", "float32", "cuda_naive,cuda_async"]


# Where rungs are slowest


def test_both_sides_of_a_case_are_stored(made_up_ncu, monkeypatch):
    monkeypatch.setattr(counting, "_machine", lambda: "h200")
    made = [("8 bits, tensor: 4×4×4", ("triton_fp8",), None)]
    monkeypatch.setattr(lowest, "cases", lambda gpu: iter(made))
    lines = table(*(of_ladder(name) for name in ("nvjet", MARK, "triton_fp8", "reduce", MARK)))
    printed = "launched 8 bits, tensor: 4×4×4; torch\nlaunched 8 bits, tensor: 4×4×4; ours\n"
    asked = made_up_ncu([(0, lines, printed)], bare(counters.LADDER))
    both = list(counting.take_lowest())
    assert [case["rungs"] for case, _ in both] == [[], ["triton_fp8"]]
    found = parsed(both)
    theirs, ours = found.launches
    assert (theirs, ours) == ("8 bits, tensor: 4×4×4; torch", "8 bits, tensor: 4×4×4; ours")
    assert found[theirs]["time_ns"] == 1 and found[ours]["time_ns"] == 2
    assert asked[0][0][-1] == "lowest"


def test_the_lowest_cases_are_those_of_the_stored_benchmarks():
    found = list(lowest.cases("h200"))
    labels = [label for label, _, _ in found]
    rungs = {name for _, names, _ in found for name in names}
    (job,) = [job for job in counting.jobs() if job.name == "lowest"]
    assert rungs <= set(job.kernels)
    kinds = [label.split(":")[0] for label in labels]
    assert kinds[:5] == ["drawn", "drawn", "fused", "batch", "groups"]
    assert kinds[5:] and all(kind.startswith("8 bits, ") for kind in kinds[5:])
    with pytest.raises(ValueError, match="no-gpu"):
        list(lowest.cases("no-gpu"))


# Patterns of access


def test_patterns_are_stored_as_the_microscope_reads_them(made_up_ncu, monkeypatch, tmp_path):
    from tiled_matmul.microscope.cuda import traffic
    from tiled_matmul.specimens import kernels

    wanted = patterns.PATTERNS
    numbers = {m: str(i) for i, m in enumerate((*wanted.needed, *wanted.welcome))}
    cells = {"Kernel Name": "m::copy[abi:v1]", "Grid Size": "(3, 1, 1)", "Block Size": "(64, 1, 1)"}
    asked = made_up_ncu([(0, table(cells | numbers), "")], bare(wanted) - {"dram__bytes_read"})
    monkeypatch.setattr(kernels, "CASES", [launched("copy", 3, 64)])
    taken = [Entry("patterns", *each, {}, PROVENANCE) for each in patterns.take()]
    assert asked[0][0][-1] == "tiled_matmul.measure.patterns"
    assert "dram__bytes_read.sum" not in asked[0][1]
    assert taken[0].values["unknown"] == ["dram__bytes_read.sum"]
    assert taken[0].case == {"name": "copy", "code": "specimens.kernels::copy"}
    out = tmp_path / "patterns.json"
    store.save(out, "patterns", taken)
    monkeypatch.setattr(traffic, "COUNTERS", out)
    assert traffic.measured("copy") == {
        ours: int(numbers[theirs]) for ours, theirs in traffic.MEASURED.items()
    }
    made_up_ncu([(0, table(cells | numbers, cells | numbers), "")], bare(wanted))
    with pytest.raises(ncu.CountersError, match="1 launches, but ncu counted 2"):
        list(patterns.take())


PATTERNS_PRINTED = """==PROF== Connected to process 7
==PROF== Disconnected from process 7
"ID","Kernel Name","Block Size","Grid Size","reads.sum","writes.sum"
"","","","","sector",""
"0","kernels::copy[abi:v1](Array<float>)","(128, 1, 1)","(3, 1, 1)","1,536","8"
"1","kernels::gather[abi:v2](Array<float>)","(64, 1, 1)","(2, 1, 1)","16","2.5"
"""


def launched(kernel, grid, block):
    """Return a case as far as the program looks at it."""
    home = {"__module__": "tiled_matmul.specimens.kernels", "__qualname__": f"{kernel}.<locals>"}
    function = SimpleNamespace(py_func=SimpleNamespace(__name__=kernel, **home))
    return Case(kernel, function, grid, block, list, "", dict)


def test_ncus_table_is_read():
    first, second = ncu.read_rows(PATTERNS_PRINTED)
    copy, gather = launched("copy", 3, 128), launched("gather", (2,), (64, 1))
    assert patterns.counted(copy, first, ["reads.sum", "writes.sum"]) == {
        "kernel": "copy",
        "grid": [3, 1, 1],
        "block": [128, 1, 1],
        "counters": {"reads.sum": 1536, "writes.sum": 8},
    }
    assert patterns.counted(gather, second, ["writes.sum"])["counters"] == {"writes.sum": 2.5}


@pytest.mark.parametrize(
    "case, metric, complaint",
    [
        (launched("scatter", 3, 128), "reads.sum", "launched scatter"),
        (launched("copy", 4, 128), "reads.sum", "grid"),
        (launched("copy", 3, (64, 2)), "reads.sum", "block"),
        (launched("copy", 3, 128), "dreams.sum", "no number for dreams.sum"),
    ],
)
def test_a_row_of_another_launch_is_refused(case, metric, complaint):
    with pytest.raises(ncu.CountersError, match=complaint):
        patterns.counted(case, ncu.read_rows(PATTERNS_PRINTED)[0], [metric])


def test_what_ncu_says_instead_of_a_table_is_shown():
    with pytest.raises(ncu.CountersError, match="ERR_NVGPUCTRPERM"):
        ncu.read_rows("==ERROR== ERR_NVGPUCTRPERM - no permission\n")


@pytest.mark.gpu
def test_a_pattern_is_launched_on_a_gpu():
    from tiled_matmul.specimens.kernels import CASES

    assert patterns.launch_case(CASES[0]) == []
