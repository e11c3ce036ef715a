"""tools/bench_interpreter.py: the interpreter is as fast beside Numba's simulator as promised."""

import json
import subprocess
import sys

import pytest

from tiled_matmul import ROOT

TOOL = [sys.executable, str(ROOT / "tools" / "bench_interpreter.py")]


@pytest.mark.long
def test_a_small_product_keeps_the_promise(tmp_path):
    path = tmp_path / "folder" / "times.json"
    done = subprocess.run([*TOOL, "--n", "32", "--json", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "times as fast" in done.stdout and "should be" not in done.stdout
    taken = json.loads(path.read_text())
    assert taken["n"] == 32 and set(taken["seconds"]) == {"launch", "trace", "numba"}
    assert min(taken["seconds"]["numba"]) > 15 * min(taken["seconds"]["launch"])


def test_sizes_that_no_tile_divides_are_refused():
    done = subprocess.run([*TOOL, "--n", "40"], capture_output=True, text=True)
    assert done.returncode == 2 and "multiple of 16, got 40" in done.stderr


def test_a_slow_interpreter_is_a_failure():
    planted = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import bench_interpreter as tool; "
        "tool.WANTED = {'launch': 1e9, 'trace': 6}; sys.exit(tool.main())"
    )
    folder = str(ROOT / "tools")
    done = subprocess.run(
        [sys.executable, "-c", planted, folder, "--n", "16"], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert "launch should be 1000000000.0 times as fast" in done.stdout
