"""The models in JavaScript return what the course's own models in Python return."""

import ast
import operator
import random

import numpy as np
import pytest

from tiled_matmul.explore.page import scripts
from tiled_matmul.microscope.cuda import hardware
from tiled_matmul.models import ring
from tiled_matmul.models.program_order import Setting, traffic
from tiled_matmul.models.waves import Waves

SETTINGS = 4500
NAMES = ("lane", "tx", "ty", "P")
OPERATORS = ("+", "-", "*", "//", "%", "^", "&", "|", "<<", ">>")


@pytest.fixture(scope="module")
def models(browser):
    """A page with the models alone."""
    page = browser.new_page()
    page.goto("about:blank")
    page.add_script_tag(path=scripts(set())[0])
    yield page
    page.close()


def results(models, name, settings):
    """Return the model's result for each setting, or the message of its error."""
    return models.evaluate(
        """([name, settings]) => settings.map((one) => {
            try { return eval(`Models.${name}`)(one); } catch (error) { return error.message; }
        })""",
        [name, settings],
    )


def made_up(draw, depth=0):
    """Return a random expression of a lane's place."""
    if depth > 2 or draw.random() < 0.3:
        return draw.choice([*NAMES, str(draw.choice([0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 33, 100]))])
    left, right = made_up(draw, depth + 1), made_up(draw, depth + 1)
    whole = f"{left} {draw.choice(OPERATORS)} {right}"
    return draw.choice([whole, whole, f"({whole})", f"-({whole})"] if depth else [whole])


DO = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def value(node, given):
    """Return an expression's value; raises ArithmeticError beyond 31 bits, also on the way."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return given[node.id]
    if isinstance(node, ast.UnaryOp):
        return -value(node.operand, given)
    left, right = value(node.left, given), value(node.right, given)
    if isinstance(node.op, ast.LShift | ast.RShift) and not 0 <= right < 32:
        raise ArithmeticError(f"a shift by {right}")
    made = DO[type(node.op)](left, right)
    if abs(made) >= 2**31:
        raise ArithmeticError(f"{made} is too large")
    return made


def warp(setting):
    """Return what the warp's access costs, by Python and by the microscope's rules."""
    lane = np.arange(hardware.WARP)
    places = {"tx": lane % setting["width"], "ty": lane // setting["width"], "lane": lane}
    tree = ast.parse(setting["index"], mode="eval").body
    try:
        index = [
            value(tree, {"P": setting["P"], **{name: int(at[i]) for name, at in places.items()}})
            for i in lane
        ]
    except ArithmeticError:
        return None
    if min(index) < 0:
        return None
    address = np.array(index) * setting["size"]
    request, width = np.zeros(32, int), np.full(32, setting["size"])
    loads = np.full(32, setting["op"] == "load")
    found = {
        "elements": index,
        "asked": len(set(index)) * setting["size"],
        "sectors": int(hardware.distinct_sectors(request, address, 1)[0]),
    }
    if setting["space"] == "shared":
        given = request, lane, address, width, loads
        waves, conflicts = hardware.wavefronts(*given, 1)
        found |= {"wavefronts": int(waves[0]), "conflicts": int(conflicts[0])}
        found["crowded"] = hardware.conflicting(*given).tolist()
    return found


def test_a_warps_access_costs_what_the_microscope_counts(models):
    draw = random.Random(19)
    settings = [
        {
            "index": made_up(draw),
            "P": draw.choice([1, 2, 3, 8, 16, 31, 32, 33, 36, 64, 100, 128, 4096]),
            "width": draw.choice([1, 2, 4, 8, 16, 32]),
            "size": draw.choice([1, 2, 4, 8, 16]),
            "space": draw.choice(["global", "shared"]),
            "op": draw.choice(["load", "store"]),
        }
        for _ in range(SETTINGS)
    ]
    costs = 0
    for setting, got in zip(settings, results(models, "warp", settings), strict=True):
        wanted = warp(setting)
        if wanted is None:
            assert isinstance(got, str) and setting["index"] in got, (setting, got)
            continue
        assert not isinstance(got, str), (setting, got)
        costs += 1
        lanes = [one["element"] for one in got["lanes"]]
        ours = {"elements": lanes, "asked": got["asked"], "sectors": len(got["sectors"])}
        if setting["space"] == "shared":
            ours |= {key: got[key] for key in ("wavefronts", "conflicts", "crowded")}
        assert ours == wanted, setting
    assert costs > 2000


def test_an_order_of_programs_moves_the_bytes_of_the_cache_model(models):
    draw = random.Random(23)
    settings = [
        {
            **{axis: draw.choice([1, 60, 128, 300, 700, draw.randint(1, 1500)]) for axis in "MNK"},
            **{f"block{axis}": draw.choice([32, 64, 128]) for axis in "MNK"},
            "group": draw.choice([1, 2, 3, 8, 50]),
            "alive": draw.choice([1, 5, 16, 40, 132]),
            "l2": draw.choice([3000, 20_000, 100_000, 400_000, 5_000_000]),
        }
        for _ in range(2200)
    ]
    for one, got in zip(settings, results(models, "order", settings), strict=True):
        block = tuple(one[f"block{axis}"] for axis in "MNK")
        sizes = (one["M"], one["N"], one["K"])
        setting = Setting(*sizes, block, one["group"], one["alive"])
        wanted = traffic(setting, one["l2"])
        assert got["asked"] == wanted.asked and got["compulsory"] == wanted.compulsory, one
        assert (got["missed"]["A"], got["missed"]["B"]) == (wanted.a, wanted.b), one
        together = [(w["rows"], w["columns"], len(w["tiles"])) for w in got["waves"]]
        ours = [(list(w.rows), list(w.columns), w.programs) for w in setting.waves]
        assert together == ours, one
        owned = [tile for wave in got["waves"] for tile in wave["tiles"]]
        assert owned == setting.order.tolist(), one


def test_a_launch_has_the_waves_of_the_model(models):
    draw = random.Random(29)
    settings = [
        {
            "M": draw.randint(1, 9000),
            "N": draw.randint(1, 9000),
            "blockM": draw.choice([16, 64, 192, 256]),
            "blockN": draw.choice([16, 64, 192, 256]),
            "sms": draw.randint(1, 200),
            "splits": draw.randint(1, 16),
        }
        for _ in range(2200)
    ]
    for one, got in zip(settings, results(models, "waves", settings), strict=True):
        down, across = -(-one["M"] // one["blockM"]), -(-one["N"] // one["blockN"])
        wanted = Waves(down * across * one["splits"], one["sms"])
        assert (got["tiles"], got["count"]) == (wanted.tiles, wanted.count), one
        assert (got["last"], got["fill"]) == (wanted.last, wanted.fill), one
        useful = one["M"] * one["N"] / (down * one["blockM"] * across * one["blockN"])
        assert got["useful"] == pytest.approx(wanted.fill * useful), one


def ring_of(one):
    """Return the run of the course's own ring with these settings."""
    times = {"copy_time": one["copy"], "multiply_time": one["multiply"], "stages": one["stages"]}
    return ring.seam(one["persistent"], one["steps"], one["store"], one["outputs"], **times)


def test_a_pipeline_runs_as_the_ring_does(models):
    draw = random.Random(31)
    settings = [
        {
            "stages": draw.randint(1, 8),
            "copy": draw.randint(1, 20),
            "multiply": draw.randint(1, 20),
            "store": draw.randint(0, 12),
            "steps": draw.randint(1, 12),
            "outputs": draw.randint(1, 3),
            "persistent": draw.random() < 0.5,
        }
        for _ in range(2200)
    ]
    usual = {"stages": 3, "copy": 4, "multiply": 2, "store": 4, "steps": 4, "outputs": 2}
    settings += [usual | {"persistent": persistent} for persistent in (True, False)]
    for one, got in zip(settings, results(models, "pipeline", settings), strict=True):
        made = ring_of(one)
        assert made.finished and made.time == got["time"], one
        assert got["copies"] == [vars(each) for each in made.copies], one
        assert got["work"] == [vars(each) for each in made.work], one
        for name, barriers in (("full", made.full), ("empty", made.empty)):
            assert [len(flips) % 2 for flips in got[name]] == [b.phase for b in barriers], one
    for persistent, one in zip((True, False), settings[-2:], strict=True):
        assert ring.seam(persistent).work == ring_of(one).work


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("", "it ends too early"),
        ("tx +", "it ends too early"),
        ("(tx", "a “)” is missing"),
        ("tx)", "“)” is not expected here"),
        ("tz * 2", "tz is not known here; there are lane, tx, ty, P"),
        ("tx / 2", "“/” is not expected here"),
        ("tx ** 2", "“*” is not expected here"),
        ("1.5 * tx", "“.” is not expected here"),
        ("tx // (ty - ty)", "division by 0"),
        ("99999999999", "too large a number"),
        ("tx * 2000000000", "too large a number"),
        ("1 << 40", "a shift by 40"),
        ("tx - 1", "lane 0 gets -1, below 0"),
        ("alert(1)", "alert is not known here"),
        ("constructor", "constructor is not known here"),
    ],
)
def test_what_is_no_index_is_refused_and_quoted(index, said, models):
    setting = {"index": index, "P": 8, "width": 8, "size": 4, "space": "global", "op": "load"}
    (got,) = results(models, "warp", [setting])
    assert isinstance(got, str) and said in got and f"“{index}”" in got
