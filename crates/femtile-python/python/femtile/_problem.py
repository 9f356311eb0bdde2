"""What all problems on meshes in memory have in common."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ._case import solve
from ._errors import ArgumentError
from ._solution import Solution
from .mesh import Mesh


class Problem:
    """An equation on a mesh with conditions on its boundary; the base of `Poisson`, `Elasticity` and others.

    Each method returns a new problem.
    """

    _mesh: Mesh
    _case: dict[str, Any]

    def _begin(self, mesh: Mesh, equation: dict[str, Any], space: dict[str, Any]) -> None:
        """Keep the mesh and the equation, in which arrays become fields of cells."""
        if not isinstance(mesh, Mesh):
            raise ArgumentError(f"mesh: a femtile.Mesh is needed, not {type(mesh).__name__}", "mesh")
        self._mesh = mesh
        self._case = {"space": space, "boundary": []}
        self._set_equation(equation)

    def _set_equation(self, equation: dict[str, Any]) -> None:
        fields: dict[str, Any] = {}
        values = {
            key: {name: _constant(name, entry, self._mesh, fields) for name, entry in value.items()}
            if key == "constants"
            else _value(key, value, self._mesh, fields)
            for key, value in equation.items()
        }
        self._mesh = self._mesh.with_fields(cell_fields=fields) if fields else self._mesh
        self._case["equation"] = values

    def _copy(self) -> Self:
        other = type(self).__new__(type(self))
        other._mesh = self._mesh
        other._case = dict(self._case)
        return other

    def _with(self, condition: dict[str, Any]) -> Self:
        other = self._copy()
        other._case["boundary"] = [*self._case["boundary"], condition]
        return other

    def _with_equation(self, equation: dict[str, Any]) -> Self:
        other = self._copy()
        other._set_equation(equation)
        return other

    def dirichlet(self, where: str | int, value: Any) -> Self:
        """Give u on a part of the boundary: ``"all"``, a tag or a comparison such as ``"x < 1e-9"``."""
        return self._with({"where": where, "dirichlet": value})

    def dirichlet_at_nodes(self, nodes: str, value: Any) -> Self:
        """Give u at the nodes that satisfy a comparison."""
        return self._with({"nodes": nodes, "dirichlet": value})

    def flux(self, where: str | int, formula: str | dict[str, str]) -> Self:
        """Give the flux into the body on a part of the boundary, a formula of the unknown and the ``normal``; of several unknowns a dict."""
        return self._with({"where": where, "flux": formula})

    def case(self, **solver: Any) -> dict[str, Any]:
        """Return the case, without its mesh, with settings of the solver."""
        return {**self._case, "solver": solver}

    def solve(self, *, fields: tuple[str, ...] = (), functionals: tuple[Any, ...] = (), **solver: Any) -> Solution:
        """Solve the problem.

        Parameters
        ----------
        fields : tuple of str
            Further fields: ``"gradient"``, ``"flux"``, ``"error"`` of `Poisson`.
        functionals : tuple of dict
            Numbers to compute, as ``output.functionals`` of a case; they are in the report.
        **solver
            Settings of the section ``solver`` of a case, such as ``tolerance=1e-8`` or ``device="cpu"``.
        """
        output = {"fields": list(fields), "functionals": list(functionals)}
        return solve({**self.case(**solver), "output": output}, self._mesh)


class FluxProblem(Problem):
    """A problem of a scalar with fluxes through its boundary."""

    def neumann(self, where: str | int, flux: Any) -> Self:
        """Give the flux σ ∂u/∂n into the domain on a part of the boundary."""
        return self._with({"where": where, "neumann": flux})

    def robin(self, where: str | int, coefficient: Any, value: Any) -> Self:
        """Give an exchange σ ∂u/∂n = coefficient · (value − u) on a part of the boundary."""
        return self._with({"where": where, "robin": {"coefficient": coefficient, "value": value}})


#: Names of arguments by those of keys, where they differ.
_ARGUMENTS = {"lambda": "reaction"}


def _value(key: str, value: Any, mesh: Mesh, fields: dict[str, Any]) -> Any:
    """Return the value as a case has it; an array becomes a field of cells."""
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    if value.shape[0] != mesh.n_cells:
        argument = _ARGUMENTS.get(key, key)
        raise ArgumentError(f"{argument}: {value.shape[0]} entries for {mesh.n_cells} cells", argument)
    fields[key] = value
    return {"field": key}


def _constant(name: str, value: Any, mesh: Mesh, fields: dict[str, Any]) -> Any:
    """Return a constant as a case has it; an array of a vector or a tensor becomes a list."""
    dimension = mesh.points.shape[1]
    is_whole = isinstance(value, np.ndarray) and value.shape in {(dimension,), (dimension, dimension)}
    return value.tolist() if is_whole and len(value) != mesh.n_cells else _value(name, value, mesh, fields)


def vector(value: Any) -> Any:
    """Return the value of a vector: an array of one dimension has an entry for each axis, and is no field of cells."""
    return value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
