"""Cases: dictionaries or files with the words of the program."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _femtile
from ._errors import ArgumentError, ArgumentTypeError
from ._functional import FormState, plain
from ._solution import Solution
from .mesh import Mesh


def solve(case: Mapping[str, Any] | str | os.PathLike[str], mesh: Mesh | None = None) -> Solution:
    """Solve a case.

    Files are written only where the case names their folder (``output.directory``).

    Parameters
    ----------
    case : dict or path
        The sections of a case file as dictionaries, or the path of a case file; `schema` describes the keys.
    mesh : Mesh, optional
        The mesh, in place of ``file`` and ``generate`` of the section ``mesh``.

    Returns
    -------
    Solution
        Fields, mesh and report. Not to converge is no error: see `Solution.has_converged`.

    Raises
    ------
    CaseError
        A key or a value is wrong; the message is that of the program.
    DeviceError
        The device that is asked for is absent or fails.

    Examples
    --------
    >>> import femtile
    >>> solution = femtile.solve({
    ...     "mesh": {"generate": {"kind": "square", "cells": [16, 16]}},
    ...     "equation": {"sigma": "1 + x", "source": 1},
    ...     "boundary": [{"where": "xmin", "dirichlet": 0}],
    ... })
    >>> solution.report["solve"]["stop"], solution.fields["u"].shape
    ('converged', (289,))
    """
    given = given_case(case, mesh)
    report, data, form = _femtile.solve(given, None if mesh is None else mesh._mesh)
    return Solution(json.loads(report), data, None if form is None else FormState(given, mesh, form))


class Frames(Iterator["tuple[float, Solution]"]):
    """The frames of a run in time, as pairs of a time and a solution; `femtile.frames` begins it.

    The run waits for each frame to be taken. `close`, or the end of a ``with`` block, stops it.
    """

    def __init__(self, frames: _femtile.Frames) -> None:
        self._frames = frames

    def __iter__(self) -> Frames:
        return self

    def __next__(self) -> tuple[float, Solution]:
        time, data = next(self._frames)
        return time, Solution(None, data)

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the run."""
        self._frames.close()

    @property
    def report(self) -> dict[str, Any] | None:
        """The report of the run, once all frames were taken."""
        text = self._frames.report()
        return None if text is None else json.loads(text)


def frames(case: Mapping[str, Any] | str | os.PathLike[str], mesh: Mesh | None = None) -> Frames:
    """Begin a case in time on a mesh, and return its frames while it runs.

    Parameters
    ----------
    case : dict or path
        As in `solve`; ``time.frames`` says at which times there is a frame.
    mesh : Mesh, optional
        As in `solve`.

    Examples
    --------
    >>> import femtile
    >>> case = {
    ...     "mesh": {"generate": {"kind": "square", "cells": [8, 8]}},
    ...     "equation": {"kind": "diffusion", "source": 1},
    ...     "boundary": [{"where": "all", "dirichlet": 0}],
    ...     "time": {"method": "bdf2", "end": 0.1, "steps": 10, "frames": {"every": 0.05}},
    ... }
    >>> [(round(time, 3), round(float(solution.fields["u"].max()), 3)) for time, solution in femtile.frames(case)]
    [(0.0, 0.0), (0.05, 0.044), (0.1, 0.063)]
    """
    return Frames(_femtile.frames(given_case(case, mesh), None if mesh is None else mesh._mesh))


def study(
    case: Mapping[str, Any] | str | os.PathLike[str],
    vary: Mapping[str, Any],
    folder: str | os.PathLike[str] | None = None,
    again: bool = False,
    jobs: int = 1,
    report: str | os.PathLike[str] | None = None,
) -> list[dict[str, Any]]:
    """Solve a case for all combinations of some of its values, as ``femtile study`` does.

    Runs that are complete in the folder are not made again. A run that fails has its message under ``failure``.

    Parameters
    ----------
    case : dict or path
        As in `solve`.
    vary : dict
        Values by key, such as ``{"mesh.refine": range(4), "solver.tolerance": [1e-6, 1e-8]}``; a text such as
        ``"1e-3:1e3:7"`` is one behind ``--vary``.
    folder : path, optional
        The folder of the study, in place of ``study`` in ``output.directory``.
    again : bool, optional
        Run all combinations, also those whose results are complete.
    jobs : int, optional
        Runs at a time on the CPU, which share the threads; the rows are the same.
    report : path, optional
        The file of a page for a browser with the orders, the plot and the table.

    Returns
    -------
    list of dict
        The rows of ``study.csv``, for example for ``pandas.DataFrame``.

    Examples
    --------
    >>> import femtile, tempfile
    >>> case = {
    ...     "mesh": {"generate": {"kind": "square", "cells": [4, 4]}},
    ...     "equation": {"source": 1},
    ...     "boundary": [{"where": "all", "dirichlet": 0}],
    ...     "output": {"functionals": [{"name": "energy", "kind": "energy"}]},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = femtile.study(case, {"mesh.refine": range(4)}, folder)
    >>> [row["unknowns"] for row in rows], round(rows[-1]["order of energy"], 1)
    ([25, 81, 289, 1089], 2.0)
    """
    given = given_case(case, None)
    if not isinstance(vary, Mapping) or not vary:
        raise ArgumentTypeError("vary: a dictionary of values by key is needed", "vary")
    pairs = []
    for key, values in vary.items():
        is_one = isinstance(values, str) or not isinstance(values, Iterable)
        pairs.append([key, values if is_one else list(values)])
    try:
        text = json.dumps(pairs, default=plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"vary: {error}", "vary") from None
    where = None if folder is None else os.fspath(folder)
    if isinstance(jobs, bool) or not isinstance(jobs, int):
        raise ArgumentTypeError("jobs: a whole number is needed", "jobs")
    if jobs < 1:
        raise ArgumentError("jobs: at least 1 run at a time is needed", "jobs")
    page = None if report is None else os.fspath(report)
    rows: list[dict[str, Any]] = json.loads(_femtile.study(given, text, where, again, jobs, page))
    return rows


def schema() -> dict[str, Any]:
    """Return the JSON schema of cases: every key with its meaning and default."""
    found: dict[str, Any] = json.loads(_femtile.schema())
    return found


def given_case(case: Any, mesh: Mesh | None) -> dict[str, str | None]:
    """Return a case as the compiled part takes it: JSON of a dictionary, or the path of a file."""
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ArgumentTypeError(f"mesh: a femtile.Mesh is needed, not {type(mesh).__name__}", "mesh")
    if isinstance(case, str | os.PathLike):
        return {"json": None, "path": os.fspath(case)}
    if not isinstance(case, Mapping):
        raise ArgumentTypeError(f"case: a dictionary or a path is needed, not {type(case).__name__}", "case")
    sections = dict(case) if mesh is None or "mesh" in case else {**case, "mesh": {}}
    try:
        return {"json": json.dumps(sections, default=plain, allow_nan=False), "path": None}
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"case: {error}", "case") from None

