"""Convection and diffusion on a mesh in memory."""

from __future__ import annotations

from typing import Any

from ._problem import FluxProblem, vector
from .mesh import Mesh


class ConvectionDiffusion(FluxProblem):
    """The problem −∇·(σ∇u) + b·∇u + λu = f on a mesh, with conditions on its boundary.

    Each method returns a new problem. Values are those of `Poisson`. Elements are not stabilised: a warning in the report
    names a cell Péclet number above 1, where the solution may oscillate. The method is GMRES.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    sigma, reaction, source : value
        σ, λ and f.
    velocity : sequence of value, or ndarray
        b: an entry for each axis, or an array with a row a cell.
    degree : int
        Degree of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 to 6 on simplices.

    Examples
    --------
    >>> import femtile
    >>> mesh = femtile.mesh.square([32, 32])
    >>> problem = femtile.ConvectionDiffusion(mesh, sigma=0.05, source=1, velocity=["1 - y", 0])
    >>> solution = problem.dirichlet("all", 0).solve(tolerance=1e-8)
    >>> solution.has_converged, solution.report["warnings"]
    (True, [])
    >>> round(float(solution.u.max()), 2)
    1.1
    """

    def __init__(
        self,
        mesh: Mesh,
        sigma: Any = 1.0,
        reaction: Any = 0.0,
        source: Any = 0.0,
        *,
        velocity: Any,
        degree: int = 1,
    ) -> None:
        equation = {
            "kind": "convection-diffusion",
            "sigma": sigma,
            "velocity": vector(velocity),
            "lambda": reaction,
            "source": source,
        }
        self._begin(mesh, equation, {"degree": degree})
