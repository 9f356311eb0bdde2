"""Times hypre on stabilised convection-diffusion (convection.py): GMRES with BoomerAMG, classical and by AIR, and with ILU(0).

Arguments: libHYPRE.so, nodes along an edge, diffusivity, tolerance relative to b, threads, seconds a method may take, and
methods, all of METHODS by default. The library is built from the sources of hypre with
cmake -DBUILD_SHARED_LIBS=ON -DHYPRE_ENABLE_MPI=OFF -DHYPRE_ENABLE_OPENMP=ON. Prints a JSON object a method.
"""

import ctypes
import json
import multiprocessing
import os
import sys
import time

import numpy

from convection import system

path, nodes, diffusivity, tolerance, threads, limit, *chosen = sys.argv[1:]
nodes, diffusivity, tolerance, limit = int(nodes), float(diffusivity), float(tolerance), float(limit)
os.environ["OMP_NUM_THREADS"] = threads
METHODS = ["BoomerAMG", "BoomerAMG AIR 1", "BoomerAMG AIR 1.5", "BoomerAMG AIR 2", "ILU(0)"]


def pointer(array):
    """The address of the first entry."""
    return ctypes.c_void_p(array.ctypes.data)


def points(sweeps):
    """Sweeps over C or F points of the four parts of a cycle, in memory that hypre frees."""
    malloc = ctypes.CDLL(None).malloc
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    table = malloc(4 * ctypes.sizeof(ctypes.c_void_p))
    rows = (ctypes.c_void_p * 4).from_address(table)
    for k, row in enumerate(sweeps):
        rows[k] = malloc(max(4 * len(row), 4)) if row is not None else None
        for i, value in enumerate(row or []):
            ctypes.c_int.from_address(rows[k] + 4 * i).value = value
    return ctypes.c_void_p(table)


def run(method, a, b, send):
    """Set up and solve with one method."""
    hypre = ctypes.CDLL(path)
    hypre.HYPRE_Initialize()
    n = a.shape[0]
    number = ctypes.c_double
    rows = numpy.arange(n, dtype="i4")
    last = ctypes.c_int(n - 1)

    def vector(values):
        made, inner = ctypes.c_void_p(), ctypes.c_void_p()
        hypre.HYPRE_IJVectorCreate(0, 0, last, ctypes.byref(made))
        hypre.HYPRE_IJVectorSetObjectType(made, 5555)
        hypre.HYPRE_IJVectorInitialize(made)
        hypre.HYPRE_IJVectorSetValues(made, n, pointer(rows), pointer(values))
        hypre.HYPRE_IJVectorAssemble(made)
        hypre.HYPRE_IJVectorGetObject(made, ctypes.byref(inner))
        return made, inner

    made, matrix = ctypes.c_void_p(), ctypes.c_void_p()
    hypre.HYPRE_IJMatrixCreate(0, 0, last, 0, last, ctypes.byref(made))
    hypre.HYPRE_IJMatrixSetObjectType(made, 5555)
    counts = numpy.diff(a.indptr).astype("i4")
    columns, values = a.indices.astype("i4"), a.data.astype("f8")
    hypre.HYPRE_IJMatrixSetRowSizes(made, pointer(counts))
    hypre.HYPRE_IJMatrixInitialize(made)
    hypre.HYPRE_IJMatrixSetValues(made, n, pointer(counts), pointer(rows), pointer(columns), pointer(values))
    hypre.HYPRE_IJMatrixAssemble(made)
    hypre.HYPRE_IJMatrixGetObject(made, ctypes.byref(matrix))
    right, f = vector(b)
    solution, x = vector(numpy.zeros(n))

    solver, amg = ctypes.c_void_p(), ctypes.c_void_p()
    hypre.HYPRE_ParCSRGMRESCreate(0, ctypes.byref(solver))
    hypre.HYPRE_GMRESSetKDim(solver, 100)
    hypre.HYPRE_GMRESSetMaxIter(solver, 500)
    hypre.HYPRE_GMRESSetTol(solver, number(tolerance))
    if method == "ILU(0)":
        hypre.HYPRE_ILUCreate(ctypes.byref(amg))
        hypre.HYPRE_ILUSetTol(amg, number(0))
        hypre.HYPRE_ILUSetMaxIter(amg, 1)
        precondition, setup = hypre.HYPRE_ILUSolve, hypre.HYPRE_ILUSetup
    else:
        hypre.HYPRE_BoomerAMGCreate(ctypes.byref(amg))
        hypre.HYPRE_BoomerAMGSetTol(amg, number(0))
        hypre.HYPRE_BoomerAMGSetMaxIter(amg, 1)
        hypre.HYPRE_BoomerAMGSetStrongThreshold(amg, number(0.25))
        precondition, setup = hypre.HYPRE_BoomerAMGSolve, hypre.HYPRE_BoomerAMGSetup
    if "AIR" in method:
        # The settings of hypre's test driver for `-AIR`: no sweep down, F F C up, one-point interpolation.
        hypre.HYPRE_BoomerAMGSetRestriction(amg, {"1": 1, "1.5": 15, "2": 2}[method.split()[-1]])
        hypre.HYPRE_BoomerAMGSetInterpType(amg, 100)
        hypre.HYPRE_BoomerAMGSetRelaxType(amg, 0)
        hypre.HYPRE_BoomerAMGSetGridRelaxPoints(amg, points([None, [], [-1, -1, 1], [0]]))
        hypre.HYPRE_BoomerAMGSetStrongThresholdR(amg, number(0.25))
        hypre.HYPRE_BoomerAMGSetFilterThresholdR(amg, number(0))
        hypre.HYPRE_BoomerAMGSetMaxCoarseSize(amg, 20)
        for part, sweeps in ((1, 0), (2, 3), (3, 1)):
            hypre.HYPRE_BoomerAMGSetCycleNumSweeps(amg, sweeps, part)
    hypre.HYPRE_GMRESSetPrecond(solver, precondition, setup, amg)
    begun = time.perf_counter()
    hypre.HYPRE_ParCSRGMRESSetup(solver, matrix, f, x)
    prepared = time.perf_counter()
    hypre.HYPRE_ParCSRGMRESSolve(solver, matrix, f, x)
    solved = time.perf_counter()
    iterations = ctypes.c_int()
    hypre.HYPRE_GMRESGetNumIterations(solver, ctypes.byref(iterations))
    found = numpy.zeros(n)
    hypre.HYPRE_IJVectorGetValues(solution, n, pointer(rows), pointer(found))
    residual = float(numpy.linalg.norm(b - a @ found) / numpy.linalg.norm(b))
    send.send({"seconds_setup": prepared - begun, "seconds_solve": solved - prepared, "iterations": iterations.value, "residual": residual})


if __name__ == "__main__":
    a, b = system(nodes, diffusivity)
    a.sort_indices()
    for method in chosen or METHODS:
        # A process for each method: a failure of one, or of its limit, leaves the others.
        receive, send = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(target=run, args=(method, a, b, send))
        process.start()
        send.close()
        known = {"library": "hypre", "method": method + ", GMRES(100)", "n_rows": a.shape[0], "threads": int(threads)}
        try:
            outcome = receive.recv() if receive.poll(limit) else {"failed": f"longer than {limit} s"}
        except EOFError:
            outcome = {"failed": "the process ended"}
        process.kill()
        print(json.dumps(known | outcome), flush=True)
