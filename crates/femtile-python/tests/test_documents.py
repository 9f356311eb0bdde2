"""The programs of the pages and the examples run."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: [^\n]*-->\n)?```python\n(.*?)```", re.S)


def programs():
    """The programs of all pages, but for those that a comment above excludes, with the page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        for number, (is_excluded, program) in enumerate(BLOCK.findall(text)):
            if not is_excluded:
                yield pytest.param(page, program, id=f"{page.name}-{number}")


PROGRAMS = list(programs())
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))


def test_there_are_programs_and_examples():
    assert len(PROGRAMS) >= 4 and len(EXAMPLES) >= 2


@pytest.mark.parametrize(("page", "program"), PROGRAMS)
def test_a_program_of_a_page_runs(page, program, tmp_path, monkeypatch):
    if "import pyamg" in program:
        pytest.importorskip("pyamg")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(page), "exec"), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example, tmp_path, monkeypatch):
    pytest.importorskip("pyamg")
    pytest.importorskip("skfem")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
