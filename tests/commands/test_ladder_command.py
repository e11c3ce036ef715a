"""`python -m tiled_matmul ladder`: the table, a kernel, a diff, a file, and an unknown name."""

import pytest

from tiled_matmul.__main__ import main
from tiled_matmul.ladder import LADDER, rung
from tiled_matmul.measure import results


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    status = main(["ladder", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_table_has_a_line_for_each_rung_with_its_record(capsys):
    status, out, _ = run(capsys)
    head, *lines = out.splitlines()
    assert status == 0 and head.split()[:2] == ["rung", "chapter"]
    assert [line.split()[0] for line in lines] == [each.name for each in LADDER]
    line = next(line for line in lines if line.startswith("cuda_coalesced "))
    record = results.find(results.reference(), "cuda_coalesced", 4096, 4096, 4096)
    assert line.split()[1:6] == ["4", "10", "2", f"{record.ratio:.1%}", "4096×4096×4096"]


def test_a_rung_that_was_never_measured_has_a_line_too(capsys, monkeypatch):
    monkeypatch.setattr(results, "reference", list)
    status, out, _ = run(capsys)
    assert status == 0 and "cuda_naive" in out and "%" not in out


def test_a_name_prints_the_kernel_as_it_was_written(capsys):
    status, out, _ = run(capsys, "cuda_async")
    assert status == 0 and out.startswith("@cuda.jit(max_registers=168)\n@unrolled\n@unsigned\n")
    assert "def matmul" not in out and "for k in unroll(TILE_K):" in out
    assert run(capsys, "triton_best")[1].startswith("triton_best has no kernel of its own")


def test_diff_prints_what_changed_in_kernel_and_launcher(capsys):
    status, out, _ = run(capsys, "cuda_coalesced", "--diff")
    lines = out.splitlines()
    assert status == 0 and lines[0] == "# cuda_coalesced, changed from cuda_naive"
    assert "+    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y" in lines
    assert any("covering_grid(n, m, block)" in line for line in lines)
    assert run(capsys, "loops_python", "--diff")[1].startswith("# loops_python, changed from noth")


def test_file_prints_the_whole_file(capsys):
    status, out, _ = run(capsys, "cuda_naive", "--file")
    assert status == 0 and out == rung("cuda_naive").source.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cuda_niave"], "unknown rung 'cuda_niave'; the nearest are cuda_naive"),
        (["zzz"], "unknown rung 'zzz'; the ladder has loops_python, njit_ijk"),
        (["--diff"], "--diff and --file need the name of a rung"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(capsys, arguments, message):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "") and err.count("\n") == 1 and message in err
