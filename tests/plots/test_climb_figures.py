import re
from dataclasses import replace

import pytest
from counters_example import GPU, file, kernel

from tiled_matmul.measure import counters, results
from tiled_matmul.plots import climb


def record(rung, ratio, size=4096, gpu=GPU):
    time_ms = 2.0 / ratio
    rate = {"time_ms": time_ms, "tflops": 2 * size**3 / time_ms / 1e9, "ratio": ratio}
    what = {"rung": rung, "dtype": "float32", "baseline": "cublas", "gpu": gpu}
    return replace(results.reference()[0], **dict.fromkeys("mnk", size), **rate, **what)


RECORDS = [
    record("cuda_naive", 0.0191),
    record("cuda_coalesced", 0.027),
    record("cuda_shared_32", 0.16),
    record("cublas", 1.0),
]


def counted(size=4096, gpu=GPU):
    rungs = {
        "cublas": [kernel()],
        "cuda_naive": [kernel(load_sectors=16_500)],
        "cuda_coalesced": [kernel(load_sectors=2500)],
        "cuda_shared_32": [kernel(load_sectors=12_300_000)],
    }
    (found,) = counters.parse(file(rungs, size, gpu))
    return found


def test_each_step_is_drawn_with_its_share_and_its_counter():
    figure = climb.climb(RECORDS, counted())
    for text in (
        "sectors for each load: 16.5",
        "sectors for each load: 16.5 → 2.5",
        "sectors loaded: 2.5 k → 12.3 M",
        "40% of multiply-add rate used",
        *("1.91%", "2.7%", "16%", "100%", "cuBLAS"),
        "shared tiles of 32×32",
    ):
        assert re.search(rf">\s*{re.escape(text)}\s*<", figure.svg), text
        assert text in figure.alt
    assert "From 1.9% of cuBLAS to 16%" in figure.alt
    assert "counters at" not in figure.svg


def test_bars_are_as_long_as_the_shares():
    svg = climb.climb(RECORDS, counted()).svg
    bar = r'<path d="M (\S+) \S+ L (\S+) [^"]*"[^>]* style="fill: #\w+; opacity: 0.45'
    widths = [float(right) - float(left) for left, right in re.findall(bar, svg)]
    shares = [width / widths[-1] for width in widths]
    assert shares == pytest.approx([record.ratio for record in RECORDS], rel=1e-4)


def test_counters_of_another_size_are_named():
    assert "counters at 2048³" in climb.climb(RECORDS, counted(size=2048)).svg


def test_another_counter_can_explain_a_step():
    figure = climb.climb(RECORDS, counted(), explained_by={"cuda_shared_32": "registers"})
    assert "registers per thread: 32 → 32" in figure.alt


def test_a_step_can_have_another_title():
    figure = climb.climb(RECORDS, counted(), titles={"cuda_shared_32": "two changes"})
    assert "two changes 16%" in figure.alt
    assert "shared tiles of 32×32" not in figure.svg


def test_a_note_stands_in_place_of_a_counter():
    figure = climb.climb(RECORDS, counted(), notes={"cuda_shared_32": "wavefronts: 3 → 1.6"})
    assert "wavefronts: 3 → 1.6" in figure.alt
    assert "sectors loaded" not in figure.alt.split("shared tiles of 32×32")[1].split(";")[0]


def test_a_rung_without_counters_has_its_bar():
    figure = climb.climb([*RECORDS, record("cuda_puzzle", 0.01)], counted())
    assert "the puzzle" in figure.alt


@pytest.mark.parametrize(
    ("records", "taken", "options", "message"),
    [
        ([], counted(), {}, "no rung to draw"),
        (RECORDS[-1:], counted(), {}, "no rung to draw"),
        ([*RECORDS, record("cuda_naive", 0.02, 2048)], counted(), {}, "got records of several"),
        (RECORDS, counted(gpu="NVIDIA T4"), {}, "counters of NVIDIA T4"),
        (RECORDS, counted(), {"explained_by": {"cuda_naive": "joy"}}, "no words for the counter"),
        (
            RECORDS,
            counted(),
            {"explained_by": {"cuda_naive": "issue_pct"}},
            "was not counted of cuda",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(records, taken, options, message):
    with pytest.raises(ValueError, match=message):
        climb.climb(records, taken, **options)


def test_every_counter_with_words_exists():
    assert set(climb.WORDS) <= set(counters.METRICS) | set(counters.DERIVED)
    assert set(climb.EXPLAINED_BY.values()) | set(climb.OTHERWISE) <= set(climb.WORDS)
