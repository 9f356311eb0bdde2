"""The problem −∇·(σ∇u) + λu = f on a mesh in memory."""

from __future__ import annotations

from typing import Any

from . import _femtile
from ._case import given_case
from ._operator import Operator, operator_class
from ._problem import FluxProblem
from .mesh import Mesh


class Poisson(FluxProblem):
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
        Degree of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 to 6 on simplices.
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
        equation = {"sigma": sigma, "lambda": reaction, "source": source}
        self._begin(mesh, equation, {"degree": degree, "components": components})

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

