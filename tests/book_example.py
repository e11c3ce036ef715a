"""A small book in a folder, in order in every way, for tests to break one thing at a time."""

import shutil
from pathlib import Path

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tiled_matmul import ROOT
from tiled_matmul.book import cells
from tiled_matmul.book.citations import as_links
from tiled_matmul.book.files import notebook_text
from tiled_matmul.book.hygiene import refreshed_readme
from tiled_matmul.ladder import LADDER
from tiled_matmul.measure import fingerprint, results
from tiled_matmul.measure.claims import MIME

KERNEL = "# kernel: cuda_naive::cuda_naive_kernel"
CHAPTER = "chapters/01_example.ipynb"
PAGES = ("claims.md", "status.md", "bibliography.md", "references.bib", "_config.yml")


def picture(number: int):
    svg = (
        f'<div><svg role="img" aria-label="Square {number}" viewBox="0 0 600 90">'
        '<rect x="5" y="5" width="80" height="80" fill="none" stroke="currentColor"/>'
        f'<text x="110" y="50" fill="currentColor">Square {number} has four sides</text>'
        "</svg></div>"
    )
    output = new_output(
        "execute_result", data={"text/html": svg, "text/plain": "a square"}, execution_count=1
    )
    figure = {"name": f"fig-01-{number}", "caption": f"Square *{number}*."}
    return new_code_cell(f"draw({number})", metadata={"mystnb": {"figure": figure}}), [output]


def claim_output():
    claim = {"text": "x is `y`", "source": "A page", "holds": False, "evidence": "1 | 2"}
    data = {"text/plain": "Claim", "text/html": "<p>Claim</p>", MIME: claim}
    return [new_output("execute_result", data=data, execution_count=1)]


def example_notebook(root: Path = ROOT):
    """Return a chapter that passes every check, stamped as if a GPU had run it."""
    predictions = "".join(
        f"<details><summary><b>Predict.</b> What is <code>{i}</code>?</summary>\n\n"
        f"It is **{i}**, `{i} ms` in code, and $x_{i}$.\n\n</details>\n\n"
        for i in range(3)
    )
    stream = [new_output("stream", name="stdout", text="[1 2]\n")]
    pairs = [
        (new_markdown_cell("# An example\n\nSee the [warp](../glossary.md#warp)."), None),
        (new_code_cell(cells.setup_source(root), metadata={"tags": list(cells.SETUP_TAGS)}), []),
        (new_markdown_cell(predictions.strip()), None),
        (new_code_cell(cells.kernel_source(KERNEL, root)), []),
        (new_code_cell("# NBVAL_CHECK_OUTPUT\nprint([1, 2])"), stream),
        *(picture(number) for number in range(3)),
        (new_code_cell("claim()"), claim_output()),
        (new_markdown_cell(as_links("## Sources\n\n{cite:p}`goto2008`")), None),
    ]
    count = 0
    for index, (cell, outputs) in enumerate(pairs):
        cell.id = f"cell-{index}"
        if outputs is not None:
            count += 1
            cell.execution_count = count
            for output in outputs:
                if "execution_count" in output:
                    output.execution_count = count
            cell.outputs = outputs
            if cells.wants_fold(cell):
                cell.metadata["jupyter"] = {"source_hidden": True}
    metadata = {"kernelspec": dict(cells.KERNELSPEC), "language_info": dict(cells.LANGUAGE)}
    notebook = new_notebook(cells=[cell for cell, _ in pairs], metadata=metadata)
    stamp(notebook)
    return notebook


def stamp(notebook) -> None:
    notebook.metadata["tiled_matmul"] = {
        "stamp": {
            "gpu": "NVIDIA H200",
            "driver": "580.1",
            "cpu": "A processor, 16 threads",
            "versions": {"python": "3.12.3", "torch": "2.11.0", "numpy": "2.4.6"},
            "date": "2026-11-21T10:00:00+00:00",
            "seconds": 12.5,
            "code_hash": cells.code_hash(notebook),
        }
    }


def save(notebook, path: Path) -> Path:
    path.write_text(notebook_text(notebook), encoding="utf-8")
    return path


def record(
    rung: str, size: int, time_ms: float, baseline: str, ratio: float, gpu: str, dtype: str
) -> dict:
    return {
        "rung": rung, "m": size, "n": size, "k": size, "dtype": dtype,
        "launches": 1, "graph": False,
        "time_ms": time_ms, "spread": 0.01, "tflops": 2 * size**3 / time_ms / 1e9,
        "baseline": baseline, "ratio": ratio, "gpu": gpu,
        "driver": "" if gpu.startswith("CPU") else "580.1",
        "versions": {"numpy": "2.4.6"}, "date": "2026-11-21T10:00:00+00:00", "commit": "0123abc",
        "kernel": "" if rung == baseline else fingerprint.of(rung),
    }  # fmt: skip


def records() -> list[dict]:
    """Return a record for each rung of the ladder and its baselines, with made-up times."""
    found = []
    for rung in LADDER:
        on_cpu = rung.device == "cpu"
        size = 64 if rung.name == "loops_python" else {"cpu": 512, "gpu": 4096}[rung.device]
        where = ("numpy", "CPU: A processor, 16 threads") if on_cpu else ("cublas", "NVIDIA H200")
        # A baseline of another dtype is faster, so that nobody takes the one for the other.
        time_ms = 8.0 if rung.dtype == "float32" else 1.0
        found.append(record(rung.name, size, time_ms, where[0], 0.25, where[1], rung.dtype))
    found.append(record("numpy", 512, 2.0, "numpy", 1, "CPU: A processor, 16 threads", "float32"))
    for time_ms, dtype in ((2.0, "float32"), (0.25, "float16")):
        found.append(record("cublas", 4096, time_ms, "cublas", 1, "NVIDIA H200", dtype))
    return found


def example_book(root: Path) -> Path:
    """Fill the empty folder `root` with a book of one chapter, in order, and return `root`."""
    for name in ("chapters", "results"):
        (root / name).mkdir()
    for name in PAGES:
        shutil.copy(ROOT / name, root / name)
    for folder in ("_static", "_templates"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "src").symlink_to(ROOT / "src")
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: intro\nparts:\n"
        "  - caption: Loops\n    numbered: true\n    chapters:\n      - file: chapters/01_example\n"
        "  - caption: Reference\n    chapters:\n"
        + "".join(f"      - file: {p}\n" for p in ("glossary", "claims", "status", "bibliography"))
    )
    (root / "glossary.md").write_text("# Glossary\n\n## warp\n\nThirty-two threads.\n")
    (root / "intro.md").write_text(
        "# An example\n\n```{tiled-climb}\n```\n\n```{tiled-ladder}\n```\n"
    )
    results.save(root / "results" / "h200.json", (results.Record(**each) for each in records()))
    (root / "README.md").write_text("# R\n\n<!-- ladder:begin -->\n<!-- ladder:end -->\n")
    (root / "README.md").write_text(refreshed_readme(root))
    save(example_notebook(root), root / CHAPTER)
    return root
