"""Recover the conductivities of the squares of a plate from measured temperature gradients, by L-BFGS of SciPy.

    pip install ./crates/femtile-python scipy
    python examples/python/conductivity.py
"""

import numpy as np
from scipy.optimize import minimize

import femtile

n = 6
mesh = femtile.mesh.square([n, n])
column, row, _ = (n * mesh.points[mesh.cells].mean(axis=1)).astype(int).T
# The square of each triangle.
square = n * row + column


def plate(conductivity):
    """Return the temperatures of a plate that is cold on the left and heated on the right."""
    form = femtile.Form(mesh, flux="k*grad(u)", constants={"k": conductivity[square]})
    solution = form.dirichlet("xmin", 0).flux("xmax", "1 + y").solve(tolerance=1e-12)
    assert solution.has_converged
    return solution


# The plate that is measured has a part that conducts three times as well.
true = np.ones((n, n))
true[2:4, 3:5] = 3
true = true.ravel()
u, points = plate(true).u[mesh.cells], mesh.points[mesh.cells][..., :2]
# The gradient of u in a cell, where u is linear.
slopes = np.linalg.solve(points[:, 1:] - points[:, :1], (u[:, 1:] - u[:, :1])[..., None])
measured = {"a": slopes[:, 0, 0].copy(), "b": slopes[:, 1, 0].copy()}
misfit = "(grad(u)[0] - a)^2 + (grad(u)[1] - b)^2"


def objective(logarithm):
    """Return the misfit and its gradient by the logarithms of the conductivities."""
    k = np.exp(logarithm)
    solution = plate(k)
    by_cell = solution.gradient(misfit, "k", **measured)
    return solution.integral(misfit, **measured), k * np.bincount(square, by_cell)


settings = {"maxiter": 400, "ftol": 0, "gtol": 1e-6}
found = minimize(objective, np.zeros(n * n), jac=True, method="L-BFGS-B", options=settings)
error = abs(np.exp(found.x) / true - 1).max()
print(f"{n * n} conductivities in {found.nfev} solves, largest error {100 * error:.1f} %")
assert error < 0.05
