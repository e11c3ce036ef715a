"""`check` in a notebook and `grade` on its file read the same answer out of the same cells."""

import json
import signal
import sys
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from tiled_matmul.grader import cells, gate, practice, starters, transform
from tiled_matmul.grader.folders import exercise
from tiled_matmul.grader.judge import judge

ONE = exercise("01.1")
(PATH,) = [path for path in starters.solutions() if path.name.startswith("01")]
RIGHT = starters.answers(PATH)["01.1"][1]


@pytest.fixture(scope="module")
def shell():
    """IPython as in a notebook, which keeps no history in a file."""
    main, path, ctrl_c = sys.modules["__main__"], list(sys.path), signal.getsignal(signal.SIGINT)
    made = InteractiveShell.instance(user_module=ModuleType("notebook"))
    made.history_manager.enabled = False
    yield made
    made.restore_sys_module_state()
    InteractiveShell.clear_instance()
    sys.modules.pop("notebook", None)
    sys.modules["__main__"], sys.path[:] = main, path
    signal.signal(signal.SIGINT, ctrl_c)


@pytest.fixture
def seen(shell, tmp_path, monkeypatch):
    """Return what is run of the answer among some cells, (at home, in class), or the refusals."""
    monkeypatch.chdir(tmp_path)

    def at_home(sources):
        shell.reset()
        for source in sources:
            shell.run_cell(source, store_history=True)
        try:
            return practice._written(ONE)
        except practice.NotYet:
            return None, 0, ""

    def in_class(sources):
        data = json.loads(PATH.read_text(encoding="utf-8"))
        kept = [one for one in data["cells"] if one["id"] in ("title", "setup")]
        made = [
            {"cell_type": "code", "source": text, "id": f"mine-{n}", "metadata": {}, "outputs": []}
            for n, text in enumerate(sources)
        ]
        made = made or [{"cell_type": "code", "source": "", "id": ONE.cell}]
        path = tmp_path / "a.ipynb"
        path.write_text(json.dumps(data | {"cells": [*kept, *made]}), encoding="utf-8")
        found = cells.collect(path).answers[0]
        return found.source, found.above

    def admitted(source):
        if source is None:
            return "missing"
        try:
            return gate.admit(ONE, source)
        except (gate.Refused, gate.NotPython) as error:
            return f"{type(error).__name__}: {error}"

    def both(*sources):
        home, above, note = at_home(sources)
        there, lines = in_class(sources)
        assert above == lines
        found = SimpleNamespace(home=admitted(home), there=admitted(there), note=note)
        assert code(found.home) == code(found.there)
        return found

    return both


def code(text):
    """Return the lines that do something."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#") and line != "pass;"]


def prompts(text, first=">>> ", later="... "):
    return "\n".join((later if n else first) + one for n, one in enumerate(text.split("\n")))


FORMS = {
    "help": lambda text: f"{text}\nloops?",
    "more help": lambda text: f"{text}\nloops??\n",
    "help before": lambda text: f"{text}\n?loops",
    "names": lambda text: f"{text}\nloo*?",
    "indented": lambda text: "\n".join(f"    {line}" for line in text.split("\n")),
    "prompts": prompts,
    "IPython's prompts": lambda text: prompts(text, "In [12]: ", "    ...: "),
    "output of a command": lambda text: f"{text}\nx = !true",
    "timed": lambda text: f"{text}\nt = %timeit -n1 -r1 -q -o 1 + 1",
    "in try": lambda text: f"try:\n    !true\nexcept OSError:\n    pass\n{text}",
    "two lines": lambda text: f"!true \\\n  -l\n{text}",
    "captured": lambda text: f"{text}\n!!true",
    "page break": lambda text: f"import math\n\f\n{text}\n\f",
    "page break before a line": lambda text: f"\f{text}",
    "from Windows": lambda text: text.replace("\n", "\r\n"),
    "from an old Mac": lambda text: text.replace("\n", "\r"),
    "quoted call": lambda text: f"{text}\n,print a b\n;print a b\n/print 3",
    "line magic": lambda text: f"%matplotlib --list\n{text}",
    "empty lines": lambda text: f"\n  \n\n{text}\n\n",
    "await": lambda text: f"import asyncio\nawait asyncio.sleep(0)\n{text}",
    "semicolon": lambda text: f"{text}\n1 + 1;",
    "trailing blanks": lambda text: f"{text}  \t\n   ",
    "comment": lambda text: f"# mine\n{text}\n# end",
    "time": lambda text: f"%%time\n{text}",
    "prun": lambda text: f"%%prun -q\n{text}",
    "capture": lambda text: f"%%capture out\n\n{text}",
    "capture and time": lambda text: f"%%capture\n%%time\n{text}",
}
LOCAL = {"timeit": lambda text: f"%%timeit -n1 -r1\n{text}"}
OTHER = {
    "a file": lambda text: f"%%writefile mine.py\n{text}",
    "html": lambda text: f"%%html\n{text}",
    "a shell": lambda text: f"%%bash\ntrue <<'END'\n{text}\nEND",
    "not Python": lambda text: f"{text}\nx = = 3",
    "cut": lambda text: f"{text}\nx = 3 + \\",
    "byte order mark": lambda text: f"\ufeff{text}",
    "no such magic": lambda text: f"%%no_such_magic\n{text}",
    "needs a command": lambda text: f"{text}\n    x = !true",
    "only comments": lambda text: "\n".join(f"# {line}" for line in text.split("\n")),
}


@pytest.mark.parametrize("name", [*FORMS, *LOCAL])
def test_a_right_answer_is_the_same_in_every_form(name, seen):
    found = seen((FORMS | LOCAL)[name](RIGHT))
    assert code(found.home) == code(gate.admit(ONE, RIGHT)) != []
    assert bool(found.note) is (name in LOCAL)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(sorted({**FORMS, **LOCAL, **OTHER})), max_size=3))
def test_forms_on_forms_are_the_same_at_home_and_in_class(seen, names):
    text = RIGHT
    for name in names:
        text = (FORMS | LOCAL | OTHER)[name](text)
    seen(text)


@pytest.mark.parametrize("name", OTHER)
def test_what_is_no_answer_is_none_at_home_and_in_class(name, seen):
    found = seen(OTHER[name](RIGHT)).home
    assert found == "missing" or found.partition(":")[0] in (
        "Mistake",
        "NotPython",
        "NotYet",
        "Refused",
    )


HELPER = "def {0}(x, y):\n    return x * y\n"
CALLS = RIGHT.replace("a[i, k] * b[k, j]", "{0}(a[i, k], b[k, j])")
BY_HAND = "def {0}(x, y):\n    return {1}(x, y) * SIGN\n"


@pytest.mark.parametrize("name", ["dot", "partial", "matmul", "sum", "copy_async", "operator", "f"])
def test_a_helper_in_another_cell_is_as_one_in_the_same_cell(name, seen):
    helper, answer = HELPER.format(name), CALLS.format(name)
    alone = seen(f"{helper}\n{answer}").home
    assert code(alone) == code(f"{helper}\n{answer}")
    assert code(seen(helper, answer).home) == code(alone)
    assert code(seen("sum = 0", f"%%time\n{helper}print(3)", "x = 3", answer).home) == code(alone)
    assert code(seen(f"def {name}(x): return x @ x", helper, answer).home) == code(alone)


def test_helpers_of_helpers_and_what_is_added_to_a_table(seen):
    others = ["SIGN = 2", "def g(x, y):\n    return x * y", "SIGN = 1", BY_HAND.format("f", "g")]
    assert code(seen(*others, CALLS.format("f")).home) == code(
        "\n".join([*others[1:], CALLS.format("f")])
    )
    others = ["T = {0: 2}", "T = {}", "T[0] = 1\nprint(T)", "def f(x, y): return x * y * T[0]"]
    assert code(seen(*others, CALLS.format("f")).home) == code(
        "\n".join(["T = {}", "T[0] = 1", others[3], CALLS.format("f")])
    )


def test_a_helper_is_looked_at_like_an_answer(seen):
    answer = CALLS.format("f")
    assert seen("def f(x, y): return np.dot(x, y)", answer).home.startswith("Product: ")
    assert seen("import os\ndef f(x, y): return os.system(x)", answer).home.startswith("Refused: ")
    assert seen("def f(x, y): return eval(x)", answer).home.startswith("Refused: ")
    assert seen("f = !true", answer).home.startswith("NotYet: ")
    assert seen("def f(x, y: return x", answer).home.startswith("Mistake: ")


def test_a_helper_below_counts_where_none_is_above():
    def read(*sources):
        made = [cells.Cell("code", str(n), text) for n, text in enumerate(sources)]
        return cells._answer(ONE, made, made, {}).source

    answer, one, other = CALLS.format("f"), "def f(x, y): return 1", "def f(x, y): return 2"
    assert read(answer, other) == f"{other}\n{answer}"
    assert read(one, answer, other) == f"{one}\n{answer}"


def test_lines_of_a_verdict_are_those_of_the_answer():
    helper, answer = "def f(x, y):\n    return x * y", CALLS.format("f").replace("b[k", "b[9")
    source, above = cells.with_helpers(
        ONE, cells.Cell("code", "", answer), [cells.Cell("code", "", helper)]
    )
    assert "Line 9 (`c[i, j] +=" in judge(ONE, source, above=above).message
    bad = source.replace("x * y", "x @ y")
    assert "a line of another cell" in judge(ONE, bad, above=above).message


WRONG = RIGHT.replace("c[i, j] = 0", "c[i, j] = 1")


@pytest.mark.parametrize("fault", ["x = ) 3", "1 / 0", "import no_such_module", "raise KeyError"])
def test_after_an_error_the_latest_version_is_judged_and_a_note_says_so(fault, seen):
    found = seen(RIGHT, f"{fault}\n{WRONG}")
    assert "= 1" in found.home or "is not Python" in found.home
    assert "an older one" in found.note
    assert "defined no loops in this notebook" in seen(f"{fault}\n{RIGHT}").note
    assert seen(f"{fault}\n{WRONG}", RIGHT).note == ""


def test_an_earlier_version_of_the_cell_holds_no_helpers(seen, shell):
    shell.reset()
    helper = HELPER.format("f")
    for text in (f"{RIGHT}\n{helper}", CALLS.format("f")):
        shell.run_cell(text, store_history=True)
    assert practice._written(ONE)[1] == 0
    shell.run_cell(helper, store_history=True)
    assert practice._written(ONE)[1] == 2


def test_lines_keep_their_numbers_and_python_stays_as_it_is():
    for form in {**FORMS, **LOCAL, **OTHER}.values():
        text = form(RIGHT)
        new = transform.python(text).text
        assert len(new.split("\n")) == len(transform.plain(text).split("\n"))
        assert transform.python(new).text == new


def test_cell_magics_that_run_their_cell_are_those_of_ipython(shell):
    known = shell.magics_manager.magics["cell"]
    assert set(transform.RUN_BODY) < set(known)
    for name in set(known) - set(transform.RUN_BODY):
        assert transform.python(f"%%{name}\nx = 1") == ("\n", name)


def test_no_command_runs_when_nbval_explains(tmp_path):
    mine = tmp_path / "touched"
    answer = f"!touch {mine}\nx = !touch {mine}\nif True:\n    %run {mine}\n{RIGHT}"
    text = gate.without_commands(answer)
    assert "get_ipython" not in text and code(text)[-1] == code(RIGHT)[-1]
    space = {}
    exec(compile(text, "answer", "exec"), space)
    assert "loops" in space and not mine.exists()


def test_an_import_from_the_future_stays_no_fault_below_helpers(seen):
    helper, answer = HELPER.format("f"), CALLS.format("f")
    found = seen(helper, f"from __future__ import annotations\n{answer}").home
    assert code(found) == code(f"{helper}\n{answer}")
    assert code(
        seen("import math as m\nx = m.pi; y = 2\ndef f(a, b): return a * b * y", answer).home
    )
