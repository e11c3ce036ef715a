"""The records of chapter 15 are read whole, and a file that holds something else is refused."""

import pytest
from records_example import entry

from tiled_matmul.measure import fp8, groups
from tiled_matmul.measure import records as store


def test_records_of_fp8():
    times, lost = fp8.load()
    one = next(t for t in times if t.shape == (8192, 8192, 8192) and t.mode == "tensor, fast")
    assert one.ratio == one.ms["torch"] / one.ms["triton_fp8"]
    assert one.tflops() == pytest.approx(2 * 8192**3 / one.ms["triton_fp8"] * 1e-9)
    assert one.tflops("torch") == pytest.approx(one.tflops() / one.ratio)
    assert {each.fast for each in lost} == {True, False}


def test_the_mean_is_geometric():
    both = [fp8.Taken((1, 1, 1), "row", {"torch": x, "triton_fp8": 1.0}) for x in (2.0, 8.0)]
    assert fp8.mean_ratio(both) == pytest.approx(4)
    with pytest.raises(ValueError, match="no product"):
        fp8.mean_ratio([])


def test_records_of_groups():
    taken, host = groups.load()
    batches = [each for each in taken if each.rows is None]
    along = [each for each in taken if each.along]
    assert batches and along and not any(each.along for each in batches)
    one = along[0]
    assert one.flops == 2 * one.rows * one.n * one.k
    assert one.tflops() == pytest.approx(one.flops / one.ms["rung"] * 1e-9)
    assert one.ratio == one.ms["torch"] / one.ms["rung"]
    assert all(us > 0 for us in host.values())


SIZES = dict.fromkeys("mnk", 1)


@pytest.mark.parametrize(
    ("module", "stored", "message"),
    [
        (fp8, entry({"of": "time"}, {}), "is not a file of the suite 'fp8': KeyError"),
        (
            fp8,
            entry({"of": "time", "mode": "row"} | SIZES, {"ms": {"torch": 1}}),
            "row has no times",
        ),
        (groups, entry({}, {}), "is not a file of the suite 'groups': KeyError"),
        (
            groups,
            entry(
                {"of": "batch", "what": "", "count": 2, "by_columns": False} | SIZES,
                {"flops": 4, "ms": {"torch": 1.0, "rung": 0.0}},
                job="2 × 1×1×1",
            ),
            "2 × 1×1×1 has no times",
        ),
    ],
)
def test_other_files_are_refused(tmp_path, module, stored, message):
    path = tmp_path / "h200.json"
    store.save(path, module.SUITE, [stored])
    with pytest.raises(ValueError, match=message) as error:
        module.load(path)
    assert str(path) in str(error.value)
