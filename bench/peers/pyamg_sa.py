"""Times PyAMG's smoothed aggregation with conjugate gradients on a system that `femtile bench amg` wrote.

Arguments: folder (unused), file, threads (only one can be used), repeats, tolerance relative to b. Prints JSON.
"""

import json
import sys
import time

import numpy
import pyamg
import scipy.sparse

_, file, threads, repeats, tolerance = sys.argv[1:]
if int(threads) != 1:
    sys.exit("PyAMG has one thread only")
with open(file, "rb") as data:
    n_rows, n_nonzeros = (int(count) for count in numpy.fromfile(data, "<u8", 2))
    offsets = numpy.fromfile(data, "<u4", n_rows + 1).astype("i4")
    columns = numpy.fromfile(data, "<u4", n_nonzeros).astype("i4")
    values = numpy.fromfile(data, "<f8", n_nonzeros)
    b = numpy.fromfile(data, "<f8", n_rows)

a = scipy.sparse.csr_matrix((values, columns, offsets), shape=(n_rows, n_rows))
setup, solve = [], []
for _ in range(int(repeats)):
    begun = time.perf_counter()
    levels = pyamg.smoothed_aggregation_solver(a)
    setup.append(time.perf_counter() - begun)
    residuals = []
    begun = time.perf_counter()
    x = levels.solve(b, tol=float(tolerance), maxiter=1000, accel="cg", residuals=residuals)
    solve.append(time.perf_counter() - begun)
method = {
    "library": f"PyAMG {pyamg.__version__}",
    "method": "SA, symmetric Gauss-Seidel",
    "seconds_setup": setup,
    "seconds_solve": solve,
    "iterations": len(residuals) - 1,
    "residual": float(numpy.linalg.norm(b - a @ x) / numpy.linalg.norm(b)),
    "operator_complexity": float(levels.operator_complexity()),
}
print(json.dumps([method]))
