"""The grader against hostile notebooks and answers.

Where the gate would already refuse an answer, the test leaves the gate out (`gated=False`) and
tests the protection behind it. Starting processes takes most of the time, so answers that do not
attack their process share one, and attacks on the process are made in the kind that starts fastest.
"""

import copy
import dataclasses
import itertools
import json
import os
import pickle
import resource
import socket
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from tiled_matmul.grader import cells, gate, pool, practice, spec, starters, teacher, wire
from tiled_matmul.grader.folders import exercise, exercises, folder
from tiled_matmul.grader.journal import Journal
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.reports import FORMATS, as_csv, as_html, as_junit
from tiled_matmul.grader.spec import Call, Case, Count, Exercise, Limits

(SOLUTION,) = [path for path in starters.solutions() if path.name.startswith("05")]
ANSWERS = {name: solved for name, (_, solved) in starters.answers(SOLUTION).items()}
PUZZLE = exercise("05.1")
(FIRST_NOTEBOOK,) = [path for path in starters.solutions() if path.name.startswith("01")]
SANDBOX = pool.sandbox_works()
in_sandbox = pytest.mark.skipif(not SANDBOX, reason="bubblewrap makes no sandbox here")

each_way = pytest.mark.parametrize("confined", [False, pytest.param(True, marks=in_sandbox)])


def test_the_sandbox_is_there_where_it_must_be():
    """Without it the tests below are skipped: where it is known to be, that would hide a fault."""
    assert SANDBOX or os.environ.get("TILED_MATMUL_SANDBOX") != "required"


def handed_in(path, answers):
    """Return a notebook as JSON, as a learner might hand it in with these answers."""
    data = json.loads(path.read_text(encoding="utf-8"))
    for cell in data["cells"]:
        for name, source in answers.items():
            if cell["id"] == exercise(name).cell:
                cell["source"] = source
    return data


@pytest.fixture
def notebook():
    return handed_in(SOLUTION, ANSWERS)


@pytest.fixture(scope="module")
def workers():
    """A function that returns a running worker, one for each kind, in a sandbox or not."""
    with ExitStack() as stack:
        started = {}

        def worker(kind, confined=False):
            key = kind, confined
            if key not in started:
                new = pool.Worker(key[0], Limits(), confined)
                started[key] = stack.enter_context(new)
            return started[key]

        yield worker


@pytest.fixture(scope="module")
def judged(workers):
    """`judge` in a process that other tests use too, for answers that leave it in order."""

    def judged(one, source, **options):
        return judge(one, source, worker=workers(one.kind), **options)

    return judged


@pytest.fixture
def collected(tmp_path):
    """Hand in: return the submission that a notebook is."""

    def collect(data, name="05_shared_memory.ipynb"):
        path = tmp_path / name
        path.write_text(json.dumps(data), encoding="utf-8")
        return cells.collect(path)

    return collect


def statuses(submission):
    return {verdict.exercise.name: verdict.status for verdict in submission.answers}


def sources(submission):
    return {verdict.exercise.name: verdict.source for verdict in submission.answers}


def cell_of(data, name):
    return next(cell for cell in data["cells"] if cell["id"] == name)


def before(text, answer=ANSWERS["05.1"]):
    """Return a right answer with code in front that runs when the answer is defined."""
    return f"{text}\n\n{answer}"


@pytest.fixture(scope="module")
def judged_once(workers):
    """`judge` for a teacher, all in one sandbox, and each answer to an exercise only once."""
    verdicts = {}
    for kind in ("cuda", "triton"):  # here: a sandbox ends with the thread that started it
        workers(kind, confined=True)

    def judged(one, source, *, confined, **options):
        assert confined and options["gpu"] is None
        key = one.name, source
        if key not in verdicts:
            verdicts[key] = judge(one, source, worker=workers(one.kind, confined=True))
        return verdicts[key]

    return judged


# 1 to 3 are in test_grader_mistakes.py. What crosses over: the solution cells and nothing else.


def test_04_a_notebook_without_ids_is_read_by_its_markers(notebook, collected):
    for cell in notebook["cells"]:
        del cell["id"]
    notebook["nbformat_minor"] = 0
    submission = collected(notebook)
    assert sources(submission) == ANSWERS and not submission.notices


def test_04_source_as_lines_and_windows_ends_of_lines(notebook, collected):
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        cell["source"] = text.replace("\n", "\r\n").splitlines(keepends=True)
    assert sources(collected(notebook)) == ANSWERS


def test_05_edited_06_deleted_07_markdown_check_cells_do_not_count(notebook, collected):
    cell_of(notebook, "check-05-1")["source"] = "print('05.1 passed')"
    notebook["cells"].remove(cell_of(notebook, "check-05-2"))
    cell_of(notebook, "check-05-3")["cell_type"] = "markdown"
    submission = collected(notebook)
    assert sources(submission) == ANSWERS
    assert len(submission.notices) == 3 and all(
        "TAMPERED" in notice for notice in submission.notices
    )
    for word in ("changed", "gone", "markdown"):
        assert any(word in notice for notice in submission.notices)


def test_08_to_10_outputs_counts_tags_and_comments_do_not_count(notebook, collected, judged):
    for cell in notebook["cells"]:
        cell["metadata"] = {"tags": ["raises-exception", "nbval-skip", "nbval-ignore-output"]}
        if cell["cell_type"] == "code":
            cell["execution_count"] = None
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "05.1 passed"}]
    wrong = (
        "# exercise 05.1: the 9×9 puzzle\n# NBVAL_SKIP\n@cuda.jit\ndef puzzle(a, b, c):\n    pass"
    )
    cell_of(notebook, "exercise-05-1")["source"] = wrong
    submission = collected(notebook)
    assert sources(submission) == ANSWERS | {"05.1": wrong}
    assert judged(PUZZLE, wrong).status == "WRONG"


def test_11_of_two_solution_cells_the_last_is_graded_and_that_is_said(notebook, collected):
    twin = copy.deepcopy(cell_of(notebook, "exercise-05-1"))
    source = "".join(twin["source"]) + "\n# the second"
    notebook["cells"].append(twin | {"id": "another", "source": source})
    submission = collected(notebook)
    assert sources(submission) == ANSWERS | {"05.1": source}
    assert any("2 cells define puzzle" in notice for notice in submission.notices)


OTHER = "# exercise 05.1: the 9×9 puzzle\n"


@pytest.mark.parametrize("ids", [True, False])
def test_11_a_cell_is_known_by_what_it_defines(ids, notebook, collected):
    """Another exercise's cell pasted and changed, an old attempt in comments, a line above."""
    changed = OTHER + ANSWERS["05.2"].partition("\n")[2]
    cell_of(notebook, "exercise-05-2")["source"] = changed
    old = "\n".join(f"# {line}" for line in ANSWERS["05.1"].split("\n"))
    first = copy.deepcopy(cell_of(notebook, "exercise-05-1"))
    notebook["cells"].insert(0, first | {"id": "old", "source": OTHER + old})
    cell_of(notebook, "exercise-05-3")["source"] = "# mine\n\n" + ANSWERS["05.3"]
    for cell in notebook["cells"]:
        if not ids:
            del cell["id"]
    found = sources(collected(notebook))
    assert found == ANSWERS | {"05.2": changed, "05.3": "# mine\n\n" + ANSWERS["05.3"]}


def test_missing_cells_are_missing(notebook, collected):
    notebook["cells"].remove(cell_of(notebook, "exercise-05-1"))
    cell_of(notebook, "exercise-05-2")["cell_type"] = "markdown"
    submission = collected(notebook)
    there = dict.fromkeys((one.name for one in exercises("05")), "FOUND")
    assert statuses(submission) == there | {"05.1": "MISSING", "05.2": "MISSING"}
    assert submission.answers[1].message.endswith("is of the type markdown, not code.")


PATCHES = (
    "import numpy as np\nnp.allclose = lambda *a, **k: True",
    "print = lambda *a: None",
    "get_ipython().input_transformers_post.append(lambda lines: ['pass'])",
    "get_ipython().showtraceback = lambda *a, **k: None",
    "import tiled_matmul.grader as g\ng.check = lambda name: print(name, 'passed')",
    "from IPython.core.error import UsageError\nraise UsageError('nbval lets this pass')",
)


@pytest.mark.parametrize("patch", PATCHES)
def test_12_15_a_patching_cell_stays_behind_also_within_an_answer(patch, notebook, collected):
    notebook["cells"].insert(0, copy.deepcopy(cell_of(notebook, "check-05-1")))
    notebook["cells"][0] |= {"id": "patch", "source": patch}
    assert sources(collected(notebook)) == ANSWERS
    # Within an answer's cell it is not run: the function does not need it.
    assert gate.admit(PUZZLE, before(patch)).strip() == gate.admit(PUZZLE, ANSWERS["05.1"]).strip()


# What such notebooks are worth: each is handed in, and graded as a teacher does it.


def _saved_by_colab(notebook):
    for cell in notebook["cells"]:
        del cell["id"]
        cell["metadata"] = {"id": "a1b2c3", "colab": {"base_uri": "https://colab.example"}}
    notebook["nbformat_minor"] = 0
    notebook["metadata"] = {"colab": {"provenance": []}, "accelerator": "GPU"}


def _edited_checks(notebook):
    for name in ("05-1", "05-2", "05-3"):
        cell_of(notebook, f"check-{name}")["source"] = f"print('{name} passed')"


def _no_checks(notebook):
    notebook["cells"] = [c for c in notebook["cells"] if not c["id"].startswith("check")]


def _checks_as_text(notebook):
    for cell in notebook["cells"]:
        if cell["id"].startswith("check"):
            cell["cell_type"] = "markdown"
            del cell["outputs"], cell["execution_count"]


def _cleared(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}


def _skipped(notebook):
    for cell in notebook["cells"]:
        cell["metadata"] = {"tags": ["raises-exception", "nbval-skip", "nbval-ignore-output"]}
        if cell["cell_type"] == "code":
            cell["source"] = "".join(cell["source"]) + "\n# NBVAL_SKIP\n# NBVAL_IGNORE_OUTPUT"


def _edited_outputs(notebook):
    passed = [{"output_type": "stream", "name": "stdout", "text": "05.1 passed"}]
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = passed


def _twice(notebook):
    twin = copy.deepcopy(cell_of(notebook, "exercise-05-1"))
    notebook["cells"].append(twin | {"id": "another"})


def _patched_by(patch):
    def change(notebook):
        first = copy.deepcopy(cell_of(notebook, "check-05-1"))
        notebook["cells"].insert(0, first | {"id": "patch", "source": patch})

    return change


def _other_kernel(notebook):
    evil = {"name": "evil", "display_name": "x", "language": "sh", "argv": ["/bin/false"]}
    notebook["metadata"] |= {"kernelspec": evil, "language_info": {"name": "bash"}}


CHANGES = {
    "04 saved by Colab": _saved_by_colab,
    "05 edited checks": _edited_checks,
    "06 deleted checks": _no_checks,
    "07 checks as text": _checks_as_text,
    "08 cleared": _cleared,
    "09 tags and comments": _skipped,
    "10 edited outputs": _edited_outputs,
    "11 twice": _twice,
    "13 other kernel": _other_kernel,
    **{f"12, 15 patch {n}": _patched_by(patch) for n, patch in enumerate(PATCHES)},
}


@pytest.fixture(scope="module")
def marks(tmp_path_factory, judged_once):
    """Grade a class of which each member tampers in a way of its own, solved and unsolved.

    The same answer in the same exercise is judged once, all in one sandbox.
    """
    base = tmp_path_factory.mktemp("class")
    unsolved = {name: starter for name, (starter, _) in starters.answers(SOLUTION).items()}
    for name, change in CHANGES.items():
        for kind, answers in (("solved", ANSWERS), ("unsolved", unsolved)):
            data = handed_in(SOLUTION, answers)
            change(data)
            folder = base / f"{name} {kind}"
            folder.mkdir()
            (folder / "05.ipynb").write_text(json.dumps(data), encoding="utf-8")
            plant_modules(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(practice, "judge", judged_once)
        reports = teacher.grade(base, jobs=1)
    return {report["path"].partition("/")[0]: report for report in reports}


def plant_modules(folder):
    """14: put files beside a notebook that Python or pytest would take for its own."""
    for module in ("conftest", "numpy", "sitecustomize", "json", "tiled_matmul"):
        (folder / f"{module}.py").write_text("import os\nos._exit(0)\n")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --nope\n")


@in_sandbox
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.sample(3)
def test_04_to_15_such_a_notebook_has_the_marks_of_its_answers(name, marks):
    solved, unsolved = marks[f"{name} solved"], marks[f"{name} unsolved"]
    statuses = [one["status"] for one in solved["exercises"]]
    points = [one["points"] for one in solved["exercises"]]
    full = [one["max_points"] for one in solved["exercises"]]
    assert set(statuses) == {"PASS"} and points == full
    assert sum(one["points"] for one in unsolved["exercises"]) == 0


# What decides: bytes, compared by a process that runs no answer.


PLAIN = spec.Rules(
    names=spec.NUMBERS | {"list"}, attributes=frozenset(), members=frozenset({"shape"})
)
HINTS = {"other": 1}
PAIR = Exercise(
    *("99.1", "a pair", 1, "pair", ("n",), "values", PLAIN, (Call((3,)), Call((4,), True))),
    hints=HINTS,
    answer=lambda n: [n, n + 1],
)
LOOPS = Exercise(
    *("99.2", "loops", 1, "matmul", ("a", "b", "c"), "loops", PLAIN),
    cases=(Case(4, 3, 5), Case(3, 3, 2, draw="normal", hidden=True)),
    hints=HINTS,
)
RIGHT_LOOPS = """def matmul(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
"""


def test_values_and_loops_are_judged(judged):
    assert judged(PAIR, "def pair(n):\n    return [n, n + 1]").status == "PASS"
    assert judged(PAIR, "def pair(n):\n    return n, n + 1").status == "PASS"
    verdict = judged(PAIR, "def pair(n):\n    return [n, 4]")
    assert (verdict.status, verdict.message) == ("WRONG", "pair(4) is [4, 4].")
    assert judged(PAIR, "def pair(n):\n    return [True, n]").status == "WRONG"
    assert judged(LOOPS, RIGHT_LOOPS).status == "PASS"
    stale = RIGHT_LOOPS.replace("            c[i, j] = 0\n", "")
    assert "before anything was written there" in judged(LOOPS, stale).message


TILES = Exercise(
    *("99.3", "tiles", 1, "matmul"),
    ("a", "b", "c", "M", "N", "K", *(f"s{name}" for name in "am ak bk bn cm cn".split()), "BLOCK"),
    "triton",
    spec.TRITON,
    cases=(Case(20, 17, 19, draw="normal"),),
    hints=HINTS,
    launch=lambda case: ((2, 2), {"BLOCK": 16}),
)
RIGHT_TILES = """@triton.jit
def matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        at = rows[:, None] * sam + k[None, :] * sak
        x = tl.load(a + at, (rows[:, None] < M) & (k[None, :] < K), 0.0)
        at = k[:, None] * sbk + cols[None, :] * sbn
        y = tl.load(b + at, (k[:, None] < K) & (cols[None, :] < N), 0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    at = rows[:, None] * scm + cols[None, :] * scn
    tl.store(c + at, acc, (rows[:, None] < M) & (cols[None, :] < N))
"""


def test_programs_of_triton_are_judged(judged):
    assert judged(TILES, RIGHT_TILES).status == "PASS"
    verdict = judged(TILES, RIGHT_TILES.replace(" & (k[None, :] < K)", ""))
    assert (verdict.status, verdict.diagnosis) == ("WRONG", "unmasked tail"), verdict
    for old, new in (
        ("tl.dot(", "torch.mm("),
        ("tl.constexpr", "exec('1')"),
        ("c, M", "c: open, M"),
    ):
        assert judged(TILES, RIGHT_TILES.replace(old, new)).status == "FORBIDDEN", new


def test_an_atomic_operation_counts_as_a_load_and_as_a_store(judged):
    loads = Count("elements loaded", lambda case: 2 * (20 * 19 + 19 * 17), "", share=0)
    one = dataclasses.replace(TILES, counts=(loads,))
    load = "x = tl.load(a + at, (rows[:, None] < M) & (k[None, :] < K), 0.0)"
    again = load.replace("x = tl.load", "x += 0 * tl.atomic_add").replace(", 0.0)", ")")
    again = again.replace("a + at, ", "a + at, 0.0, ")
    verdict = judged(one, RIGHT_TILES.replace(load, f"{load}\n        {again}"))
    assert verdict.diagnosis == "counts" and "elements loaded" in verdict.message, verdict


EQUAL = """class Equal(list):
    def __eq__(self, other):
        return True
def pair(n):
    return Equal()
"""


def test_16_an_object_that_equals_everything(judged):
    assert judged(PAIR, EQUAL).status == "NOT_YET"
    verdict = judged(PAIR, EQUAL, gated=False)
    assert verdict.status == "WRONG" and "Equal" in verdict.message


def test_17_inputs_changed_in_place(judged):
    zeroed = RIGHT_LOOPS + "    for i in range(a.shape[0]):\n        a[i, 0] = 0\n"
    verdict = judged(LOOPS, zeroed)
    assert verdict.status == "WRONG" and "changes its input a" in verdict.message


def test_17_inputs_changed_by_a_kernel(judged):
    first = "    cuda.syncthreads()\n    if cuda.grid(2) == (0, 0):\n        a[0, 0] = 0\n"
    verdict = judged(PUZZLE, ANSWERS["05.1"] + "\n" + first)
    assert verdict.points == 0 and verdict.status in ("WRONG", "RACE"), verdict.message
    zeroed = "    if tl.program_id(0) + tl.program_id(1) == 2:\n        tl.store(a, 0.0)\n"
    verdict = judged(TILES, RIGHT_TILES + zeroed)
    assert verdict.status == "WRONG" and verdict.points == 0, verdict.message


ALIKE = dataclasses.replace(
    LOOPS, cases=(Case(4, 3, 5), Case(4, 3, 5, draw="normal"), Case(4, 3, 5, hidden=True))
)
CACHED = """seen = {}


def matmul(a, b, c):
    if a.shape not in seen:
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                c[i, j] = 0
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]
        seen[a.shape] = [[c[i, j] for j in range(b.shape[1])] for i in range(a.shape[0])]
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = seen[a.shape][i][j]
"""
PEEKED = """import gc
import sys

import numpy as np


def matmul(a, b, c):
    arrays = [x for x in gc.get_objects() if isinstance(x, np.ndarray)]
    frame = sys._getframe()
    while frame is not None:
        arrays += [x for x in frame.f_locals.values() if isinstance(x, np.ndarray)]
        frame = frame.f_back
    wanted = np.asarray(a) @ np.asarray(b)
    for x in arrays:
        if x.shape == wanted.shape and x.dtype == np.float64:
            c[:, :] = x
            return
    raise LookupError("the right product is nowhere in this process")
"""


def test_19_a_cached_result_is_of_other_inputs(judged):
    assert judged(ALIKE, RIGHT_LOOPS).status == "PASS"
    verdict = judged(ALIKE, CACHED)
    assert (verdict.status, verdict.points) == ("WRONG", 0), verdict.message


def test_19_the_expected_numbers_written_down_pass_one_case_only(judged):
    numbers = (np.arange(81.0).reshape(9, 9) @ (2 * np.arange(81.0).reshape(9, 9))).tolist()
    body = "\n".join(
        f"    if i == {i} and j == {j}:\n        c[i, j] = {int(numbers[i][j])}"
        for i in range(9)
        for j in range(9)
    )
    source = f"@cuda.jit\ndef puzzle(a, b, c):\n    j, i = cuda.grid(2)\n{body}\n"
    shown = dataclasses.replace(PUZZLE, cases=PUZZLE.cases[:1])
    assert judged(shown, source).status == "PASS"
    verdict = judged(PUZZLE, source)
    assert (verdict.status, verdict.points) == ("WRONG", 0), verdict.message


def test_19_the_right_product_is_not_in_the_answers_process():
    assert judge(LOOPS, PEEKED).status == "FORBIDDEN"
    verdict = judge(LOOPS, PEEKED, gated=False)
    assert verdict.status == "WRONG" and "nowhere in this process" in verdict.message


SPELLINGS = (
    "c[:] = a @ b",
    "a @= b",
    "c[0, 0] = np.dot(a, b)",
    "np.matmul(a, b, c)",
    "np.einsum('ik,kj', a, b)",
    "a.dot(b)",
    "torch.matmul(a, b, out=c)",
    "numpy.linalg.multi_dot((a, b))",
    "operator.matmul(a, b)",
    "tiled_matmul.ladder.cuda_puzzle.matmul(a, b, c)",
    "getattr(np, 'dot')(a, b)",
    "np.__dict__['dot'](a, b)",
    "a.__matmul__(b)",
    "__import__('numpy').dot(a, b)",
    "eval('a @ b')",
    "exec('c[:] = a @ b')",
    "import numpy",
    "from numpy import dot",
    "(lambda f: f(a, b))(np.dot)",
    "[np.dot][0](a, b)",
    "f = np.dot\n    f(a, b)",
    "x = cuda\n    x.libdevice",
    "cuda.cublas(a, b)",
    "range.__self__",
    "().__class__.__base__.__subclasses__()",
    "print.__globals__",
    "f'{a @ b}'",
)


@pytest.mark.parametrize("line", SPELLINGS)
def test_18_the_product_of_a_library_by_any_spelling(line):
    source = f"@cuda.jit\ndef puzzle(a, b, c):\n    {line}\n"
    with pytest.raises(gate.Refused) as refused:
        gate.admit(PUZZLE, source)
    assert "line 3" in str(refused.value) or "line 4" in str(refused.value)


TRICKS = (
    "import sys\nhelper = sys._getframe",
    "helper = globals()",
    "helper = print.__globals__",
    "def helper(x):\n    return cuda.jit.__globals__",
    "def helper(x):\n    exec('1')",
    "class helper(list): pass",
    "def helper(x=open):\n    return x",
    "@print\ndef helper(x):\n    return x",
    "@cuda.jit(link='x.ptx')\ndef helper(x):\n    return x",
    "@cuda.jit(**{})\ndef helper(x):\n    return x",
    "def helper(_simt_lane):\n    return _simt_lane",
    "def helper(cuda):\n    return cuda",
    "def helper(x):\n    yield x",
    "async def helper(x):\n    return x",
    "def helper(x):\n    x.shape = 3",
    "def helper(x):\n    cuda.jit = x",
    "def helper(x):\n    return 9 ** 9 if x else 10 ** 99 + " + "9" * 400,
    "def helper(x):\n    return " + "-" * 200 + "x",
    "def helper(x):\n    return x.gi_frame.f_globals",
    "def helper(x):\n    raise ValueError(open('x'))",
    "helper = [c for c in ().__class__.__base__.__subclasses__()]",
    "x = '" + "a" * 30_000 + "'",
)


@pytest.mark.parametrize("text", TRICKS, ids=range(len(TRICKS)))
def test_19_what_reaches_out_of_a_cell_is_not_run(text):
    answer = ANSWERS["05.1"].replace("cuda.threadIdx.y", "helper(cuda.threadIdx.y)", 1)
    assert "helper" in answer
    with pytest.raises(gate.Refused):
        gate.admit(PUZZLE, before(text, answer))


FIRST = exercise("10.1")
HEAD = f"def {FIRST.entry}({', '.join(FIRST.parameters)}):"
TWO_READINGS = {
    # Triton's interpreter takes the last line that begins with "def ".
    "a docstring": f'@triton.jit\n{HEAD}\n    """.\n    {HEAD}\n        1 / 0\n    """\n    pass\n',
    "a text that goes on": f"@triton.jit\n{HEAD}\n    '.\\\n{HEAD} 1 / 0\\\n'\n    pass\n",
    **{
        f"a comment with {odd!a}": f"#{odd}{HEAD} 1 / 0\n@triton.jit\n{HEAD}\n    pass\n"
        for odd in "\x0b\x0c\x1c\x85\u2028\r"
    },
}


REACHING = (
    "lambda s: s.__class__",
    "lambda _simt: 0",
    "lambda s: open",
    "lambda s: s.format(s)",
)


@pytest.mark.parametrize("key", REACHING)
def test_19_a_lambda_reaches_no_further_than_a_function(key):
    one = exercise("12.3")
    gate.admit(one, "def choose(m, n):\n    return max(SETTINGS, key=lambda s: s[0] * m)\n")
    with pytest.raises(gate.Refused):
        gate.admit(one, f"def choose(m, n):\n    return max(SETTINGS, key={key})\n")


@pytest.mark.parametrize("text", ["a docstring", "a text that goes on"])
def test_19_past_the_gate_a_second_reading_is_still_refused(text, judged):
    verdict = judged(FIRST, TWO_READINGS[text], gated=False)
    assert verdict.status == "WRONG" and "can be read as another function" in verdict.message


@pytest.mark.parametrize("source", TWO_READINGS.values(), ids=TWO_READINGS)
def test_19_what_others_read_otherwise_than_python_is_not_run(source):
    """Texts that do nothing are taken out, and any other is refused."""
    try:
        assert "1 / 0" not in gate.admit(FIRST, source)
    except (gate.Refused, gate.NotPython):
        assert "#" in source


def test_19_the_interpreter_ends_lines_where_python_does(judged):
    """Behind the gate: a comment stays a comment, and the kernel is the one that the gate saw."""
    body = ANSWERS["05.1"].partition("def puzzle(a, b, c):")[2]
    hidden = f'"""\n@cuda.jit\ndef puzzle(a, b, c):{body}"""' + "\x0c" * 30
    source = f"{hidden}\n@cuda.jit\ndef puzzle(a, b, c):\n    pass\n"
    assert judged(PUZZLE, source, gated=False).status != "PASS"
    assert judged(PUZZLE, source.replace("\x0c", "\x0b")).status == "FORBIDDEN"
    assert judged(PUZZLE, source).status == "WRONG"  # page breaks go: the empty kernel is graded


@pytest.mark.parametrize("text", ["def puzzle(", "%time x", "a\0b", "(" * 5000, "\ud800"])
def test_what_is_no_python_is_said_to_be_none(text):
    with pytest.raises((gate.NotPython, gate.Refused)):
        gate.admit(PUZZLE, text)


# Isolation. The sandbox and the process are the same for all kinds; loops start fastest.


def judged_alone(text, confined=False, **limits):
    """Judge a right answer that attacks its process when it is defined, in a process of its own."""
    one = dataclasses.replace(LOOPS, limits=Limits(**limits))
    return judge(one, before(text, RIGHT_LOOPS), confined=confined, gated=False)


@each_way
@pytest.mark.parametrize(
    "text",
    [
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        "import os\nos.abort()",
        "import ctypes\nctypes.string_at(0)",
        "import os\nos.close(1)\nos.closerange(3, 64)",
    ],
)
def test_20_the_end_of_the_process_is_noticed_within_two_seconds(text, confined):
    with pool.Worker(LOOPS.kind, LOOPS.limits, confined) as worker:
        began = time.monotonic()
        header = {"source": text, "given": {}, "entry": "matmul"}
        try:
            reply, _ = worker.ask(header, [], 30, 0)
        except pool.Died:
            reply = {"error": {"type": "SystemExit"}}
        assert reply["error"]["type"] == "SystemExit"
        assert time.monotonic() - began < 2


@each_way
@pytest.mark.parametrize("text", ["import os\nos._exit(0)", "raise SystemExit(0)"])
def test_20_such_an_end_is_a_crash(text, confined):
    verdict = judged_alone(text, confined)
    assert verdict.status == "CRASH" and verdict.points == 0


@in_sandbox
def test_20_the_grader_cannot_be_killed_from_within():
    text = "import os\nfor pid in (os.getppid(), -1):\n    try:\n        os.kill(pid, 9)\n"
    text += "    except OSError as error:\n        print(error)\nos._exit(1)"
    assert judged_alone(text, confined=True).status == "CRASH"


@each_way
def test_21_a_loop_that_ignores_interrupts_is_ended(confined):
    text = "import signal\nfor n in (1, 2, 15):\n    signal.signal(n, signal.SIG_IGN)\n"
    text += "while True:\n    pass"
    began = time.monotonic()
    verdict = judged_alone(text, confined, seconds=0.5)
    assert verdict.status == "TIMEOUT" and time.monotonic() - began < 8


def test_21_a_loop_over_numbers_without_end():
    body = "    for i in range(10 ** 15):\n        c[0, 0] = i\n"
    verdict = judge(PUZZLE, f"@cuda.jit\ndef puzzle(a, b, c):\n{body}")
    assert verdict.status == "TIMEOUT", verdict.message


@each_way
def test_22_a_flood_of_memory(confined):
    verdict = judged_alone("x = bytearray(1 << 40)", confined)
    assert (verdict.status, verdict.diagnosis) == ("CRASH", "memory")
    text = "x = []\nwhile True:\n    x.append(bytearray(1 << 26))"
    verdict = judged_alone(text, confined, memory=1 << 30)
    assert verdict.status == "CRASH"


def test_22_a_flood_of_output_is_kept_small():
    text = "while True:\n    print('x' * 10_000)"
    with pool.Worker(LOOPS.kind, LOOPS.limits, False) as worker:
        with pytest.raises(pool.TooSlow):
            worker.ask({"source": text, "given": {}, "entry": "matmul"}, [], 0.5, 0)
        assert len(worker.output) <= LOOPS.limits.output < worker.dropped


def processes_called(name):
    pids = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().strip() == name:
                pids.append(path.parent.name)
        except OSError:
            continue
    return pids


@in_sandbox
def test_23_a_flood_of_processes_is_bounded_and_nothing_stays():
    if os.geteuid() != 0:
        pytest.skip("only root's sandboxes have users of their own")
    mark = f"flood{os.getpid()}"  # each child inherits it
    text = "import ctypes, os, time\n"
    text += f"ctypes.CDLL(None).prctl(15, {mark.encode()!r}, 0, 0, 0)\n"  # PR_SET_NAME
    text += "n = 0\ntry:\n    while True:\n        if os.fork() == 0:\n"
    text += "            os.setsid()\n            time.sleep(60)\n            os._exit(0)\n"
    text += "        n += 1\nexcept OSError:\n    raise RuntimeError(f'{n} of them')"
    verdict = judged_alone(text, confined=True)
    assert verdict.status == "WRONG" and " of them" in verdict.message, verdict
    assert int(verdict.message.split()[-3]) < Limits().processes
    deadline = time.monotonic() + 2
    while processes_called(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_called(mark)


@each_way
def test_23_an_orphan_that_keeps_the_pipe_open_does_not_count_as_the_worker(confined):
    text = "import os, time\nif os.fork() == 0:\n    time.sleep(20)\nos._exit(0)"
    began = time.monotonic()
    verdict = judged_alone(text, confined)
    assert verdict.status == "CRASH" and time.monotonic() - began < 6


@in_sandbox
def test_24_there_is_no_network():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        seen = []
        server.settimeout(1.5)

        def wait():
            try:
                seen.append(server.accept())
            except OSError:
                pass

        waiting = threading.Thread(target=wait)
        waiting.start()
        text = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)"
        verdict = judged_alone(text, confined=True)
        waiting.join()
    assert verdict.status == "WRONG" and not seen, verdict.message


@in_sandbox
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"open({str(folder('05.1').path / 'hidden.py')!r})", "FileNotFoundError"),
        (f"open({str(SOLUTION)!r})", "FileNotFoundError"),
        (f"open({__file__!r})", "FileNotFoundError"),
        ("open('/etc/passwd')", "Error"),
        (f"open({gate.__file__!r}, 'a')", "OSError"),
        (f"open({str(Path(spec.__file__).parent / 'x.py')!r}, 'w')", "OSError"),
        ("import os\nraise OSError(os.environ.get('LEAK'))", "`): None"),
        ("import os\nraise OSError(os.getuid() >= 200_000 or os.getuid() != 0)", "`): True"),
        # Root's sandbox may not look; another user's sees only what the grader gave it.
        ("if 'LEAK' in open('/proc/1/environ').read():\n    pass\nelse:\n    1 / 0", "Error"),
    ],
)
def test_25_hidden_tests_cannot_be_read_and_the_grader_not_written(text, words, monkeypatch):
    monkeypatch.setenv("LEAK", "a secret")
    verdict = judged_alone(text, confined=True)
    assert verdict.status == "WRONG" and "Error" in verdict.message, verdict.message
    if words == "OSError":
        assert "Error" in verdict.message.split()[0]
    else:
        assert words in verdict.message


FAKE = """
import os, struct, sys
out = int(sys.argv[1])
def send(text, data=b''):
    os.write(out, struct.pack('>Q', len(text)) + text + data)
def receive():
    sys.stdin.buffer.read(*struct.unpack('>Q', sys.stdin.buffer.read(8)))
receive()
send(b'{"ready": true, "sizes": []}')
receive()
"""
LIES = {
    "pickle": f"os.write(out, {pickle.dumps({'status': 'PASS'})!r})",
    "huge header": "os.write(out, struct.pack('>Q', 1 << 60))",
    "huge data": "send(b'{\"sizes\": [1000000000000]}')",
    "negative": "send(b'{\"sizes\": [-1]}')",
    "no sizes": "send(b'{}')",
    "a list": "send(b'[1, 2]')",
    "deep": "send(b'[' * 100000)",
    "bytes after": "send(b'{\"sizes\": []}', b'more')",
    "not text": "send(b'\\xff\\xff\\xff')",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_26_replies_that_are_none_are_refused(lie):
    command = [sys.executable, "-c", FAKE + lie + "\nimport time\ntime.sleep(5)"]
    with pool.Worker("loops", Limits(), False, command) as worker:
        with pytest.raises(wire.BadMessage):
            worker.ask({}, [], 5, 1000)


FORGED = {
    "a verdict": '{"status": "PASS", "points": 4, "sizes": []}',
    "no data": '{"findings": [], "counts": {}, "sizes": []}',
    "other sizes": '{"findings": [], "counts": {}, "sizes": [0, 0, 0]}',
    "kind": '{"findings": "none", "counts": {}, "sizes": []}',
}


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
def test_26_a_forged_reply_is_no_pass(text, monkeypatch):
    """An answer that writes to the grader's line itself, and then ends."""
    write = "import os, struct\ntext = " + repr(text.encode()) + "\nfor fd in range(3, 64):\n"
    write += "    try:\n        os.write(fd, struct.pack('>Q', len(text)) + text)\n"
    write += "    except OSError:\n        pass\nos._exit(0)"
    assert judged_alone(write).status == "CRASH"


def test_26_a_result_that_is_too_deep_is_nonsense():
    from tiled_matmul.grader import compare

    assert not compare._deep([[1, {"a": [2]}], 3])
    deep = []
    for _ in range(900):
        deep = [deep]
    assert compare._deep(deep)
    source = "def pair(n):\n    return [n]\nimport json\n"
    source += "json.dumps = lambda *x, **y: '[' * 900 + ']' * 900\n"
    verdict = judge(PAIR, source, gated=False)
    assert (verdict.status, verdict.points) == ("CRASH", 0), verdict.message


@pytest.fixture
def as_fast_as_meant(monkeypatch):
    """Limits are not longer than they say, however slow this machine is."""
    monkeypatch.setattr(pool, "slowness", lambda: 1.0)


def test_21_a_slow_machine_has_as_many_times_longer(monkeypatch):
    slow = "def pair(n):\n    for i in range(10 ** 7):\n        n += 0\n    return [n, n + 1]"
    many = dataclasses.replace(PAIR, cases=(Call((3,)),) * 60, limits=Limits(in_all=0.5))
    monkeypatch.setattr(pool, "slowness", lambda: 3.0)
    verdict = judge(many, slow)
    assert verdict.status == "TIMEOUT" and "over 1.5 s together" in verdict.message
    monkeypatch.setattr(pool, "slowness", lambda: 1000.0)
    assert judge(dataclasses.replace(many, cases=many.cases[:3]), slow).status == "PASS"


def test_21_slowness_is_measured_within_bounds(monkeypatch):
    measured = pool.slowness.__wrapped__
    for each, wanted in ((0.001, 1), (2 * pool.LOOP_S, 2), (100, 8)):
        clock = itertools.count()
        monkeypatch.setattr(time, "thread_time", lambda: next(clock) * each)  # noqa: B023
        assert measured() == pytest.approx(wanted)


@pytest.mark.usefixtures("as_fast_as_meant")
def test_21_many_slow_cases_end_together():
    slow = "def pair(n):\n    for i in range(10 ** 7):\n        n += 0\n    return [n, n + 1]"
    many = dataclasses.replace(PAIR, cases=(Call((3,)),) * 60, limits=Limits(in_all=2))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = judge(many, slow)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert verdict.status == "TIMEOUT" and "over 2 s together" in verdict.message
    assert after.ru_utime - before.ru_utime < 2 + 1 + 1  # whole seconds are counted, and the start


@pytest.mark.usefixtures("as_fast_as_meant")
def test_21_an_answer_that_waits_has_no_more_than_all_its_time(monkeypatch):
    monkeypatch.setattr(pool, "STARVED", 1.0)
    waits = "import time\ndef pair(n):\n    time.sleep(5)\n    return [n, n + 1]"
    many = dataclasses.replace(PAIR, cases=(Call((3,)),) * 60, limits=Limits(in_all=0.5))
    began = time.monotonic()
    verdict = judge(many, waits, gated=False)
    assert verdict.status == "TIMEOUT" and "over 0.5 s together" in verdict.message
    assert time.monotonic() - began < 0.5 * spec.SLACK + 1


@pytest.mark.usefixtures("as_fast_as_meant")
def test_21_seconds_are_of_processor_time_so_a_busy_machine_costs_no_marks(monkeypatch):
    monkeypatch.setattr(pool, "STARVED", 1.0)

    def after(seconds):
        slept = f"import time\ndef pair(n):\n    time.sleep({seconds})\n    return [n, n + 1]"
        return judge(dataclasses.replace(PAIR, limits=Limits(seconds=1)), slept, gated=False)

    assert after(1.5).status == "PASS"
    assert after(4).status == "TIMEOUT"


def test_21_the_gate_takes_no_time():
    began = time.monotonic()
    texts = f"def choose(m, n):\n    return [{'``,' * 6_600}]\n".replace("`", "'")
    gate.admit(exercise("12.3"), texts)
    assert time.monotonic() - began < 2


def test_28_waiting_for_another_thread_ends(judged):
    body = "    x = cuda.threadIdx.x\n    if x == 1:\n        c[0, 0] = 1\n    if x == 0:\n"
    body += "        while c[0, 0] != 1:\n            pass\n"
    verdict = judged(PUZZLE, f"@cuda.jit\ndef puzzle(a, b, c):\n{body}")
    assert verdict.status == "TIMEOUT" and "line 7" in verdict.message


# Bad input: a line each.


def test_what_is_no_exercise_notebook_is_a_line(tmp_path, notebook):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hi")
    (tmp_path / "a.ipynb").write_text("{")
    (tmp_path / "b.ipynb").write_bytes(b"\xff\xfe")
    (tmp_path / "c.ipynb").write_text('{"cells": [{"source": 3}]}')
    (tmp_path / "d.ipynb").write_text("[" * 100_000)
    with open(tmp_path / "e.ipynb", "wb") as file:
        file.truncate(500 << 20)
    (tmp_path / "f.ipynb").symlink_to("/etc/passwd")
    (tmp_path / "g.ipynb").write_text('{"cells": [], "metadata": {}}')
    (tmp_path / "h 'x' \"y\".ipynb").write_text("null")
    (tmp_path / "i.ipynb").symlink_to(tmp_path / "i.ipynb")
    reports = teacher.grade(tmp_path, jobs=2)
    errors = {report["path"]: report["error"] for report in reports}
    assert len(errors) == 11
    words = "JSON UTF-8 text JSON MB link exercise cells"
    for name, word in zip("abcdefgh", words.split(), strict=True):
        (error,) = [
            error
            for path, error in errors.items()
            if path.startswith(name + (".", " ")[name == "h"])
        ]
        assert word in error
    assert "no notebook" in errors["empty"] and "not a notebook" in errors["notes.txt"]


def test_an_older_version_is_noted(notebook, collected):
    notebook["metadata"]["tiled_matmul"]["version"] = 0
    assert any("version 0" in notice for notice in collected(notebook).notices)


def test_the_formats_hold_whatever_a_submission_says(tmp_path):
    evil = "=1+1 <script>alert(1)</script> \x00\x1b]]>&\n"
    one = {"exercise": "05.1", "status": "WRONG", "points": 0, "max_points": 4, "hint": 1}
    reports = [{"path": "=x", "exercises": [one | {"evidence": {"message": evil}}]}]
    from csv import reader
    from xml.etree import ElementTree

    rows = list(reader("".join(as_csv(reports)).splitlines()))
    assert rows[1][0] == "'=x"
    assert "'=1+1" in "".join(as_csv(reports))
    assert ElementTree.fromstring("".join(as_junit(reports)).encode())[0].get("failures") == "1"
    assert "<script>" not in "".join(as_html(reports))


EVIL = "\ud800\x1b[2J\r\u202e"


@in_sandbox
def test_what_no_format_and_no_terminal_should_get_does_not_come_through(
    tmp_path, capsys, judged_once, monkeypatch
):
    from tiled_matmul.__main__ import main

    monkeypatch.setattr(practice, "judge", judged_once)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "in"
    folder.mkdir()
    (path,) = [path for path in starters.solutions() if path.name.startswith("11")]
    data = json.loads(path.read_text(encoding="utf-8"))
    cell_of(data, "exercise-11-1")["cell_type"] = EVIL
    (source,) = [solved for name, (_, solved) in starters.answers(path).items() if name == "11.2"]
    assert source.count("tl.load(") > 0
    cell_of(data, "exercise-11-2")["source"] = source.replace(
        "tl.load(", "tl.load(cache_modifier='\\ud800', pointer=", 1
    )
    data["metadata"]["tiled_matmul"]["version"] = EVIL
    name = "zed\n  11.1  PASS  3 of 3.ipynb"
    (folder / name).write_text(json.dumps(data), encoding="utf-8")
    files = {name: tmp_path / f"out.{name}" for name in FORMATS}
    options = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    assert main(["grade", "--teacher", str(folder), "--jobs", "1", *options]) == 0
    assert main(["grade", "--teacher", str(folder), "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "11.1  MISSING" in printed and "\n  11.1  PASS" not in printed
    for text in (printed, *(path.read_text(encoding="utf-8") for path in files.values())):
        assert not set(EVIL.replace("[2J", "")) & set(text)


def test_a_link_is_not_followed_to_a_classmates_answers(tmp_path, notebook):
    for name in ("alice", "bob"):
        (tmp_path / name).mkdir()
    (tmp_path / "alice" / "05.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "bob" / "05.ipynb").symlink_to("../alice/05.ipynb")
    (tmp_path / "carol.ipynb").symlink_to("alice/05.ipynb")
    (tmp_path / "dan").symlink_to("alice")
    entries = {str(path.relative_to(tmp_path)): why for path, why in teacher.submissions(tmp_path)}
    assert entries.pop("alice/05.ipynb") is None and len(entries) == 3
    assert all("is not followed" in why for why in entries.values())


def test_folders_within_folders_stop_no_one_elses_marks(tmp_path, notebook):
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "05.IPYNB").write_text(json.dumps(notebook))
    places = [tmp_path / "bob"]
    for _ in range(1500):
        places.append(places[-1] / "d")
    for place in places:
        place.mkdir()
    (places[3] / "05.ipynb").write_text(json.dumps(notebook))
    try:
        entries = dict(teacher.submissions(tmp_path))
    finally:
        (places[3] / "05.ipynb").unlink()
        for place in reversed(places):
            place.rmdir()
    assert entries.pop(tmp_path / "alice" / "05.IPYNB") is None
    assert entries.pop(places[3] / "05.ipynb") is None
    assert list(entries) == places[:1]
    assert f"more than {teacher.MAX_DEPTH} deep" in entries[places[0]]


@in_sandbox
def test_a_grading_goes_on_where_it_ended_beside_planted_modules(tmp_path, monkeypatch):
    folder, journal = tmp_path / "in", tmp_path / "journal"
    (folder / "a").mkdir(parents=True)
    answers = {name: solved for name, (_, solved) in starters.answers(FIRST_NOTEBOOK).items()}
    solved = handed_in(FIRST_NOTEBOOK, answers)
    (folder / "a" / "a.ipynb").write_text(json.dumps(solved))
    plant_modules(folder / "a")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Journal(journal, folder) as kept:
        first = list(teacher.grade(folder, jobs=1, journal=kept))
    assert {one["status"] for one in first[0]["exercises"]} == {"PASS"}
    with open(journal, "a") as file:
        file.write("\n" + journal.read_text()[:100])
    monkeypatch.setattr(practice, "grade", lambda *a, **k: pytest.fail("graded again"))
    with Journal(journal, folder) as kept:
        assert list(teacher.grade(folder, jobs=1, journal=kept)) == first
        assert kept.ignored == 1


def test_a_failing_grader_is_not_the_learners_zero(tmp_path, notebook, monkeypatch):
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    monkeypatch.setattr(practice, "grade", lambda *a, **k: 1 / 0)
    (report,) = teacher.grade(tmp_path, jobs=1)
    assert report["error"].startswith("INFRA: ") and report["infra"]


def test_without_a_worker_it_is_infra(monkeypatch):
    monkeypatch.setattr(pool, "_NURSERIES", {})
    monkeypatch.setattr(pool.sys, "executable", "/nowhere/python")
    verdict = judge(PUZZLE, ANSWERS["05.1"])
    assert (verdict.status, verdict.points) == ("INFRA", 0)
