"""The problem −∇·(σ∇u) + λu = f on a mesh in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _femtile
from ._case import given_case, solve
from ._errors import ArgumentError
from ._operator import Operator, operator_class
from ._solution import Solution
from .mesh import Mesh


class Poisson:
    """The problem −∇·(σ∇u) + λu = f on a mesh, with conditions on its boundary.

    Each method returns a new problem. Values are those of a case: numbers, expressions such as ``"1 + x"``, tensors as
    nested lists, ``{"by_tag": {...}}``; σ, λ and f may be arrays with an entry a cell as well.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    sigma, reaction, source : value
        σ, λ and f.
    degree : int
        Degree of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 on simplices.
    components : int
        Components of u.

    Examples
    --------
    >>> import femtile
    >>> mesh = femtile.mesh.square([16, 16])
    >>> problem = femtile.Poisson(mesh, sigma="1 + x").dirichlet("xmin", 0).robin("xmax", 0.5, 20)
    >>> solution = problem.solve(tolerance=1e-8)
    >>> solution.has_converged
    True
    """

    def __init__(
        self,
        mesh: Mesh,
        sigma: Any = 1.0,
        reaction: Any = 0.0,
        source: Any = 0.0,
        *,
        degree: int = 1,
        components: int = 1,
    ) -> None:
        if not isinstance(mesh, Mesh):
            raise ArgumentError(f"mesh: a femtile.Mesh is needed, not {type(mesh).__name__}", "mesh")
        fields: dict[str, Any] = {}
        given = (("sigma", sigma), ("lambda", reaction), ("source", source))
        equation = {key: _value(key, value, mesh.n_cells, fields) for key, value in given}
        self._mesh = mesh.with_fields(cell_fields=fields) if fields else mesh
        self._case: dict[str, Any] = {
            "equation": equation,
            "space": {"degree": degree, "components": components},
            "boundary": [],
        }

    def _with(self, condition: dict[str, Any]) -> Poisson:
        other = Poisson.__new__(Poisson)
        other._mesh = self._mesh
        other._case = {**self._case, "boundary": [*self._case["boundary"], condition]}
        return other

    def dirichlet(self, where: str | int, value: Any) -> Poisson:
        """Give u on a part of the boundary: ``"all"``, a tag or a comparison such as ``"x < 1e-9"``."""
        return self._with({"where": where, "dirichlet": value})

    def dirichlet_at_nodes(self, nodes: str, value: Any) -> Poisson:
        """Give u at the nodes that satisfy a comparison."""
        return self._with({"nodes": nodes, "dirichlet": value})

    def neumann(self, where: str | int, flux: Any) -> Poisson:
        """Give the flux σ ∂u/∂n into the domain on a part of the boundary."""
        return self._with({"where": where, "neumann": flux})

    def robin(self, where: str | int, coefficient: Any, value: Any) -> Poisson:
        """Give an exchange σ ∂u/∂n = coefficient · (value − u) on a part of the boundary."""
        return self._with({"where": where, "robin": {"coefficient": coefficient, "value": value}})

    def case(self, **solver: Any) -> dict[str, Any]:
        """Return the case, without its mesh, with settings of the solver."""
        return {**self._case, "solver": solver}

    def solve(self, *, fields: tuple[str, ...] = (), functionals: tuple[Any, ...] = (), **solver: Any) -> Solution:
        """Solve the problem.

        Parameters
        ----------
        fields : tuple of str
            Further fields: ``"gradient"``, ``"flux"``, ``"error"``.
        functionals : tuple of dict
            Numbers to compute, as ``output.functionals`` of a case; they are in the report.
        **solver
            Settings of the section ``solver`` of a case, such as ``tolerance=1e-8`` or ``device="cpu"``.
        """
        output = {"fields": list(fields), "functionals": list(functionals)}
        return solve({**self.case(**solver), "output": output}, self._mesh)

    def operator(self, kind: str = "auto", *, metric: str = "auto", threads: int = 0) -> Operator:
        """Return the operator of the problem and its right side, for iterative methods of SciPy and of your own.

        Parameters
        ----------
        kind : str
            ``"matrix-free"`` on quadrilaterals and hexahedra, ``"assembled"`` on any cells; ``"auto"`` is the first where
            it exists.
        metric : str
            How the metric of cells is obtained, as ``solver.metric`` of a case.
        threads : int
            Threads of a product; 0 for all.

        Examples
        --------
        >>> import femtile
        >>> mesh = femtile.mesh.square([8, 8], cell="quadrilateral")
        >>> A = femtile.Poisson(mesh, source=1.0, degree=3).dirichlet("all", 0.0).operator()
        >>> A
        <femtile.Operator: 625 unknowns, matrix-free>
        >>> w, info = femtile.cg(A, A.rhs, rtol=1e-10)
        >>> round(float(A.solution(w).fields["u"].max()), 4)
        0.0737
        """
        settings = {"operator": kind, "metric": metric, "threads": threads, "preconditioner": "jacobi"}
        raw = _femtile.Operator(given_case(self.case(**settings), self._mesh), self._mesh._mesh)
        return operator_class()(raw)


def _value(key: str, value: Any, n_cells: int, fields: dict[str, Any]) -> Any:
    """Return the value as a case has it; an array becomes a field of cells."""
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    if value.shape[0] != n_cells:
        argument = "reaction" if key == "lambda" else key
        raise ArgumentError(f"{argument}: {value.shape[0]} entries for {n_cells} cells", argument)
    fields[key] = value
    return {"field": key}
