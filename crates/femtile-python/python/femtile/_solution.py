"""Solutions on meshes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class SolutionMesh(NamedTuple):
    """The points and cells that a solution lives on, as its file for ParaView has them.

    Attributes
    ----------
    points : ndarray
        Coordinates of the points, three of each.
    cells : ndarray
        Points of each cell, numbered as VTK numbers them.
    kind : str
        Kind of the cells.
    order : int
        Polynomial degree of the cells in each coordinate.
    cell_tags : ndarray
        Tags of cells, or empty.
    """

    points: NDArray[np.float64]
    cells: NDArray[np.uint32]
    kind: str
    order: int
    cell_tags: NDArray[np.int32]


class Solution:
    """A solution: its fields, its mesh and its report.

    Attributes
    ----------
    fields : dict of ndarray
        Values at the points of `mesh` by name: ``u`` (``V`` of hearts) and what ``output.fields`` asks for.
    cell_fields : dict of ndarray
        Values of cells by name.
    mesh : SolutionMesh
        Points and cells.
    report : dict
        The report of the program; of a frame empty.
    """

    def __init__(self, report: dict[str, Any] | None, data: dict[str, Any] | None) -> None:
        found = data or _EMPTY
        self.report: dict[str, Any] = report or {}
        self.fields: dict[str, NDArray[np.float64]] = found["point_fields"]
        self.cell_fields: dict[str, NDArray[np.float64]] = found["cell_fields"]
        self.mesh = SolutionMesh(
            found["points"], found["cells"], found["kind"], found["order"], found["cell_tags"]
        )

    def __repr__(self) -> str:
        stop = self.report.get("solve", {}).get("stop", "a frame")
        return f"<femtile.Solution: {', '.join(self.fields)} at {len(self.mesh.points)} points, {stop}>"

    @property
    def has_converged(self) -> bool:
        """Whether the solve met its tolerance, or the run reached its end."""
        return bool(self.report) and self.report["solve"]["stop"] == "converged"

    def to_pyvista(self) -> Any:
        """Return the solution as a `pyvista.UnstructuredGrid`."""
        from ._export import to_pyvista

        return to_pyvista(self)

    def to_meshio(self) -> Any:
        """Return the solution as a `meshio.Mesh`."""
        from ._export import to_meshio

        return to_meshio(self)

    def plot(self, field: str = "u", **settings: Any) -> Any:
        """Plot a field with PyVista; `settings` are those of `pyvista.DataSet.plot`."""
        from ._export import plot

        return plot(self, field, settings)


_EMPTY: dict[str, Any] = {
    "point_fields": {},
    "cell_fields": {},
    "points": np.empty((0, 3)),
    "cells": np.empty((0, 0), np.uint32),
    "kind": "none",
    "order": 1,
    "cell_tags": np.empty(0, np.int32),
}
