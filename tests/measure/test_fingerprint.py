"""A fingerprint changes with what ran, and with nothing else."""

import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tiled_matmul.ladder import LADDER, LAYER, rung, twin_of
from tiled_matmul.measure import drawn, fingerprint
from tiled_matmul.measure.fingerprint import PACKAGE, Sources, of, of_rung, without_comments

TUNED = "dispatch.tuned"


@pytest.fixture
def edited(tmp_path):
    """Return a function that edits a place in a copy, and gives a rung's fingerprint there."""
    copy = tmp_path / "tiled_matmul"
    for room in fingerprint.FOLLOWED:
        if (PACKAGE / room).exists():
            shutil.copytree(PACKAGE / room, copy / room)

    def edit(name, file, old, new, **options):
        path = next(copy.glob(file))
        before = path.read_text()
        assert old in before, (file, old)
        path.write_text(before.replace(old, new, 1))
        try:
            return of_rung(rung(name), sources=Sources(copy), **options)
        finally:
            path.write_text(before)

    return edit


def test_every_rung_has_its_own():
    prints = {each.name: of(each.name) for each in (*LADDER, *LAYER)}
    assert len(set(prints.values())) == len(prints)
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in prints.values())


NAIVE, LAUNCH = "ladder/ch04_1_cuda_naive.py", "kit/launch.py"


def test_a_copy_has_the_same_as_the_package(edited):
    assert edited("cuda_naive", NAIVE, "BLOCK = ", "BLOCK  =  ") == of("cuda_naive")


@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [
        ("cuda_naive", NAIVE, "BLOCK = (16, 16)", "BLOCK = (32, 8)"),
        ("cuda_naive", NAIVE, "for k in range(", "for k in range(0 + "),
        ("cuda_naive", LAUNCH, "MAX_GRID_YZ = MAX_GRID[1]", "MAX_GRID_YZ = MAX_GRID[1] - 1"),
        ("triton_best", "kit/layouts.py", "ALIGNED = 16", "ALIGNED = 32"),
    ],
)
def test_what_ran_counts(edited, name, file, old, new):
    assert edited(name, file, old, new) != of(name)


def test_what_a_rule_may_choose_counts_for_the_rung_that_asks(edited):
    """`triton_best` names the files of other rungs in texts, and runs their launchers."""
    change = ("ladder/*triton_uneven.py", "\n\n\n@", "\n\n\n# A comment.\n@")
    assert edited("triton_best", *change) == of("triton_best")
    source = next(PACKAGE.glob("ladder/*triton_uneven.py")).read_text()
    line = re.search(r"^ +acc = tl.zeros.*\n", source, re.MULTILINE)[0]
    change = ("ladder/*triton_uneven.py", line, line + line)
    assert edited("triton_best", *change) != of("triton_best")
    assert edited("triton_uneven", *change) != of("triton_uneven")
    assert edited("cuda_naive", *change) == of("cuda_naive")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BLOCK = (16, 16)", "# A comment.\nBLOCK = (16, 16)"),
        ('"""', '"""Another docstring. '),
        ('    """Return ', '    """Give '),
        ("from numba import cuda\n", "\n\nfrom numba import (\n    cuda,\n)\n"),
    ],
)
def test_comments_docstrings_and_lines_do_not(edited, old, new):
    assert edited("cuda_naive", NAIVE, old, new) == of("cuda_naive")


def test_what_an_error_says_does_not(edited):
    text = (PACKAGE / LAUNCH).read_text()
    message = re.search(r'raise ValueError\(\s*f?"', text)[0]
    assert edited("cuda_naive", LAUNCH, message, message + "Sorry: ") == of("cuda_naive")


def test_checks_of_operands_count_for_the_hosts_time_alone(edited):
    change = ("kit/arguments.py", "def tensor_operands(", "_more = 1\n\n\ndef tensor_operands(")
    assert edited("cuda_naive", *change) == of("cuda_naive")
    text = (PACKAGE / "kit/arguments.py").read_text()
    head = text[text.index("def tensor_operands(") :]
    body = re.search(r'""".*?"""\n', head, re.DOTALL)[0]
    change = ("kit/arguments.py", body, body + "    1 + 1\n")
    assert edited("cuda_naive", *change) == of("cuda_naive")
    assert edited("cuda_naive", *change, host=True) != of("cuda_naive, host")


def test_how_candidates_are_timed_counts_for_what_was_tuned_alone(edited):
    change = ("dispatch/tuned.py", "REPLAYS, SAMPLE_MS = 5,", "REPLAYS, SAMPLE_MS = 7,")
    assert edited("triton_best", *change) == of("triton_best")
    assert edited("triton_best", *change, host=True) != of("triton_best, host")
    [timed] = {name for job in drawn.jobs() for name in job.kernels if "::" in name}
    texts = Sources().reached([tuple(timed.split("::"))], {*fingerprint.HOST_ONLY} - {TUNED})
    assert fingerprint.digest(texts) == of(timed)
    assert any(text.startswith("REPLAYS ") for text in texts)


def write(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "ladder").mkdir(exist_ok=True)
    return Sources(folder)


def names(sources, *starts):
    return [text.split()[0] for text in sources.reached(starts)]


def test_names_are_followed_as_python_finds_them(tmp_path):
    """Through imports of modules and names, handed on, in functions; and not local ones."""
    sources = write(
        tmp_path,
        kit__a=(
            "from tiled_matmul.kit import b\nfrom tiled_matmul.kit.c import far as near\n"
            "size = 3\nunused = 4\n"
            "def start(size):\n    from tiled_matmul.kit.c import inner\n"
            "    return b.used(size) + near() + inner() + sum(one for one in [2])\n"
            "one = 5\n"
        ),
        kit__b="def used(x): return later(x)\ndef later(x): return x\ndef other(): pass\n",
        kit__c="from tiled_matmul.kit.d import far\ndef inner(): return total\ntotal = 0\n",
        kit__d="def far():\n    raise ValueError(words)\nwords = 'far'\n",
    )
    found = names(sources, ("kit.a", "start"))
    assert found == sorted(["start", "used", "later", "far", "inner", "total"])


def test_a_module_that_is_handed_on_counts_whole(tmp_path):
    text = "from tiled_matmul.kit import b\ndef start(f):\n    return f(b)\n"
    sources = write(tmp_path, kit__a=text, kit__b="x = 1\ny = 2\n")
    assert names(sources, ("kit.a", "start")) == ["start", "x", "y"]


def test_a_file_that_a_text_names_counts(tmp_path):
    text = "def start():\n    return read('twin.cu')\n"
    (tmp_path / "kit").mkdir()
    texts = []
    for kernel in ("a = b;", "a = c;"):
        (tmp_path / "kit" / "twin.cu").write_text(kernel)
        texts.append(write(tmp_path, kit__a=text).reached([("kit.a", "start")]))
    assert texts[0] != texts[1] and "twin.cu a = b;" in texts[0]


def test_machine_code_counts_and_how_it_is_launched(tmp_path):
    text = "def start():\n    return read('made.cubin')\n"
    (tmp_path / "kit").mkdir()
    texts = []
    for code, layout in ((b"\xff\x00", "{}"), (b"\xff\x01", "{}"), (b"\xff\x00", "{ }")):
        (tmp_path / "kit" / "made.cubin").write_bytes(code)
        (tmp_path / "kit" / "made.json").write_text(layout)
        texts.append(str(write(tmp_path, kit__a=text).reached([("kit.a", "start")])))
    assert len(set(texts)) == 3 and all("made.cubin" in each for each in texts)


def test_a_comment_in_cuda_cpp_does_not_count():
    kernel = """// what it does
__global__ void f(float* c) {  /* of C
        all of it */
    asm("bar.sync 0; // no comment here");
    c[0] = '"' ? 1 : 2;  // "

}
"""
    bare = '__global__ void f(float* c) {\nasm("bar.sync 0; // no comment here");\n'
    assert without_comments(kernel) == bare + "c[0] = '\"' ? 1 : 2;\n}"
    twin = twin_of(rung("cuda_tile_hand"))
    texts = twin.texts()
    changed = SimpleNamespace(rung=twin.rung, texts=lambda: ["// new\n" + x for x in texts])
    other = SimpleNamespace(rung=twin.rung, texts=lambda: [x + "int y;" for x in texts])
    assert of_rung(changed) == of_rung(twin) != of_rung(other)


def test_a_kernel_that_is_not_there_has_no_fingerprint():
    with pytest.raises(ValueError, match="ladder.cuda_naive has no 'gone'"):
        of_rung(replace(rung("cuda_naive"), kernel_name="gone"))


def test_a_definition_may_move(tmp_path):
    near = write(tmp_path / "1", kit__a="def start(): return two()\ndef two(): return 2\n")
    far = write(
        tmp_path / "2",
        kit__a="from tiled_matmul.kit.b import two\ndef start(): return two()\n",
        kit__b="def two(): return 2\n",
    )
    assert near.reached([("kit.a", "start")]) == far.reached([("kit.a", "start")])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuda_naiv", "unknown rung 'cuda_naiv'"),
        ("kit.nowhere::f", "the package has no module 'kit.nowhere'"),
        ("kit.layouts::nothing", "kit.layouts has no 'nothing'"),
    ],
)
def test_what_is_gone_is_named(name, message):
    with pytest.raises(ValueError, match=message):
        of(name)
