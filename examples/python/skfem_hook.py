"""Solve linear systems of scikit-fem by Femtile: `skfem.solve` takes any function as its solver.

    pip install ./crates/femtile-python scikit-fem scipy
    python examples/python/skfem_hook.py
"""

import skfem
from skfem.models.poisson import laplace, unit_load

import femtile


def solver(**settings):
    """Return a solver for `skfem.solve`."""

    def solve(A, b, **_):
        return femtile.amg(A).solve(b, **settings)

    return solve


mesh = skfem.MeshTet().refined(4)
basis = skfem.Basis(mesh, skfem.ElementTetP1())
A, b = laplace.assemble(basis), unit_load.assemble(basis)
system = skfem.condense(A, b, D=basis.get_dofs())

u = skfem.solve(*system, solver=solver(tol=1e-10))
expected = skfem.solve(*system)
print(f"{len(u)} nodes, largest value {u.max():.6f}, largest difference to SciPy {abs(u - expected).max():.1e}")
assert abs(u - expected).max() < 1e-9

# The mesh of scikit-fem can be used by Femtile alone, too.
solution = femtile.Poisson(femtile.mesh.from_skfem(mesh), source=1.0).dirichlet("all", 0.0).solve()
assert abs(solution.fields["u"] - expected).max() < 1e-8
