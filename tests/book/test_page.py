"""page.py, book/page.py and claims.py: what cells call and show."""

import pytest

from tiled_matmul import page
from tiled_matmul.machine.backend import Backend
from tiled_matmul.measure import claims
from tiled_matmul.measure.results import Record


def test_setup_says_what_machine_this_is(capsys):
    machine = page.setup()
    said = capsys.readouterr().out
    if machine.gpu:
        assert machine.name in said and machine.device == "cuda"
    else:
        assert "simulators" in said and "without a clock" in said and machine.device == "cpu"
    assert machine.pick(gpu=1, simulator=2) == (1 if machine.gpu else 2)


@pytest.mark.parametrize("name", ["simulator", "compiler"])
def test_setup_without_a_gpu_says_what_runs(capsys, monkeypatch, name):
    chosen = Backend(name, "no NVIDIA driver is installed")
    monkeypatch.setattr("tiled_matmul.book.page.backend.select", lambda: chosen)
    assert not page.setup().gpu
    said = capsys.readouterr().out
    assert said.startswith("No GPU is used: no NVIDIA driver is installed.\n")
    assert ("run in simulators" in said) == (name == "simulator") and "H200" not in said


def test_tables_align_numbers_and_escape_text():
    shown = page.table([{"name": "<a>", "value": 1.5}, {"name": "b", "value": 12345.6}])
    assert repr(shown) == "name   value\n<a>      1.5\nb     12,346"
    assert "&lt;a&gt;" in shown._repr_html_() and "<a>" not in shown._repr_html_()


def test_a_row_that_lacks_a_column_is_refused():
    with pytest.raises(ValueError, match=r"lacks \['b'\]"):
        page.table([{"a": 1}], columns=["a", "b"])


def test_the_ladder_table_shows_ratios_of_the_records():
    record = Record(
        rung="x", m=100, n=200, k=300, dtype="float32", launches=1, graph=False,
        time_ms=2.0, spread=0.01, tflops=0.006, baseline="cublas", ratio=0.25, gpu="G", driver="1",
        versions={"python": "3"}, date="2026-01-01T00:00:00+00:00", commit="abc",
    )  # fmt: skip
    text = repr(page.ladder_table([record]))
    assert "25% of cublas" in text and "100×200×300" in text and " 6 " in text


def test_say_shows_markdown():
    assert page.say("**2** times")._repr_markdown_() == "**2** times"


def test_changes_gives_the_lines_that_differ():
    def one(a):
        b = a + 1
        c = 2
        return b * c

    def two(a):
        b = a + 1
        c = 3
        return b * c

    shown = page.changes(one, two)
    assert repr(shown).splitlines() == ["    ...", "-    c = 2", "+    c = 3"]
    assert "<pre>" in shown._repr_html_() and "c = 3" in shown._repr_html_()
    assert repr(page.changes(one, one)) == "nothing differs"


def test_show_source_gives_the_kernel_with_its_decorator():
    from tiled_matmul.ladder.loop_orders import ikj

    assert "@njit\ndef ikj(a, b, c):" in repr(page.show_source(ikj))
    inner = "for j in range(c.shape[1]):\n    c[i, j] += a[i, k] * b[k, j]"
    assert repr(page.show_source(ikj, "for j in")).endswith(inner)
    with pytest.raises(ValueError, match="no statement of ikj begins with 'for x'"):
        page.show_source(ikj, "for x")


def test_the_size_of_a_source_leaves_out_comments():
    def scaled(x):
        # twice
        return x * 2 if x > 0 else -x

    assert page.source_size(scaled) == (2, 2)


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [(True, "holds here"), (False, "does not hold here"), (None, "not judged here")],
)
def test_a_claim_carries_its_verdict_in_text_page_and_data(holds, verdict):
    shown = claims.claim("A < B", source="somebody", holds=holds, evidence="1 < 2")
    bundle = shown._repr_mimebundle_()
    assert verdict in bundle["text/plain"] and verdict in bundle["text/html"]
    assert "A &lt; B" in bundle["text/html"]
    assert bundle[claims.MIME] == {
        "text": "A < B",
        "source": "somebody",
        "holds": holds,
        "evidence": "1 < 2",
    }


def test_claims_without_verdict_or_evidence_are_refused():
    with pytest.raises(TypeError, match="holds must be True, False or None, got 1"):
        claims.claim("a", source="b", holds=1, evidence="c")
    with pytest.raises(ValueError, match="evidence must not be empty"):
        claims.claim("a", source="b", holds=True, evidence=" ")


def test_no_float_in_a_table_needs_an_exponent_for_being_rounded():
    assert repr(page.table([{"x": 999.7}])).split() == ["x", "1,000"]


def test_the_ladder_table_ends_with_what_was_too_slow():
    class Some(list):
        left_out = {"cuda_naive": "too slow here: about 3.6 s a run"}

    assert "cuda_naive" in repr(page.ladder_table(Some())).splitlines()[-1]
    assert "about 3.6 s a run" in repr(page.ladder_table(Some()))


def test_every_name_of_the_door_is_there():
    for name in page.__all__:
        assert getattr(page, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        _ = page.mesure


def test_without_a_gpu_the_rates_are_the_reference_gpu_s():
    rates = page.peak_rates()
    assert page.setup().gpu or (rates.name, rates.fp32_tflops) == ("H200 SXM", 67)


def test_first_lines_shortens_compiled_code():
    registers = ",".join(f"%r{i}" for i in range(32))
    code = f"x loc(#loc7)\n/*0a0*/  HGMMA  R24 ;\n\twgmma {{{registers}}}, 1; // note\n"
    assert repr(page.first_lines(code, "x", "HGMMA")) == "x\nHGMMA R24 ;"
    assert repr(page.first_lines(code, "wgmma")) == "wgmma {%r0, …, %r31}, 1;"
    with pytest.raises(ValueError, match="no line contains 'mma.sync'"):
        page.first_lines(code, "mma.sync")
