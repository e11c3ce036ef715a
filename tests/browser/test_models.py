"""The models in JavaScript return what the course's own models in Python return."""

import ast
import math
import operator
import random
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from plain_cache import played

from tiled_matmul.dispatch import costs, rule
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.explore import data
from tiled_matmul.explore.page import script
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.variants import without
from tiled_matmul.ladder import cuda_shared_tiles
from tiled_matmul.machine import device
from tiled_matmul.microscope.cuda import hardware, trace
from tiled_matmul.models import cache, distributed, fragments, occupancy, ring, roofline
from tiled_matmul.models.occupancy import WARP
from tiled_matmul.models.program_order import Setting, traffic
from tiled_matmul.models.waves import Waves
from tiled_matmul.problem import Problem

SETTINGS = 4500
SEEDS_OF_RACES = 520  # for each of the four ways to leave barriers out
RACED = "({ result: found.result, races: found.races })"
NAMES = ("lane", "tx", "ty", "P")
OPERATORS = ("+", "-", "*", "//", "%", "^", "&", "|", "<<", ">>")


@pytest.fixture(scope="module")
def models(browser):
    """A page with the models alone."""
    page = browser.new_page()
    page.goto("about:blank")
    for name in ("models.js", *(f"data-{kind}.js" for kind in data.OF_KIND)):
        page.add_script_tag(content=script(name))
    yield page
    page.close()


def results(models, name, settings, part="found"):
    """Return the model's result for each setting, or a part of it, or the message of its error."""
    return models.evaluate(
        """([name, settings, part]) => settings.map((one) => {
            try { const found = Models[name](one); return eval(part); }
            catch (error) { return error.message; }
        })""",
        [name, settings, part],
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


def test_loops_miss_as_often_as_in_the_cache_model(models):
    draw = random.Random(9)
    sides = [*range(1, 17)]
    settings = [
        {
            **{name: draw.choice(sides) for name in "MNK"},
            "order": "".join(draw.sample("ijk", 3)),
            "tile": draw.choice([0, 0, *range(1, 17)]),
            "line": draw.choice([1, 2, 4, 8]),
            "sets": draw.randint(1, 16),
            "ways": draw.randint(1, 8),
            "turn": draw.choice([0, draw.randint(1, 4096), draw.randint(1, 100)]),
        }
        for _ in range(SETTINGS // 2)
    ]
    part = "[found.misses, found.accesses, found.cache, found.seen, found.at]"
    for one, got in zip(settings, results(models, "loops", settings, part), strict=True):
        line, sizes = 4 * one["line"], (one["M"], one["N"], one["K"])
        held = cache.Cache(line * one["sets"] * one["ways"], line, one["ways"])
        if one["tile"]:
            made = cache.tiled_misses(one["tile"], *sizes, held, order=one["order"])
        else:
            made = cache.loop_misses(one["order"], *sizes, held)
        whole = {"A": made.a, "B": made.b, "C": made.c}
        seen, _, sets = played(
            one["order"], *sizes, held, tile=one["tile"] or None, turns=one["turn"]
        )
        newest_first = [kept[::-1] for kept in sets]
        seen = {name.upper(): count for name, count in seen.items()}
        at = min(one["turn"], math.prod(sizes))
        assert got == [whole, made.accesses, newest_first, seen, at], one


def test_an_order_of_programs_moves_the_bytes_of_the_cache_model(models):
    draw = random.Random(23)
    settings = [
        {
            **{axis: draw.choice([1, 60, 128, 300, 700, draw.randint(1, 1500)]) for axis in "MNK"},
            **{f"block{axis}": draw.choice([32, 64, 128]) for axis in "MNK"},
            "group": draw.choice([0, 0, 1, 2, 3, 8, 50]),
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
            "second": draw.choice([0, 0, 32, 64, 128]),
            "K": draw.choice([1, 64, draw.randint(1, 30000)]),
            "sms": draw.randint(1, 200),
            "splits": draw.randint(1, 16),
        }
        for _ in range(2200)
    ]
    for one, got in zip(settings, results(models, "waves", settings), strict=True):
        wide = one["blockN"] + one["second"]
        down, across = -(-one["M"] // one["blockM"]), -(-one["N"] // wide)
        wanted = Waves(down * across * one["splits"], one["sms"])
        assert (got["tiles"], got["count"]) == (wanted.tiles, wanted.count), one
        assert (got["last"], got["fill"]) == (wanted.last, wanted.fill), one
        useful = one["M"] * one["N"] / (down * one["blockM"] * across * wide)
        assert got["useful"] == pytest.approx(wanted.fill * useful), one
        shape = one["M"], one["N"], one["K"], one["sms"]
        widths = (one["blockN"], one["second"]) if one["second"] else one["blockN"]
        own = Choice("triton_split_k", {"block": (one["blockM"], widths, 64)})
        own.options["splits"] = one["splits"]
        if one["blockM"] % 64:
            assert got["clocks"] is None
        else:
            assert got["clocks"] == pytest.approx(costs.clocks(own, *shape)), one
        if min(one["M"], one["N"]) <= rule.SHORT:
            assert got["picked"] is None
            continue
        picked, found = rule.pick(*shape), got["picked"]
        assert found["clocks"] == pytest.approx(costs.clocks(picked, *shape)), one
        rows, columns, depth = picked.options["block"]
        chosen = [rows, list(columns) if isinstance(columns, tuple) else [columns], depth]
        assert [found["rows"], found["widths"], found["depth"]] == chosen, one
        assert found["splits"] == picked.options.get("splits", 1)


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


def tile(one):
    """Return what Python's models say of these tiles, None if they refuse them."""
    peak, cc = next(
        (device.PEAKS[n], cc) for n, cc in data.GPUS.items() if device.PEAKS[n].name == one["gpu"]
    )
    size = 2 if one["dtype"] == "float16" else 4
    block = one["blockM"], one["blockN"], one["blockK"]
    warp = WARP // one["across"] * one["threadM"], one["across"] * one["threadN"]
    shared = one["stages"] * (block[0] + block[1]) * block[2] * size
    if block[0] % warp[0] or block[1] % warp[1] or shared > device.shared_limit(cc):
        return None
    sums = np.arange(block[0] * block[1]).reshape(block[:2])
    threads = sums.size // (one["threadM"] * one["threadN"])
    if threads > 1024:
        return None
    registers = one["threadM"] * one["threadN"] + one["threadM"] + one["threadN"]
    needs = SimpleNamespace(name="k", cc=cc, registers=min(255, registers), shared_bytes=shared)
    try:
        fits = occupancy.occupancy(needs, threads)
    except ValueError:
        return None
    setting = Setting(*(one[axis] for axis in "MNK"), block, itemsize=size)
    problem = Problem(one["M"], one["N"], one["K"], one["dtype"])
    # Asked for without a cache: every block loads its rows and columns; C is stored once.
    moved = traffic_asked(setting) + one["M"] * one["N"] * size
    intensity = problem.flops / moved
    first = {(lane // one["across"], lane % one["across"]) for lane in range(WARP)}
    rows = {y * one["threadM"] + i for y, _ in first for i in range(one["threadM"])}
    columns = {x * one["threadN"] + i for _, x in first for i in range(one["threadN"])}
    return {
        "threads": threads,
        "times": {"A": setting.tiles[1], "B": setting.tiles[0]},
        "bytes": moved,
        "intensity": pytest.approx(intensity),
        "shared": shared,
        "registers": registers,
        "warpM": len(rows),
        "warpN": len(columns),
        "loads": len(rows) + len(columns),
        "occupancy": vars(fits) | {"share": pytest.approx(fits.share)},
        "peak": roofline.peak_tflops(peak, one["dtype"]),
        "roof": pytest.approx(roofline.attainable_tflops(intensity, peak, one["dtype"])),
        "ridge": pytest.approx(roofline.ridge(peak, one["dtype"])),
        "intensityShared": pytest.approx(
            2 * one["threadM"] * one["threadN"] / ((one["threadM"] + one["threadN"]) * size)
        ),
    }


def traffic_asked(setting):
    """Return the bytes of A and B that all programs ask for, an extent of each tile at a time."""
    down, across = setting.tiles[:2]
    return (across * setting.m + down * setting.n) * setting.k * setting.itemsize


def test_tiles_load_keep_and_reach_what_the_models_say(models):
    draw = random.Random(37)
    names = [device.PEAKS[name].name for name in data.GPUS]
    settings = [
        {
            **{axis: draw.choice([1, 100, 4096, draw.randint(1, 65536)]) for axis in "MNK"},
            "dtype": draw.choice(["float32", "float16"]),
            "blockM": draw.choice([8, 16, 32, 64, 128, 256]),
            "blockN": draw.choice([8, 16, 32, 64, 128, 256]),
            "blockK": draw.choice([4, 8, 16, 32, 64, 128]),
            "threadM": draw.choice([1, 2, 4, 8, 16]),
            "threadN": draw.choice([1, 2, 4, 8, 16]),
            "across": draw.choice([1, 2, 4, 8, 16, 32]),
            "stages": draw.randint(1, 8),
            "gpu": draw.choice(names),
        }
        for _ in range(12000)
    ]
    made = 0
    for one, got in zip(settings, results(models, "tile", settings), strict=True):
        wanted = tile(one)
        if wanted is None:
            assert isinstance(got, str), (one, got)
            continue
        assert got == wanted, one
        made += 1
    assert made > 2000


def test_a_swizzle_moves_bytes_and_costs_wavefronts_as_in_python(models):
    draw = random.Random(41)
    settings = [
        {
            "bits": draw.randint(0, 3),
            "base": draw.randint(4, 7),
            "shift": draw.randint(0, 4),
            "pitch": draw.choice([16, 32, 64, 128, 144, 256]),
            "access": draw.choice(["a row", "a column"]),
            "column": draw.randint(0, 15),
        }
        for _ in range(9000)
    ]
    made = 0
    part = "[found.wavefronts, ...found.chunks.map((one) => one.place)]"
    for one, got in zip(settings, results(models, "swizzle", settings, part), strict=True):
        across, bits = one["pitch"] // 16, (one["bits"], one["base"], one["shift"])
        if one["bits"] > one["shift"] or one["column"] >= across:
            assert isinstance(got, str), one
            continue
        places = [fragments.swizzle(16 * number, *bits) for number in range(8 * across)]
        assert got[1:] == places, one
        lanes = range(8) if one["access"] == "a row" else range(one["column"], 8 * across, across)
        address = np.array([places[number] for number in lanes])
        given = np.zeros(8, int), np.arange(8), address, np.full(8, 16), np.full(8, True)
        assert got[0] == hardware.wavefronts(*given, 1)[0][0], one
        made += 1
    assert made > 2000


def test_lanes_hold_the_elements_of_the_fragments(models):
    settings = [
        {"operand": operand, "lane": lane, "columns": columns}
        for operand in ("A", "B", "C", "sums of wgmma")
        for lane in range(128)
        for columns in (8, 16, 32, 64)
    ]
    assert len(settings) > 2000
    for one, mine in zip(
        settings, results(models, "fragments", settings, "found.mine"), strict=True
    ):
        operand, lane, columns = one.values()
        if operand == "sums of wgmma":
            wanted = fragments.sums_of(lane, columns)
        elif lane < WARP:
            wanted = fragments.held(operand, lane)
        else:
            assert "there is no" in mine
            continue
        assert [tuple(each) for each in mine] == wanted, one
    for got in results(models, "fragments", [one for one in settings if one["lane"] == 5]):
        assert got["mine"] == got["all"][5]
        cells = [tuple(each) for held in got["all"] for each in held]
        assert len(set(cells)) == len(cells) == got["rows"] * got["columns"]


def lists(x):
    """Return what JSON makes of dictionaries and tuples."""
    if isinstance(x, dict):
        return {name: lists(one) for name, one in x.items()}
    return [lists(one) for one in x] if isinstance(x, list | tuple) else x


def test_ranks_hold_receive_and_compute_what_the_model_says(models):
    draw = random.Random(43)
    settings = []
    for _ in range(SETTINGS):
        p = draw.randint(2, 16)
        fits = draw.random() < 0.8
        sizes = {axis: draw.randint(1, 40) * (p if fits else 1) for axis in "MNK"}
        rank = draw.randrange(p if draw.random() < 0.9 else 16)
        settings.append({"cut": draw.choice([*distributed.AXES]), "ranks": p, "rank": rank} | sizes)
    made = 0
    for one, got in zip(settings, results(models, "ranks", settings), strict=True):
        cut, p, rank, *sizes = one.values()
        try:
            wanted = [asdict(step) for step in distributed.steps(cut, *sizes, p, rank)]
        except ValueError as error:
            assert got == str(error), one
            continue
        assert got["steps"] == lists(wanted), one
        parts = [map(asdict, distributed.parts(cut, *sizes, p, each)) for each in range(p)]
        assert got["parts"] == [lists([*each]) for each in parts], one
        assert got["held"] == pytest.approx(distributed.held(cut, *sizes, p)), one
        assert got["received"] == pytest.approx(distributed.received(cut, *sizes, p)), one
        made += 1
    assert 2000 < made < len(settings)


@pytest.fixture(scope="module")
def variants():
    """Chapter 5's kernel with and without each of its barriers, by (first, second)."""
    kernel = cuda_shared_tiles.cuda_shared_tiles_kernel
    alone = {1: without(kernel, "syncthreads", 1), 0: without(kernel, "syncthreads", 0)}
    return {
        (True, True): kernel,
        (True, False): alone[1],
        (False, True): alone[0],
        (False, False): without(kernel, "syncthreads"),
    }


def test_a_race_is_that_of_the_interpreter(models, variants):
    """Same results, racing elements and lines, whatever barriers stand and whoever runs first."""
    a, b = data.operands()
    count, settings, wanted = data.TILE**2, [], []
    for (first, second), kernel in variants.items():
        made = with_constants(kernel, TILE=data.TILE)
        for seed in range(SEEDS_OF_RACES):
            c = np.full_like(a, np.nan)
            grid, block = (2, 2), (data.TILE, data.TILE)
            given = {"blocks": [(0, 0, 0)], "order": "shuffle", "seed": seed}
            ran = trace(made, grid, block, a, b, c, **given)
            order = list(range(count))
            random.Random(seed).shuffle(order)
            settings.append({"first": first, "second": second, "order": order})
            found = ran.races
            racing = sum(one.count for one in found)
            lines = {line for one in found for line in one.lines}
            wanted.append((c[: data.TILE, : data.TILE].ravel().tolist(), racing, lines))
    offset = None
    for one, got, (c, racing, lines) in zip(
        settings, results(models, "race", settings, RACED), wanted, strict=True
    ):
        result = dict(map(tuple, got["result"]))
        places = [row * data.EDGE + column for row in range(4) for column in range(4)]
        ours = [math.nan if result[place] is None else result[place] for place in places]
        np.testing.assert_array_equal(ours, c, err_msg=str(one))
        assert len(got["races"]) == racing, one
        at = {line for _, here in got["races"] for line in here}
        if lines:
            offset = min(lines) - min(at) if offset is None else offset
            assert {line + offset for line in at} == lines, one
        # The right order is one of all: the numbers are those of the product without a race.
        if one["first"] and one["second"]:
            assert ours == data.race()["c"] and not racing
