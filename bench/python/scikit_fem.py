"""Compare convection–diffusion and elasticity with scikit-fem on a mesh of tetrahedra.

    pip install ./crates/femtile-python scikit-fem scipy
    python bench/python/scikit_fem.py SAMPLES/meshes/tet/ellipsoid_15811.node
    python bench/python/scikit_fem.py MESH --record crates/femtile-case/tests/forms/scikit_fem.json

The mesh is a shell, the lower half of an ellipsoid, with its flat side at z = 0. Coefficients are linear, so that both
quadratures are exact, and answers differ by the tolerance of the iterations alone. `--record` writes the numbers of
scikit-fem, with which a test of `femtile-case` compares.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import scipy.sparse.linalg as spl
import skfem
from skfem.helpers import ddot, div, dot, grad, sym_grad

import femtile

POINTS = [
    [0.1276, -0.0476, -0.9128],
    [-0.2454, 0.0851, -0.5656],
    [0.1059, 0.467, -0.1039],
    [-0.0921, -0.2673, -0.4533],
]

CONVECTION = {
    "sigma": "2 + z",
    "velocity": ["10*y", "3 - 10*x", 5],
    "reaction": 0.5,
    "source": "1 + 4*x",
}
ELASTICITY = {"young": "500 - 300*z", "poisson": 0.3, "source": [0, "x", -1]}


def functionals(kind):
    """The functionals that are compared, as those of a case."""
    given = [{"name": f"u{i}", "kind": "value_at", "point": point} for i, point in enumerate(POINTS)]
    given += [{"name": "integral", "kind": "integral"}, {"name": "norm", "kind": "l2_norm"}]
    return given + [{"name": "energy", "kind": "energy"}] * (kind == "elasticity")


def of_femtile(mesh, kind, degree):
    """The functionals by Femtile."""
    if kind == "elasticity":
        problem = femtile.Elasticity(mesh, **ELASTICITY, degree=degree).pressure("all", "-z")
        problem = problem.dirichlet("z > -1e-9", [0, 0, "1e-3*x"])
    else:
        problem = femtile.ConvectionDiffusion(mesh, **CONVECTION, degree=degree).neumann("all", "y")
        problem = problem.dirichlet("z > -1e-9", "x")
    solution = problem.solve(functionals=tuple(functionals(kind)), tolerance=1e-13, device="cpu")
    assert solution.has_converged, solution
    return solution.report["functionals"]


def of_skfem(mesh, kind, degree):
    """The functionals by scikit-fem."""
    scalar = [skfem.ElementTetP1, skfem.ElementTetP2][degree - 1]()
    element = skfem.ElementVector(scalar) if kind == "elasticity" else scalar
    of_mesh = skfem.MeshTet(mesh.points.T, mesh.cells.T.astype(np.int64))
    basis = skfem.Basis(of_mesh, element, intorder=2 * degree + 2)
    top = of_mesh.facets_satisfying(lambda x: x[2] > -1e-9, boundaries_only=True)
    rest = np.setdiff1d(of_mesh.boundary_facets(), top)
    sides = basis.boundary(rest)
    A, b, given = (elasticity if kind == "elasticity" else convection)(basis, sides)
    # The direct solver of SciPy takes minutes for the displacements of degree 2.
    solver = conjugate_gradients if kind == "elasticity" else skfem.utils.solver_direct_scipy()
    u = skfem.solve(*skfem.condense(A, b, x=given, D=basis.get_dofs(top)), solver=solver)

    found = {}
    values = basis.probes(np.array(POINTS).T) @ u
    number = 3 if kind == "elasticity" else 1
    for i, value in enumerate(values.reshape(number, len(POINTS)).T):
        found |= named(f"u{i}", value)
    at = basis.interpolate(u)
    components = list(at) if kind == "elasticity" else [at]
    integral = skfem.Functional(lambda w: w["f"])
    found |= named("integral", [integral.assemble(basis, f=c) for c in components])
    found |= named("norm", [np.sqrt(integral.assemble(basis, f=c * c)) for c in components])
    if kind == "elasticity":
        found["energy"] = float(0.5 * u @ A @ u)
    return found


def conjugate_gradients(A, b, **_):
    """Solve by conjugate gradients of SciPy with the diagonal."""
    diagonal = A.diagonal()
    M = spl.LinearOperator(A.shape, matvec=lambda r: r / diagonal)
    x, info = spl.cg(A, b, rtol=1e-13, maxiter=20_000, M=M)
    assert info == 0, info
    return x


def named(name, values):
    """Numbers by the names of functionals: with the component where there are several."""
    if len(values) == 1:
        return {name: float(values[0])}
    return {f"{name}[{c}]": float(value) for c, value in enumerate(values)}


def convection(basis, sides):
    """Matrix, right side and given values."""

    @skfem.BilinearForm
    def form(u, v, w):
        x, y, z = w.x
        drift = 10 * y * grad(u)[0] + (3 - 10 * x) * grad(u)[1] + 5 * grad(u)[2]
        return (2 + z) * dot(grad(u), grad(v)) + drift * v + 0.5 * u * v

    load = skfem.LinearForm(lambda v, w: (1 + 4 * w.x[0]) * v).assemble(basis)
    flux = skfem.LinearForm(lambda v, w: w.x[1] * v).assemble(sides)
    return form.assemble(basis), load + flux, basis.project(lambda x: x[0])


def elasticity(basis, sides):
    """Matrix, right side and given values."""

    @skfem.BilinearForm
    def form(u, v, w):
        young, poisson = 500 - 300 * w.x[2], 0.3
        mu, lame = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
        return 2 * mu * ddot(sym_grad(u), sym_grad(v)) + lame * div(u) * div(v)

    load = skfem.LinearForm(lambda v, w: w.x[0] * v[1] - v[2]).assemble(basis)
    pressure = skfem.LinearForm(lambda v, w: w.x[2] * dot(w.n, v)).assemble(sides)
    given = basis.project(lambda x: np.stack([0 * x[0], 0 * x[0], 1e-3 * x[0]]))
    return form.assemble(basis), load + pressure, given


def main():
    """Compare, or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mesh", type=Path)
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    mesh = femtile.mesh.read(given.mesh)
    record = {"scikit-fem": skfem.__version__, "mesh": given.mesh.name, "points": POINTS, "problems": []}
    worst = 0.0
    for kind in ("convection-diffusion", "elasticity"):
        for degree in (1, 2):
            expected = of_skfem(mesh, kind, degree)
            found = of_femtile(mesh, kind, degree)
            assert expected.keys() == found.keys(), expected.keys() ^ found.keys()
            print(f"{kind}, degree {degree}:")
            for name, value in expected.items():
                # Relative to the largest of its kind: a component may vanish almost.
                alike = [abs(other) for key, other in expected.items() if key[0] == name[0]]
                difference = abs(found[name] - value) / max(alike)
                worst = max(worst, difference)
                print(f"    {name:12} {found[name]:20.12e} {value:20.12e}  {difference:.1e}")
            element = f"ElementTetP{degree}"
            record["problems"].append({"kind": kind, "degree": degree, "element": element, "functionals": expected})
    print(f"largest relative difference {worst:.1e}")
    if given.record:
        given.record.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
