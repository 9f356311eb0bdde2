"""Solutions on meshes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _femtile
from ._arrays import as_rows
from ._errors import ArgumentError, Error
from ._functional import FormState


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
        Polynomial degree of the cells, in each coordinate of quadrilaterals and hexahedra.
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
        Values at the points of `mesh` by name: ``u`` (``V`` of hearts), of elasticity ``stress`` (xx, yy, zz, yz, xz, xy),
        ``von_mises`` and ``principal`` (the largest first), and what ``output.fields`` asks for.
    cell_fields : dict of ndarray
        Values of cells by name.
    mesh : SolutionMesh
        Points and cells.
    report : dict
        The report of the program; of a frame empty.
    """

    def __init__(
        self, report: dict[str, Any] | None, data: dict[str, Any] | None, form: FormState | None = None
    ) -> None:
        found = data or _EMPTY
        self._form = form
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
    def u(self) -> NDArray[np.float64]:
        """u at the points of `mesh`; of several components a column each.

        Displacements in the plane have two columns here and a third one of zeros in `fields`.
        """
        values = self._field("u")
        return values if values.ndim == 1 else values[:, : self.report.get("space", {}).get("components")]

    def value_at(self, point: Any, field: str = "u") -> Any:
        """Return the value of a field at a point, or an array of them at points given as rows.

        Parameters
        ----------
        point : array_like
            Two or three coordinates, or rows of them.
        field : str
            Name of the field.

        Raises
        ------
        ArgumentError
            A point lies in no cell, or there is no such field.
        """
        at = np.asarray(point, dtype=np.float64)
        if at.ndim not in (1, 2) or at.shape[-1] not in (2, 3):
            raise ArgumentError(f"point: has shape {at.shape}; two or three coordinates are needed", "point")
        values = self.u if field == "u" else self._field(field)
        rows = np.ascontiguousarray(values.reshape(len(self.mesh.points), -1), dtype=np.float64)
        at_rows = at.reshape(-1, at.shape[-1])
        padded = np.ascontiguousarray(np.pad(at_rows, ((0, 0), (0, 3 - at.shape[-1]))))
        found = _femtile.values_at(self._cells(), rows, padded).reshape(len(at_rows), *values.shape[1:])
        return found[0] if at.ndim == 1 else found

    def integral(self, functional: str, **constants: Any) -> float:
        """Return the integral of a formula over the cells; of steady solutions of `Form`.

        Parameters
        ----------
        functional : str
            A formula of the unknown, its gradient, the point, and constants and definitions of the equation.
        **constants
            Further scalars of the formula: numbers, expressions, or arrays with an entry for each cell.
        """
        return self._functional(functional, constants, [])[0]

    def gradient(self, functional: str, parameter: str | Sequence[str], **constants: Any) -> Any:
        """Return the derivative of a functional by a constant of the equation, by one adjoint solve; of solutions of `Form`.

        Dirichlet values are taken as independent of the constant. The solution has to have converged; the settings of its
        solver are those of the adjoint solve.

        Parameters
        ----------
        functional : str
            As in `integral`.
        parameter : str or sequence of str
            The name of the constant, or several names: the result is a list, with one adjoint solve for all of them.
        **constants
            As in `integral`.

        Returns
        -------
        float, ndarray or dict
            A float by a number, an array of its shape by a vector or a tensor, an array with an entry for each cell by a cell
            field. By values by tag a dictionary with their names, that for other tags at ``"default"``.

        Examples
        --------
        >>> import femtile
        >>> bar = femtile.Form(femtile.mesh.square([8, 8]), flux="k*grad(u)", source="1", constants={"k": 2.0})
        >>> solution = bar.dirichlet("xmin", 0).dirichlet("xmax", 0).solve(tolerance=1e-12)
        >>> round(solution.integral("u"), 6), round(solution.gradient("u", "k"), 6)
        (0.041016, -0.020508)
        """
        names = [parameter] if isinstance(parameter, str) else list(parameter)
        slopes = self._functional(functional, constants, names)[1]
        return slopes[0] if isinstance(parameter, str) else slopes

    def _functional(
        self, formula: str, constants: dict[str, Any], parameters: list[str]
    ) -> tuple[float, list[Any]]:
        if self._form is None:
            raise Error("functionals of formulas and gradients are of steady solutions of femtile.Form")
        return self._form.functional(formula, constants, parameters)

    def write_vtu(self, path: str | os.PathLike[str]) -> None:
        """Write the solution with its mesh as a VTU file, which ParaView opens."""
        tags = np.ascontiguousarray(self.mesh.cell_tags, dtype=np.int32)
        fields = as_rows(self.fields), as_rows(self.cell_fields)
        _femtile.write_vtu(os.fspath(path), self._cells(), tags, fields)

    def _field(self, name: str) -> NDArray[np.float64]:
        if name not in self.fields:
            raise ArgumentError(f"field: `{name}` is none of: {', '.join(self.fields)}", "field")
        return self.fields[name]

    def _cells(self) -> tuple[str, int, NDArray[np.float64], NDArray[np.uint32]]:
        points = np.ascontiguousarray(self.mesh.points, dtype=np.float64)
        return self.mesh.kind, self.mesh.order, points, np.ascontiguousarray(self.mesh.cells, dtype=np.uint32)

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
