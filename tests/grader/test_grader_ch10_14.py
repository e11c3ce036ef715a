"""grader/: what exercises of Triton's programs and of formulas are judged by."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tiled_matmul.kit import backend

backend.select()

import nbformat  # noqa: E402

from tiled_matmul.grader import kinds, pool, practice, programs, starters, wire  # noqa: E402
from tiled_matmul.grader.compare import _alike, header  # noqa: E402
from tiled_matmul.grader.folders import exercise, exercises, folder  # noqa: E402
from tiled_matmul.grader.judge import ON_GPU, judge  # noqa: E402
from tiled_matmul.grader.spec import Call, Case, Limits  # noqa: E402
from tiled_matmul.models.program_order import program_order  # noqa: E402
from tiled_matmul.models.roofline import step_clocks  # noqa: E402
from tiled_matmul.models.waves import Waves  # noqa: E402

ORDER, BUDGET, ROOF = (folder(name).module("judge") for name in ("11.1", "12.1", "12.2"))
ANSWERS = {
    name: pair
    for path in starters.solutions()
    if path.name[:2] in ("10", "11", "12", "14")
    for name, pair in starters.answers(path).items()
}


@pytest.fixture(scope="module")
def worker():
    with pool.Worker("triton", Limits(), confined=False) as one:
        yield one


def judged(worker, one, source, *cases):
    """Judge an answer on other cases than the exercise's own."""
    return judge(replace(one, cases=cases), source, seed=7, worker=worker)


@pytest.mark.parametrize("one", [e for e in exercises() if e.kind in ON_GPU], ids=lambda e: e.name)
def test_no_two_constants_are_equal_in_all_cases_that_a_learner_sees(one):
    """Else an answer with the wrong one of the two would pass."""
    settings = []
    for case in (case for case in one.cases if not case.hidden):
        given = {**one.given, **case.given, **(one.launch(case)[1] if one.kind == "triton" else {})}
        settings.append({name: value for name, value in given.items() if isinstance(value, int)})
    for two in combinations(sorted(set().union(*settings)), 2):
        assert any(setting.get(two[0]) != setting.get(two[1]) for setting in settings), two


# The judge's own formulas are the course's.


@pytest.mark.parametrize("tiles", [(5, 3, 2), (4, 7, 3), (3, 5, 8), (1, 6, 4), (6, 1, 4)])
def test_the_order_is_that_of_the_course(tiles):
    m, n, group = tiles
    mine = [ORDER.tile_of(program, m, n, group) for program in range(m * n)]
    assert mine == [tuple(tile) for tile in program_order(m, n, group).tolist()]


def test_the_roof_is_that_of_the_course():
    for call in exercise("12.2").cases:
        arguments = call.drawn(3).arguments
        if arguments[1] <= 256:
            assert ROOF.step(*arguments)[:2] == pytest.approx(tuple(step_clocks(*arguments)))


def test_the_budget_is_that_of_the_chapters_table():
    found = {stages: BUDGET.budget(128, 256, 64, 8, stages) for stages in (3, 4, 5)}
    assert [fits for *_, fits in found.values()] == [True, True, False]
    assert found[3][:2] == (144 * 1024, 128)
    assert not BUDGET.budget(128, 256, 64, 4, 3)[2]  # 256 sums, as chapter 10 saw it spill


def test_the_share_is_that_of_the_chapters_waves():
    for m, n in ((4096, 4096), (3072, 768), (129, 1)):
        tiles = -(-m // 128) * -(-n // 256)
        assert folder("14.1").module("judge").used(m, n, 128, 256, 132) == pytest.approx(
            Waves(tiles, 132).fill
        )


# Values.


@pytest.mark.parametrize(
    ("x", "y", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        (0.3001, 0.3, False),
        (10**400, 1.5, False),
        (float("nan"), float("nan"), False),
        ([1, [2.0]], [1, [2]], True),
        ([1, 2], [1, 2, 3], False),
        ([1], 1, False),
        ("both", "both", True),
        ("both", ["both"], False),
        ({"a": 0.3}, {"a": 0.1 + 0.2}, True),
        ({"a": 1}, {"b": 1}, False),
        (None, None, True),
    ],
)
def test_floats_are_alike_but_for_their_last_digits(x, y, same):
    assert _alike(x, y) is same


@pytest.mark.parametrize("name", ["11.1", "12.1", "12.2", "14.1"])
def test_each_slip_shows_in_a_case(name):
    """A slip that gives what is right, or what one before it gives, names no mistake."""
    one = exercise(name)
    calls = [call.drawn(11).arguments for call in one.cases]

    def result(slip, arguments):
        try:
            made = slip.answer(*arguments)
        except ZeroDivisionError:
            return None
        right = one.answer(*arguments)
        right = right if slip.part is None else right[slip.part]
        alike = _alike(list(made) if isinstance(made, tuple) else made, listed(right))
        return None if alike else listed(made)

    for number, slip in enumerate(one.slips):
        before = [other for other in one.slips[:number] if other.part == slip.part]
        found = [(result(slip, at), [result(other, at) for other in before]) for at in calls]
        assert any(mine is not None and mine not in others for mine, others in found), slip.message


def listed(value):
    return list(value) if isinstance(value, tuple) else value


def test_a_part_of_a_result_names_the_mistake():
    source = ANSWERS["12.1"][1].replace(" * stages", "").replace("WARP * warps", "warps")
    found = judge(exercise("12.1"), source)
    assert (found.status, found.diagnosis) == ("WRONG", "stages")  # the first, of two
    assert "each stage has its own" in found.message


def test_a_result_without_return_is_told_apart():
    found = judge(exercise("14.1"), "def used(m, n, block_m, block_n, sms):\n    pass")
    assert found.diagnosis == "nothing" and "`return`" in found.message


def test_hidden_calls_do_not_say_what_they_want():
    source = ANSWERS["14.1"][1].replace("-(-tiles // sms)", "tiles // sms + 1")
    found = judge(replace(exercise("14.1"), cases=(Call((64, 64, 64, 64, 1), True),)), source)
    assert "is 0.5" in found.message and "should be" not in found.message


# Programs.


def test_an_unmasked_tail_is_found_where_the_numbers_are_right(worker):
    """Beyond the edges are zeros: only what the tracer saw tells the starter from the answer."""
    one, case = exercise("11.2"), exercise("11.2").cases[0]
    starter, answer = ANSWERS["11.2"]
    assert judged(worker, one, answer, case).status == "PASS"
    found = judged(worker, one, starter, case)
    assert (found.status, found.diagnosis) == ("WRONG", "out of bounds")
    a, b = case.inputs(7)
    request = header(one, case) | {"corner": True}
    blobs = [a.tobytes(), b.tobytes(), np.full(case.shapes[2], 9, a.dtype).tobytes()]
    space = {"tailed": practice._defined(one, starter)}
    reply, data = kinds.run("triton", space, request, blobs)
    c = np.frombuffer(data[0], case.dtype).reshape(case.shapes[2])
    assert (c == a.astype(float) @ b.astype(float)).all() and reply["findings"]


@pytest.mark.parametrize("names", ["", "a", "b", "c", "abc"])
def test_matrices_by_columns_are_the_same_product(worker, names):
    case = Case(20, 17, 19, "float16", by_columns=names)
    assert judged(worker, exercise("10.1"), ANSWERS["10.1"][1], case).status == "PASS"
    contiguous = ANSWERS["10.1"][1]
    for old, new in (("(a_row, a_col)", "(K, 1)"), ("(b_row, b_col)", "(N, 1)")):
        contiguous = contiguous.replace(old, new)
    found = judged(worker, exercise("10.1"), contiguous.replace("(c_row, c_col)", "(N, 1)"), case)
    assert (found.status == "PASS") == (names == "")


def test_what_a_mask_leaves_out_is_nan_unless_it_is_said(worker):
    answer = ANSWERS["11.2"][1]
    case = Case(20, 35, 40, "float16")
    found = judged(worker, exercise("11.2"), answer.replace(", other=0.0", ""), case)
    assert found.diagnosis == "not finite" and "undefined" in found.message
    # Rows that are stored nowhere may be anything.
    rows = answer.replace("k[None, :] < K - start", "(k[None, :] < K - start) & (m[:, None] < M)")
    assert judged(worker, exercise("11.2"), rows, case).status == "PASS"


def test_sums_in_float16_show_on_wide_numbers_and_not_on_small_ones(worker):
    one, (starter, answer) = exercise("10.2"), ANSWERS["10.2"]
    small, wide = Case(32, 32, 512, "float16"), Case(32, 32, 512, "float16", draw="wide")
    assert judged(worker, one, starter, small).status == "PASS"
    assert judged(worker, one, starter, wide).diagnosis == "low precision"
    assert judged(worker, one, answer, wide).status == "PASS"
    a, b = wide.inputs(1)
    assert set(np.unique(a)) == set(range(-32, 33)) and abs(a.astype(float) @ b).max() < 65_504
    assert (Case(9, 9, 9, draw="positive").inputs(1)[0] > 0).all()


def test_parts_are_judged_by_their_sum_and_by_who_did_what(worker):
    one, answer = exercise("14.2"), ANSWERS["14.2"][1]
    case = Case(20, 35, 130, parts=4)
    assert case.shapes[2] == (4, 20, 35)
    assert judged(worker, one, answer, case).status == "PASS"
    lazy = answer.replace("(split * BLOCK_K, K, SPLITS * BLOCK_K)", "(split * K, K, BLOCK_K)")
    found = judged(worker, one, lazy, case)
    assert (found.diagnosis, found.points) == ("counts", 1) and "36,864" in found.message
    # With one part it is the same.
    assert judged(worker, one, lazy, Case(20, 35, 130, parts=1)).status == "PASS"


def test_what_is_not_stored_comes_before_what_is_not_read(worker):
    swapped = ANSWERS["10.1"][1].replace("program_id(1) * BLOCK_M", "program_id(0) * BLOCK_M")
    swapped = swapped.replace("program_id(0) * BLOCK_N", "program_id(1) * BLOCK_N")
    found = judged(worker, exercise("10.1"), swapped, Case(20, 35, 40, "float16"))
    assert found.diagnosis == "not stored" and found.hint == 1


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", ["10.1", "10.2", "11.2"])
@pytest.mark.parametrize("which", range(3))
def test_the_limits_are_what_the_answer_takes(worker, name, which):
    one = exercise(name)
    count = one.counts[which]
    tight = replace(count, most=lambda case: count.most(case) - 1)
    found = judge(replace(one, counts=(tight,)), ANSWERS[name][1], seed=7, worker=worker)
    assert found.diagnosis == count.diagnosis, found.message


@pytest.mark.long
def test_a_check_of_a_stray_program_draws_its_walk():
    from nbclient import NotebookClient

    (chapter,) = [path for path in starters.chapters() if path.name.startswith("11")]
    notebook = nbformat.from_dict(starters.made(chapter, solved=False))
    notebook.cells = [
        cell for cell in notebook.cells if "-11-" not in cell.id or cell.id.endswith("-2")
    ]
    NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True).execute()
    (check,) = [cell for cell in notebook.cells if cell.id == "check-11-2"]
    (picture,) = [out for out in check.outputs if "data" in out]
    assert any("svg" in str(kind) + str(value)[:200] for kind, value in picture.data.items())
    assert check.outputs[-1].ename == "NotYet" and "hint 1 of 3" in check.outputs[-1].evalue
    (run,) = [cell for cell in notebook.cells if cell.id == "run-11-2"]
    assert "edges 0: 0 of 700" in run.outputs[0].text and "edges 7: 0 " not in run.outputs[0].text


def test_specs_share_the_first_kernels_launch():
    assert programs.launch(Case(20, 35, 40)) == ((3, 2), programs.blocks(16, 16, 16))
    case = Case(33, 17, 9, given=programs.blocks(16, 32, 16), parts=3)
    assert exercise("14.2").launch(case) == ((1, 3, 3), programs.blocks(16, 32, 16) | {"SPLITS": 3})


def test_only_programs_of_triton_have_a_walk():
    walk = exercise("11.3").walk
    assert [walk.tile(Case(75, 60, 20), program) for program in (0, 2, 8, 19)] == [
        *((0, 0), (1, 1), (2, 3), (4, 3))
    ]
    with pytest.raises(ValueError, match="walk"):
        replace(exercise("05.1"), walk=walk)


@pytest.mark.parametrize("value", [(), [], ([1, (2.5, "x")], {"a": (1,), "b": [None, True]}), 3])
def test_a_worker_gets_the_kind_of_argument_that_a_case_has(value):
    import json

    back = wire.restored(json.loads(json.dumps(wire.marked(value))))
    assert repr(back) == repr(value)


def test_lists_stay_lists(worker):
    """An answer may join the lists that it is given, as in the cell that shows the exercise."""
    one = exercise("16.2")
    source = (
        "def step_flops(rows, widths, frozen):\n    return len([0] + widths) + len(frozen.copy())\n"
    )
    verdict = judged(worker, one, source, Call((1, [2, 3], [True])))
    assert verdict.status == "WRONG"  # a number, and no TypeError
