"""Linear elasticity on a mesh in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ._problem import Problem, vector
from .mesh import Mesh


class Elasticity(Problem):
    """Small deformations of an isotropic body: −∇·s = f with s = 2με + λ (tr ε) I and ε = (∇u + ∇uᵀ)/2.

    u are the displacements, with a component for each axis. Each method returns a new problem. Facets without a condition
    are free of forces; displacements may be given by component, ``"free"`` for those without a value:
    ``dirichlet("xmin", [0, "free", "free"])``. Values are those of a case: numbers, expressions such as ``"1 + x"``,
    ``{"by_tag": {...}}``, or arrays with an entry a cell.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    young, poisson : value
        Young's modulus E and Poisson's ratio ν.
    source : sequence of value, or ndarray
        Force per volume: an entry for each axis, or an array with a row a cell.
    plane : {"strain", "stress"}, optional
        The state of a body in the plane; strain if left out.
    expansion, temperature, reference_temperature
        Coefficient of thermal expansion, temperature, and the temperature without thermal strain (0), each in the forms of `young`.
    degree : int
        Degree of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 to 6 on simplices.

    Examples
    --------
    >>> import femtile
    >>> mesh = femtile.mesh.box([10, 1, 1], cell="hexahedron", upper=[1, 0.1, 0.1])
    >>> beam = femtile.Elasticity(mesh, young=210e9, poisson=0.3, degree=2).dirichlet("xmin", [0, 0, 0])
    >>> solution = beam.traction("xmax", [0, 0, -1e5]).solve(tolerance=1e-8)
    >>> solution.u.shape == solution.mesh.points.shape, sorted(solution.fields)
    (True, ['principal', 'stress', 'u', 'von_mises'])
    >>> round(float(solution.value_at([1, 0.05, 0.05])[2]), 5)
    -0.00019
    """

    def __init__(
        self,
        mesh: Mesh,
        young: Any,
        poisson: Any,
        source: Any = None,
        *,
        plane: str | None = None,
        expansion: Any = None,
        temperature: Any = None,
        reference_temperature: Any = None,
        degree: int = 1,
    ) -> None:
        equation = {"kind": "elasticity", "young": young, "poisson": poisson}
        given = {
            "source": vector(source),
            "plane": plane,
            "expansion": expansion,
            "temperature": temperature,
            "reference_temperature": reference_temperature,
        }
        equation.update((key, value) for key, value in given.items() if value is not None)
        self._begin(mesh, equation, {"degree": degree})

    def traction(self, where: str | int, force: Sequence[Any]) -> Self:
        """Give the force per area on a part of the boundary, an entry for each axis."""
        return self._with({"where": where, "traction": vector(force)})

    def pressure(self, where: str | int, pressure: Any) -> Self:
        """Give the force per area against the outer normal on a part of the boundary."""
        return self._with({"where": where, "pressure": pressure})
