"""measure/distributed.py: records of two and four GPUs, and the model that was fitted to two."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tiled_matmul import ROOT
from tiled_matmul.book.files import parse_notebook
from tiled_matmul.measure import distributed
from tiled_matmul.measure import records as store
from tiled_matmul.models.distributed import channels, received
from tiled_matmul.plots import distributed as figures

PAIR, FOUR = (distributed.STORE / f"h200-x{count}.json" for count in (2, 4))
RECORDS = pytest.mark.parametrize(
    "path", sorted(distributed.STORE.glob("*.json")), ids=lambda x: x.stem
)


@RECORDS
def test_the_links_counted_what_the_formula_gives(path):
    taken = distributed.load(path)
    sizes = [taken.moved_at] * 3
    for name, counted in taken.moved.items():
        predicted = received(name, *sizes, taken.ranks)
        assert counted == pytest.approx(predicted, rel=0.001, abs=100), name


@RECORDS
def test_nccl_took_the_channels_that_its_source_says(path):
    taken = distributed.load(path)
    seen = {size: count for size, count in taken.sent().blocks.items() if size >= 2**20}
    assert seen == {size: channels(size, taken.ranks) for size in seen} and len(seen) >= 4


def test_two_gpus_held_to_as_many_channels_send_as_four_do():
    pair, four = distributed.load(PAIR), distributed.load(FOUR)
    held, free = pair.sent(NCCL_MAX_P2P_NCHANNELS="16"), four.sent()
    for size in (2**22, 2**24, 2**26):
        assert held.blocks[size] == free.blocks[size] == 8
        assert held.us[size] == pytest.approx(free.us[size], rel=0.12)
        assert pair.machine().passed_on(size, 4) == pytest.approx(free.us[size], rel=0.15)
    with pytest.raises(ValueError, match="nothing was sent with .*'NCCL_ALGO': 'Tree'"):
        pair.sent(NCCL_ALGO="Tree")


def test_what_two_predicted_was_measured_on_four():
    """From 8192 on, the cuts, and how much faster than one GPU four are."""
    pair, four = distributed.load(PAIR), distributed.load(FOUR)
    assert four.ranks == 4
    for dtype in ("float16", "bfloat16"):
        model = pair.machine(dtype)
        for size, times in ((8192, 3.3), (16384, 3.6)):
            us = four.find(size, size, size, dtype).us
            for name in four.moved:
                rel = 0.15 if "ring" in name else 0.13
                assert model.us(name, size, size, size, 4) == pytest.approx(us[name], rel=rel)
            assert us["one GPU"] > times * us["pulled, from shared"]


@RECORDS
def test_a_trace_shows_every_part_of_a_call(path):
    taken = distributed.load(path)
    for name, copies in (("ring", 0), ("pulled", 1)):  # of the rank's own rows
        kinds = [what for what, begin, end in taken.traced[name] if 0 <= begin < end]
        assert kinds.count("product") == taken.ranks
        assert kinds.count("transfer") == taken.ranks - 1 + copies
        # Beside other work, and beside other calls, a trace is no time of its own.
        last = max(end for _, _, end in taken.traced[name])
        assert last == pytest.approx(taken.find(*[taken.traced_at] * 3).us[name], rel=0.3)


def test_records_are_found_by_the_gpu_s_name_and_in_order(tmp_path):
    assert list(distributed.records("h200")) == sorted(distributed.records("h200")) != []
    with pytest.raises(ValueError, match="there is no file of 2, 4, 8 'h200' in"):
        distributed.records("h200", tmp_path)
    for path in (PAIR, FOUR):  # and one of three, which the chapter has no place for
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "h200-x3.json").write_bytes(PAIR.read_bytes())
    assert list(distributed.records("h200", tmp_path)) == [2, 4]


def test_the_model_is_within_a_fifth_of_every_cut_from_4096_on():
    pair = distributed.load(PAIR)
    for timed in pair.times:
        for name in pair.moved:
            if name in timed.us and timed.m >= 4096:
                model = pair.machine(timed.dtype)
                guess = model.us(name, timed.m, timed.n, timed.k, pair.ranks)
                assert guess == pytest.approx(timed.us[name], rel=0.2), (timed, name)


def test_a_product_that_was_not_measured_and_a_wrong_file(tmp_path):
    pair = distributed.load(PAIR)
    assert pair.find(4096, 4096, 4096).dtype == "float16"
    with pytest.raises(ValueError, match="7×7×7 float16 was not measured"):
        pair.find(7, 7, 7)
    stored = store.load(PAIR, distributed.SUITE)
    number = next(i for i, each in enumerate(stored) if each.case["of"] == "time")
    none = stored[number].values | {"product": {"ms": 0, "spread": 0}}
    stored[number] = replace(stored[number], values=none)
    wrong = tmp_path / "wrong.json"
    store.save(wrong, distributed.SUITE, stored)
    with pytest.raises(ValueError, match=r"wrong\.json.*has a time that is none"):
        distributed.load(wrong)
    store.save(wrong, distributed.SUITE, [each for each in stored if each.case["of"] != "sends"])
    with pytest.raises(ValueError, match=r"wrong\.json: nothing was measured of sends"):
        distributed.load(wrong)


CHAPTER = ROOT / "chapters" / "17_tiles_across_gpus.ipynb"
ELSEWHERE = ("setup()", "run(", "tried(", "explore(", "show_source(")  # they show no record


def shown():
    """Run the cells of the chapter that show records, and return what they show."""
    space, texts = {}, []
    for cell in parse_notebook(CHAPTER.read_text(), CHAPTER).cells:
        if cell.cell_type == "code" and not any(name in cell.source for name in ELSEWHERE):
            *lines, last = ast.parse(cell.source).body
            if not isinstance(last, ast.Expr):
                lines.append(last)
            exec(compile(ast.Module(lines, []), CHAPTER.name, "exec"), space)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), CHAPTER.name, "eval"), space)
                texts.append(getattr(value, "_repr_html_", value.__repr__)())
    return "\n".join(texts)


def eight_of(four):
    """Return a record as eight GPUs could leave it, in half of the time of four."""
    times = [
        replace(
            each,
            n=each.n if each.n == each.m else 2 * each.n,
            us={
                name: took if name == distributed.ONE else took / 2
                for name, took in each.us.items()
            },
        )
        for each in four.times
    ]
    return replace(four, ranks=8, times=times)


def test_the_chapter_shows_eight_gpus_as_soon_as_there_is_a_record_of_them(monkeypatch):
    found = {2: distributed.load(PAIR), 4: distributed.load(FOUR)}
    monkeypatch.setattr(distributed, "records", lambda gpu: found)
    without = shown()
    assert "We had no machine with eight GPUs" in without and "on eight" not in without.lower()
    found[8] = eight_of(found[4])
    marked = []
    draw = figures.efficiency
    monkeypatch.setattr(figures, "efficiency", lambda *of: marked.append(of[1]) or draw(*of))
    text = shown()
    for name in ("pulled", "gathered"):  # strong scaling, weak scaling
        assert [[p for p, _ in seen[name]] for seen in marked] == 2 * [[2, 4, 8]]
    assert "We had no machine" not in text
    us = found[8].find(16384, 16384, 16384).us
    assert f"eight **{us[distributed.ONE] / us['pulled, from shared']:.2f}** times" in text
    assert "On eight GPUs, " in text and "32 values are within" in text  # the model
    assert "pulled, eight GPUs" in text and "ring, eight GPUs" in text  # the traces
    assert "on eight H200s" in text and "with four and" in text  # weak scaling
