"""Replace PyAMG by Femtile for a symmetric positive definite matrix.

    pip install ./crates/femtile-python pyamg scipy
    python examples/python/pyamg_replacement.py
"""

import time

import numpy as np
import pyamg
import scipy.sparse as sp

import femtile

A = sp.csr_matrix(pyamg.gallery.poisson((200, 200), format="csr"))
b = np.ones(A.shape[0])

begun = time.perf_counter()
x = pyamg.smoothed_aggregation_solver(A).solve(b, tol=1e-8, accel="cg")
print(f"PyAMG:   {time.perf_counter() - begun:.3f} s, ‖b − Ax‖/‖b‖ = {np.linalg.norm(b - A @ x) / np.linalg.norm(b):.1e}")

begun = time.perf_counter()
solver = femtile.amg(A)
x = solver.solve(b, tol=1e-8)
print(f"Femtile: {time.perf_counter() - begun:.3f} s, ‖b − Ax‖/‖b‖ = {np.linalg.norm(b - A @ x) / np.linalg.norm(b):.1e}")

for number, level in enumerate(solver.hierarchy):
    print(f"level {number}: {level.rows} rows, {level.entries} entries")

# The same pattern with other values keeps the aggregates.
solver.refill(2.0 * A)
assert np.allclose(2.0 * solver.solve(b), x, atol=1e-6)
