"""No notebook and no module depends on a GPU's name where it means a property of the GPU."""

import json

import pytest

from tiled_matmul import ROOT
from tiled_matmul.book.cards import names_asked_for

PLANTED = [
    'holds = a > b if "H200" in machine.name else None',
    'if machine.name == "NVIDIA H100 80GB HBM3":\n    pass',
    'rows = [1] if "h200" in torch.cuda.get_device_name(0).lower() else []',
    'small = machine.name.startswith("NVIDIA A100-SXM4")',
    'known = re.search("L40S?", machine.name)',
    'hopper = machine.name in ("NVIDIA H200", "NVIDIA H100 PCIe")',
    'CARDS = {"NVIDIA H200"}\nhopper = machine.name in CARDS',
    'card = "H200"\nassert card in name',
    'match name:\n    case "Tesla T4":\n        pass',
    'sms = {"NVIDIA H200": 132}[machine.name]',
    "same = torch.cuda.get_device_properties(0).name == reference",
]
FINE = [
    'H200 = device.lookup("NVIDIA H200")\nfits = bytes < H200.l2_mb * 2**20',
    'for name in ("T4", "A100-SXM4-80GB", "H200"):\n    table(made[name])',
    'say("On an H100 or H200, a table is shown here.")',
    "say(f'On the {machine.name}, {after.gpu} differs')",
    "hopper = torch.cuda.get_device_capability() == (9, 0)",
    'step.name.startswith("triton_")',
    'chosen.name == "simulator"',
    'gpu == "GH200X"',
    "%matplotlib inline",
]


@pytest.mark.parametrize("source", PLANTED)
def test_a_condition_on_a_name_is_found(source):
    assert list(names_asked_for(source))


@pytest.mark.parametrize("source", FINE)
def test_what_is_no_condition_passes(source):
    assert not list(names_asked_for(source))


def test_no_notebook_module_or_tool_asks_for_a_name():
    sources = {}
    for folder in ("src", "tools", "exercises"):
        sources |= {str(path): path.read_text() for path in sorted((ROOT / folder).rglob("*.py"))}
    for path in sorted([*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("exercises/**/*.ipynb")]):
        cells = json.loads(path.read_text())["cells"]
        code = (cell for cell in cells if cell["cell_type"] == "code")
        sources |= {f"{path} {i}": "".join(cell["source"]) for i, cell in enumerate(code)}
    assert len(sources) > 1000
    assert {
        place: found for place in sources if (found := list(names_asked_for(sources[place])))
    } == {}
