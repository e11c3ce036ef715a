"""Forms of Python that Numba compiles in a kernel: the interpreter runs each with its result.

The expected results are those of plain Python; that Numba compiles the form is checked as well, in
one process that needs no GPU.
"""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

FORMS = {
    "a loop over pairs": ("for i, j in ((0, 1), (1, 0), (2, 2)):\n    c[i] += a[j]", [2, 1, 3, 0]),
    "pairs within pairs": (
        "for i, (j, k) in ((0, (1, 2)), (3, (2, 1))):\n    c[i] = a[j] - a[k]",
        [-1, 0, 0, 1],
    ),
    "enumerate a tuple": ("for i, x in enumerate((5, 6, 7)):\n    c[i] = x", [5, 6, 7, 0]),
    "enumerate from one": ("for i, x in enumerate((5, 6, 7), 1):\n    c[i] = x", [0, 5, 6, 7]),
    "enumerate an array": ("for i, x in enumerate(a):\n    c[i] = 2 * x", [2, 4, 6, 8]),
    "enumerate a row": ("for i, x in enumerate(m[1]):\n    c[i] = x", [5, 6, 7, 8]),
    "the elements of a row": ("for x in m[0]:\n    c[0] += x", [10, 0, 0, 0]),
    "zip of views": (
        "for x, y in zip(m[0], m[:, 1]):\n    c[0] += x * y",
        [1 * 2 + 2 * 6, 0, 0, 0],
    ),
    "zip of ranges": ("for i, j in zip(range(4), range(8, 0, -2)):\n    c[i] = j", [8, 6, 4, 2]),
    "for else": (
        "for i in range(3):\n    if a[i] > 9:\n        break\nelse:\n    c[0] = 7",
        [7, 0, 0, 0],
    ),
    "for else after break": (
        "for i in range(3):\n    if a[i] > 1:\n        break\nelse:\n    c[0] = 7\nc[1] = i",
        [0, 1, 0, 0],
    ),
    "while else": ("i = 0\nwhile i < 2:\n    i += 1\nelse:\n    c[0] = a[i]", [3, 0, 0, 0]),
    "among": ("for i in range(4):\n    if i in (0, 3):\n        c[i] = 1", [1, 0, 0, 1]),
    "not among": ("for i in range(4):\n    if i not in (0, 3):\n        c[i] = 1", [0, 1, 1, 0]),
    "a slice of a shape": ("rows, cols = m.shape[:2]\nc[0] = rows\nc[1] = cols", [2, 4, 0, 0]),
    "the last of a shape": ("c[0] = m.shape[-1]", [4, 0, 0, 0]),
    "a slice of a tuple": ("t = (4, 5, 6)\nx, y = t[1:]\nc[0] = x * y", [30, 0, 0, 0]),
    "an element stored by a slice": ("c[1:2] = 5", [0, 5, 0, 0]),
    "all of it": ("c[:] = 3", [3, 3, 3, 3]),
    "a computed shape": (
        "t = cuda.local.array(2 * 4, np.float32)\nt[7] = 3\nc[0] = t[7]",
        [3, 0, 0, 0],
    ),
    "a computed pitch": (
        "t = cuda.shared.array((N, 16 + 2), np.float32)\nt[1, 17] = 3\nc[0] = t[1, 17]",
        [3, 0, 0, 0],
    ),
    "divmod": ("q, r = divmod(11, N)\nc[0] = q\nc[1] = r", [2, 3, 0, 0]),
    "divmod of a negative": (
        "q, r = divmod(-11 + a.size - 4, 4)\nc[0] = q\nc[1] = r",
        [-3, 1, 0, 0],
    ),
    "sum as a name": ("sum = 0.0\nfor x in range(4):\n    sum += a[x]\nc[0] = sum", [10, 0, 0, 0]),
    "max and min as names": ("max = 3\nmin = max - 1\nc[min] = max", [0, 0, 3, 0]),
    "a default": ("c[0] = plus(a[0])\nc[1] = plus(a[0], 5)", [3, 6, 0, 0]),
    "a keyword": ("c[0] = plus(y=7, x=a[0])", [8, 0, 0, 0]),
    "chained assignment": ("x = y = a[2]\nx += 1\nc[0], c[1] = x, y", [4, 3, 0, 0]),
    "a tuple swapped": ("x, y = 1, 2\nx, y = y, x\nc[0] = x", [2, 0, 0, 0]),
    "while true": (
        "i = 0\nwhile True:\n    i += 1\n    if i == 3:\n        break\n    continue\nc[0] = i",
        [3, 0, 0, 0],
    ),
    "bool arithmetic": ("c[0] = (a[0] < 2) + (a[1] < 2) + True", [2, 0, 0, 0]),
    "negative division": ("c[0] = (a.size - 11) // 4\nc[1] = (a.size - 11) % 4", [-2, 1, 0, 0]),
    "a text": ("'what comes now'\nc[0] = 1", [1, 0, 0, 0]),
}
REFUSED = {
    "a list": "x = [1, 2]\nc[0] = x[0]",
    "a dictionary": "x = {1: 2}\nc[0] = x[1]",
    "a pitch of a name": "t = cuda.shared.array((N, N + 1), np.float32)\nc[0] = t[1, 4]",
    "a variable shape": "t = cuda.local.array(a.size, np.float32)\nc[0] = t[0]",
}
ABOVE = """
import numpy as np
from numba import cuda

N = 4


@cuda.jit(device=True)
def plus(x, y=2):
    return x + y

"""


def source(body):
    return f"{ABOVE}\n@cuda.jit\ndef kernel(a, m, c):\n{textwrap.indent(body, '    ')}\n"


def ran(body, tmp_path, name):
    """Return c after a launch of one thread in the interpreter."""
    from tiled_matmul.microscope.cuda import trace
    from tiled_matmul.microscope.cuda.kernel import jit

    path = tmp_path / f"{name.replace(' ', '_')}.py"
    path.write_text(source(body))
    space = {"__name__": "forms"}
    from numba import cuda

    own, cuda.jit = cuda.jit, jit
    try:
        exec(compile(path.read_text(), str(path), "exec"), space)
    finally:
        cuda.jit = own
    a, c = np.arange(1, 5, dtype=np.float32), np.zeros(4, np.float32)
    t = trace(space["kernel"], 1, 1, a, np.arange(1, 9, dtype=np.float32).reshape(2, 4), c)
    assert not t.out_of_bounds and not t.races
    return c.tolist()


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_its_result(name, tmp_path):
    body, wanted = FORMS[name]
    assert ran(body, tmp_path, name) == wanted


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_that_numba_refuses_is_refused(name, tmp_path):
    from tiled_matmul.microscope.cuda.errors import TypingError, Unsupported

    with pytest.raises((Unsupported, TypingError)):
        ran(REFUSED[name], tmp_path, name)


COMPILE = """
import json, sys
from types import SimpleNamespace
from numba import cuda, float32
from numba.cuda import dispatcher
# For a call of a device function Numba asks the driver, and there may be none.
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
out = {}
for name, text in json.load(sys.stdin).items():
    space = {"__name__": "forms"}
    exec(compile(text, name, "exec"), space)
    signature = (float32[::1], float32[:, ::1], float32[::1])
    try:
        cuda.compile(space["kernel"].py_func, signature, device=False, abi="numba", cc=(9, 0))
        out[name] = ""
    except Exception as error:
        out[name] = f"{type(error).__name__}: {error}"[:300]
print(json.dumps(out))
"""


@pytest.mark.long
def test_numba_compiles_the_forms_and_no_others():
    texts = {name: source(body) for name, (body, _) in FORMS.items()}
    texts |= {name: source(body) for name, body in REFUSED.items()}
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "NUMBA_ENABLE_CUDASIM": "0"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    errors = json.loads(done.stdout.splitlines()[-1])
    failed = {name: error for name, error in errors.items() if error}
    assert failed.keys() == REFUSED.keys(), failed
