"""Equations of the user on a mesh in memory."""

from __future__ import annotations

from typing import Any, Self

from ._errors import ArgumentError
from ._problem import Problem
from .mesh import Mesh


class Form(Problem):
    """An equation of your own: an energy, or a flux and a source, as formulas with vectors and matrices.

    For all test functions v, ∫ F:∇v dx = ∫ f·v dx + ∫ g·v ds with the flux F, the source f and the fluxes g into the body on the
    boundary; an energy W adds ∂W/∂∇u to F and takes ∂W/∂u from f. Formulas use the unknown, ``grad(u)``, ``div(u)``, the point,
    constants and ``identity``; on the boundary also ``normal``. The page "Your own equation" has all of them.

    Each method returns a new problem.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    energy, flux, source : str, optional
        The formulas; flux and source of several unknowns are dicts with those of each.
    unknown : str or dict
        The name of the unknown, or a dict with ``components`` and ``degree`` of each of several unknowns by name.
    components : int or "dimension", optional
        The components of a vector; ``"dimension"`` is one along each axis. Left out, the unknown is a number.
    constants : dict, optional
        Numbers, expressions, vectors (a list), tensors, ``{"by_tag": {...}}`` or arrays with an entry a cell, by name.
    define : str, optional
        Definitions ``name = formula``, one in a line or separated by ``;``.
    initial : value, optional
        The first iterate of Newton's method, of all components: a number or an expression.
    stabilise : "supg", optional
        Stabilises convection, in elements of degree 1.
    degree : int
        Degree of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 to 6 on simplices.
    steps : int, optional
        Load steps: t grows from 0 to 1 in as many steps.

    Examples
    --------
    >>> import femtile
    >>> film = femtile.Form(femtile.mesh.square([16, 16]), energy="sqrt(1 + grad(u).grad(u))", degree=2)
    >>> solution = film.dirichlet("all", "(x - y)^2").solve(functionals=({"name": "area", "kind": "energy"},))
    >>> round(solution.report["functionals"]["area"], 4)
    1.2968
    """

    def __init__(
        self,
        mesh: Mesh,
        *,
        energy: str | None = None,
        flux: str | dict[str, str] | None = None,
        source: Any = None,
        unknown: str | dict[str, dict[str, Any]] = "u",
        components: int | str | None = None,
        constants: dict[str, Any] | None = None,
        define: str | None = None,
        initial: Any = None,
        stabilise: str | None = None,
        degree: int = 1,
        steps: int | None = None,
    ) -> None:
        formulas = {"energy": energy, "flux": flux, "source": source, "define": define}
        given = {**formulas, "constants": constants, "initial": initial, "stabilise": stabilise}
        equation = {"kind": "form", **{key: value for key, value in given.items() if value is not None}}
        self._begin(mesh, equation, {"degree": degree})
        if components is not None and not isinstance(unknown, str):
            raise ArgumentError("components: several unknowns have theirs in `unknown`", "components")
        one = {} if components is None else {"components": components}
        self._case["unknown"] = {unknown: one} if isinstance(unknown, str) else unknown
        if steps is not None:
            self._case["continuation"] = {"steps": steps}

    def with_constants(self, **constants: Any) -> Self:
        """Give constants other values."""
        equation = self._case["equation"]
        return self._with_equation({**equation, "constants": {**equation.get("constants", {}), **constants}})
