"""Times PETSc's Jacobi-CG on a matrix that `femtile bench petsc` wrote.

Arguments: file, repeats, tolerance on the unpreconditioned residual relative to b. Prints JSON.
"""

import glob
import json
import sys
import time

import numpy

# Debian keeps the module where only the `petsc` alternative of its -dev package points.
sys.path += glob.glob("/usr/lib/petscdir/*/*-real/lib/python3/dist-packages")
import petsc4py

petsc4py.init([])
from petsc4py import PETSc

file, repeats, tolerance = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with open(file, "rb") as data:
    n_rows, n_nonzeros = (int(count) for count in numpy.fromfile(data, "<u8", 2))
    offsets = numpy.fromfile(data, "<u4", n_rows + 1).astype(PETSc.IntType)
    columns = numpy.fromfile(data, "<u4", n_nonzeros).astype(PETSc.IntType)
    values = numpy.fromfile(data, "<f8", n_nonzeros)
    rhs = numpy.fromfile(data, "<f8", n_rows)

a = PETSc.Mat().createAIJ((n_rows, n_rows), csr=(offsets, columns, values), comm=PETSc.COMM_SELF)
b, x = a.createVecs()
ksp = PETSc.KSP().create(PETSc.COMM_SELF)
ksp.setOperators(a)
ksp.setType("cg")
ksp.getPC().setType("jacobi")
ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
ksp.setTolerances(rtol=tolerance, atol=0.0, max_it=10000)

b.setArray(rhs)
ksp.setUp()
ksp.solve(b, x)  # once untimed: memory is touched, work vectors exist
seconds = []
for _ in range(repeats):
    x.set(0.0)
    begun = time.perf_counter()
    ksp.solve(b, x)
    seconds.append(time.perf_counter() - begun)
if ksp.getConvergedReason() <= 0:
    sys.exit(f"PETSc did not converge: reason {ksp.getConvergedReason()}")
version = ".".join(str(part) for part in PETSc.Sys.getVersion())
print(json.dumps({"version": version, "iterations": ksp.getIterationNumber(), "seconds": seconds}))
