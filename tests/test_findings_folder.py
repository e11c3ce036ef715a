"""Every script of findings/ is complete and has its row in the README, and the other way round."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tiled_matmul import ROOT

FIELDS = ("Package", "Date", "Behaviour", "Guess", "Seen")
ROW = re.compile(r"^\| \[(\w+)\]\((\w+)\.sh\) \|(.*)\|$", re.MULTILINE)


def header(text: str) -> dict[str, str]:
    """Return the fields of a script's header; those that are missing are empty."""
    comment = text.split("\n\n", 1)[0]
    found = re.findall(r"^# (\w+):(.*(?:\n#     .*)*)", comment, re.MULTILINE)
    return {name: " ".join(value.replace("\n#", " ").split()) for name, value in found}


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the scripts of a folder and its README."""
    found = []
    readme = (folder / "README.md").read_text(encoding="utf-8")
    rows = {name: (script, cells.split(" | ")) for name, script, cells in ROW.findall(readme)}
    scripts = {path.stem: path for path in folder.glob("*.sh") if path.name != "lib.sh"}
    found += [f"{name}: no row in README.md" for name in scripts.keys() - rows.keys()]
    found += [f"{name}: a row without a script" for name in rows.keys() - scripts.keys()]
    for path in (*scripts.values(), folder / "lib.sh"):
        done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
        found += [f"{path.stem}: {done.stderr}"] if done.returncode else []
    for name, path in scripts.items():
        fields = header(path.read_text(encoding="utf-8"))
        found += [f"{name}: no {field} in its header" for field in FIELDS if not fields.get(field)]
        if not os.access(path, os.X_OK):
            found.append(f"{name}: not executable")
        if name in rows:
            script, (package, date, *_, where) = rows[name]
            if (script, package.strip(), date) != (name, fields.get("Package"), fields.get("Date")):
                found.append(f"{name}: its row names {package.strip()}, {date}, not its header's")
            link = re.search(r"\]\((.*)\)", where)
            if link and not (ROOT / "findings" / link[1]).exists():
                found.append(f"{name}: {link[1]} does not exist")
    return found


def test_scripts_and_rows_agree():
    assert len(list((ROOT / "findings").glob("*.sh"))) > 15
    assert faults(ROOT / "findings") == []


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


NAME = "triton_float8_carry"
PLANTED = [
    (lambda f: (f / f"{NAME}.sh").unlink(), "a row without a script"),
    (lambda f: shutil.copy(f / f"{NAME}.sh", f / "another.sh"), "another: no row"),
    (lambda f: (f / f"{NAME}.sh").chmod(0o644), "not executable"),
    (lambda f: edit(f / f"{NAME}.sh", "done\n", "\n"), "syntax error"),
    (lambda f: edit(f / "lib.sh", "judge() {", "judge() { ("), "lib: .*syntax error"),
    (lambda f: edit(f / f"{NAME}.sh", "# Guess: ", "# "), "no Guess in its header"),
    (lambda f: edit(f / f"{NAME}.sh", "# Date: 2026", "# Date: 2025"), "not its header's"),
    (lambda f: edit(f / "README.md", "triton/fixes.py", "triton/gone.py"), "does not exist"),
]


@pytest.mark.parametrize(("plant", "wanted"), PLANTED, ids=[wanted for _, wanted in PLANTED])
def test_a_planted_fault_is_found(tmp_path, plant, wanted):
    folder = tmp_path / "findings"
    shutil.copytree(ROOT / "findings", folder)
    plant(folder)
    found = faults(folder)
    assert len(found) == 1 and re.search(wanted, found[0]), found


@pytest.mark.parametrize(("seen", "code"), [("1 -> 2", 0), ("1 -> 3", 1)])
def test_a_script_judges_by_its_header(tmp_path, seen, code):
    shutil.copy(ROOT / "findings" / "lib.sh", tmp_path)
    script = tmp_path / "made.sh"
    script.write_text(
        "# a line of its own\n# Package: none\n# Seen:\n#     1 -> 2\n\n"
        f'source "$(dirname "$0")/lib.sh"\njudge "{seen}"\n'
    )
    done = subprocess.run(["bash", script], capture_output=True, text=True)
    assert (done.returncode, "Package: none" in done.stdout) == (code, True)


def test_a_failed_installation_is_no_verdict(tmp_path):
    shutil.copy(ROOT / "findings" / "lib.sh", tmp_path)
    script = tmp_path / "made.sh"
    script.write_text('# a\n\nPYTHON=false\nsource "$(dirname "$0")/lib.sh"\ninstall x y\n')
    done = subprocess.run(["bash", script], capture_output=True, text=True)
    assert done.returncode == 2 and "installation of y failed" in done.stderr
