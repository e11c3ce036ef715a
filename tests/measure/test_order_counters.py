"""order_counters.py: what is read is whole; tools/take_order_counters.py, with a made-up ncu."""

import importlib.util
import json
import sys

import pytest

from tiled_matmul import ROOT
from tiled_matmul.measure import counters, order_counters
from tiled_matmul.models.program_order import BLOCK

NUMBERS = {
    "time_ns": 1_500_000,
    "dram_read_bytes": 4 * 2 * 8192 * 8192 * 2,
    "dram_write_bytes": 100,
    "l2_read_sectors": 1000,
    "l2_sm_read_sectors": 900,
    "l2_hit_pct": 81.5,
}


def entry(edge=8192, group_m=8, leave_out=(), **changes):
    numbers = NUMBERS | changes
    return {
        "edge": edge,
        "group_m": group_m,
        "kernel": "triton_swizzled_kernel",
        "programs": 2048,
        "counters": {
            order_counters.METRICS[name]: value
            for name, value in numbers.items()
            if name not in leave_out
        },
    }


def file(*counts, gpu="NVIDIA H200", unknown=(), block=BLOCK):
    provenance = dict.fromkeys(counters.PROVENANCE, "x") | {"gpu": gpu}
    return {
        "provenance": provenance,
        "dtype": "float16",
        "block": list(block),
        "unknown": list(unknown),
        "counts": list(counts),
    }


def test_a_file_comes_back_as_it_was_stored(tmp_path):
    stored = file(entry(), entry(group_m=1, time_ns=3_000_000), unknown=["x__y.sum"])
    path = tmp_path / "a.json"
    path.write_text(order_counters.as_text(*stored.values()))
    assert json.loads(path.read_text()) == stored
    found = order_counters.load(path)
    assert (found.gpu, found.dtype, found.block) == ("NVIDIA H200", "float16", (128, 256, 64))
    assert (found.edges, found.groups(8192), found.groups(4096)) == ((8192,), (1, 8), ())
    assert found.unknown == ("x__y.sum",)
    assert found.find(8192, 1).time_ms == 3.0 and found.find(8192, 8)["l2_hit_pct"] == 81.5
    assert found.times(8192, 8) == 4


def test_bytes_from_the_l2_leave_out_what_its_halves_exchange_where_that_is_known():
    known, unknown = entry(), entry(group_m=1, leave_out=["l2_sm_read_sectors"])
    found = order_counters.parse(file(known, unknown))
    assert found.find(8192, 8).l2_read_bytes == 900 * 32
    assert found.find(8192, 1).l2_read_bytes == 1000 * 32


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (file(), "nothing was counted"),
        (file(entry(), entry()), "counted twice: N=8192 GROUP_M=8"),
        (file(entry(leave_out=["dram_read_bytes"])), "GROUP_M=8 lacks dram__bytes_read.sum"),
        (file(entry(time_ns="32")), "must be a number of 0 or more, got '32'"),
        (file(entry(time_ns=-1)), "must be a number of 0 or more, got -1"),
        (file(entry(l2_hit_pct=float("nan"))), "must be a number of 0 or more, got nan"),
        (file(entry(edge=0)), "edge must be a positive integer, got 0"),
        (file(entry(group_m=True)), "group_m must be a positive integer, got True"),
        (file(entry(), gpu=""), "the provenance lacks gpu"),
        (file(entry(), block=(128, 256)), "block must be three positive integers"),
        ({"counts": []}, "is not a file of order counters: KeyError"),
        ([], "is not a file of order counters"),
    ],
)
def test_what_is_no_file_of_counters_is_refused(tmp_path, stored, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=message) as caught:
        order_counters.load(path)
    assert str(path) in str(caught.value)


def test_what_was_not_counted_is_quoted():
    found = order_counters.parse(file(entry()))
    with pytest.raises(ValueError, match="N=8192 GROUP_M=2 was not counted; there are N=8192 GR"):
        found.find(8192, 2)
    with pytest.raises(ValueError, match="clock_hz was not counted at N=8192 GROUP_M=8; time_ns"):
        found.find(8192, 8)["clock_hz"]


def test_the_reference_is_none_before_it_was_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(order_counters, "ORDER", tmp_path)
    assert order_counters.reference() is None
    (tmp_path / "h200.json").write_text(json.dumps(file(entry())))
    assert order_counters.reference().edges == (8192,)


def test_every_file_of_the_checkout_loads():
    for path in order_counters.ORDER.glob("*.json"):
        found = order_counters.load(path)
        assert {1, 8} <= set(found.groups(8192)), path


# The program that takes them


@pytest.fixture(scope="module")
def tool():
    tools = str(ROOT / "tools")
    sys.path.insert(0, tools)
    try:
        path = ROOT / "tools" / "take_order_counters.py"
        spec = importlib.util.spec_from_file_location("take_order_counters", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(tools)


def row(programs, name="triton_swizzled_kernel", **cells):
    found = {"Kernel Name": name, "Grid Size": f"({programs}, 1, 1)", "Block Size": "(256, 1, 1)"}
    numbers = {order_counters.METRICS[key]: str(value) for key, value in NUMBERS.items()}
    return found | numbers | cells


def table(*rows):
    """The rows as ncu prints them, ID first and units in a line of their own."""
    columns = ["ID", *rows[0]]
    lines = [columns, [""] * len(columns), *(["0", *line.values()] for line in rows)]
    printed = (",".join('"' + cell + '"' for cell in line) for line in lines)
    return "==PROF== Connected\n" + "\n".join(printed) + "\n"


@pytest.fixture
def taken(tool, monkeypatch, tmp_path):
    """Run `take` on what a made-up ncu answers, a list of (status, table, printed)."""

    def run(answers, edges=(8192,), groups=(1, 8)):
        asked = []

        def profile(command, metrics, log, options):
            asked.append((list(command), list(metrics)))
            log.write_text("")
            return answers[len(asked) - 1]

        monkeypatch.setitem(tool.count.__globals__, "profile", profile)
        monkeypatch.setattr(tool.shutil, "which", lambda name: "/bin/ncu")
        names = {metric.split(".")[0] for metric in order_counters.METRICS.values()}
        monkeypatch.setattr(tool, "known_metrics", lambda ncu: names - {"lts__t_bytes"})
        origin = dict.fromkeys(counters.PROVENANCE, "x")
        monkeypatch.setattr(tool, "provenance", lambda ncu: origin)
        out = tmp_path / "order" / "gpu.json"
        tool.take(out, edges, groups)
        return order_counters.load(out), asked, out

    return run


PRINTED = "launched 8192 1, 0.5 s\nlaunched 8192 8, 0.2 s\n"


def test_what_ncu_counts_is_stored(tool, taken):
    lines = table(row(2048), row(2048, **{"dram__bytes_read.sum": "1234"}))
    found, asked, out = taken([(0, lines, PRINTED)])
    assert found.find(8192, 8)["dram_read_bytes"] == 1234
    assert found.find(8192, 1).programs == 2048 and found.unknown == ("lts__t_bytes.sum",)
    command, metrics = asked[0]
    assert command[-4:] == ["--edges", "8192", "--groups", "1,8"]
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
        tool.main(["--edges", "0", "--out", "x"])
    with pytest.raises(SystemExit):
        tool.main([])
    assert "--out FILE says where the counters go" in capsys.readouterr().err


@pytest.mark.gpu
def test_launches_on_a_gpu(tool, capsys):
    tool.launch([512], [1, 3])
    assert capsys.readouterr().out.count("launched 512 ") == 2
