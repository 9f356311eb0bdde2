"""The programs of docs/python.md and the examples run."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S) if PAGE.exists() else []
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))


def test_there_are_programs_and_examples():
    assert len(PROGRAMS) >= 4 and len(EXAMPLES) >= 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.splitlines()[-1][:40])
def test_a_program_of_the_page_runs(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(PAGE), "exec"), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example, tmp_path, monkeypatch):
    pytest.importorskip("pyamg")
    pytest.importorskip("skfem")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
