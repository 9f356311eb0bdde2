"""Times conjugate gradients of PETSc with GAMG and with hypre's BoomerAMG on a system that `femtile bench amg` wrote.

Arguments: folder with this script, file, threads, repeats, tolerance on the unpreconditioned residual relative to b.
Threads are MPI ranks, started by mpirun. Prints JSON.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import time

folder, file, threads, repeats, tolerance = sys.argv[1:]
if int(threads) > 1 and "FEMTILE_RANK_OF" not in os.environ:
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        sys.exit("there is no mpirun for more than one rank")
    # Open MPI runs as root, as in containers, only with both variables set.
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = dict(os.environ, FEMTILE_RANK_OF=threads, **root)
    script = os.path.join(folder, "petsc_amg.py")
    command = [mpirun, "-n", threads, sys.executable, script, *sys.argv[1:]]
    sys.exit(subprocess.run(command, env=environment).returncode)

import numpy

# Debian keeps the module where only the `petsc` alternative of its -dev package points.
sys.path += glob.glob("/usr/lib/petscdir/*/*-real/lib/python3/dist-packages")
import petsc4py

petsc4py.init([])
from petsc4py import PETSc

# The last two: ext+i interpolation, one level of aggressive coarsening, strength 0.5.
METHODS = [
    ("PETSc", "GAMG", {"pc_type": "gamg"}),
    ("hypre of PETSc", "BoomerAMG", {"pc_type": "hypre", "pc_hypre_type": "boomeramg"}),
    (
        "hypre of PETSc",
        "BoomerAMG HMIS",
        {
            "pc_type": "hypre",
            "pc_hypre_type": "boomeramg",
            "pc_hypre_boomeramg_coarsen_type": "HMIS",
            "pc_hypre_boomeramg_interp_type": "ext+i",
            "pc_hypre_boomeramg_agg_nl": 1,
            "pc_hypre_boomeramg_strong_threshold": 0.5,
        },
    ),
    (
        "hypre of PETSc",
        "BoomerAMG PMIS",
        {
            "pc_type": "hypre",
            "pc_hypre_type": "boomeramg",
            "pc_hypre_boomeramg_coarsen_type": "PMIS",
            "pc_hypre_boomeramg_interp_type": "ext+i",
            "pc_hypre_boomeramg_agg_nl": 1,
            "pc_hypre_boomeramg_strong_threshold": 0.5,
        },
    ),
]

version = ".".join(str(part) for part in PETSc.Sys.getVersion())
ranks, rank = PETSc.COMM_WORLD.getSize(), PETSc.COMM_WORLD.getRank()
if ranks != int(threads):
    sys.exit(f"mpirun started {ranks} ranks that know of each other, not {threads}: it is of another MPI than PETSc's")


def read():
    """This rank's rows and right side."""
    with open(file, "rb") as data:
        n_rows, n_nonzeros = (int(count) for count in numpy.fromfile(data, "<u8", 2))
        offsets = numpy.fromfile(data, "<u4", n_rows + 1)
        columns = numpy.fromfile(data, "<u4", n_nonzeros)
        values = numpy.fromfile(data, "<f8", n_nonzeros)
        rhs = numpy.fromfile(data, "<f8", n_rows)
    begin, end = (n_rows * part // ranks for part in (rank, rank + 1))
    own = slice(offsets[begin], offsets[end])
    rows = (offsets[begin : end + 1] - offsets[begin]).astype(PETSc.IntType)
    sizes = ((end - begin, n_rows), (end - begin, n_rows))
    a = PETSc.Mat().createAIJ(sizes, csr=(rows, columns[own].astype(PETSc.IntType), values[own]))
    b, x = a.createVecs()
    b.setArray(rhs[begin:end])
    return a, b, x


def measure(a, b, x, library, method, settings):
    options = PETSc.Options()
    for name, value in settings.items():
        options[name] = value
    setup, solve = [], []
    for _ in range(int(repeats)):
        ksp = PETSc.KSP().create(a.comm)
        ksp.setOperators(a)
        ksp.setType("cg")
        ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        ksp.setTolerances(rtol=float(tolerance), atol=0.0, max_it=1000)
        ksp.setFromOptions()
        PETSc.COMM_WORLD.barrier()
        begun = time.perf_counter()
        ksp.setUp()
        PETSc.COMM_WORLD.barrier()
        setup.append(time.perf_counter() - begun)
        x.set(0.0)
        begun = time.perf_counter()
        ksp.solve(b, x)
        PETSc.COMM_WORLD.barrier()
        solve.append(time.perf_counter() - begun)
        iterations = ksp.getIterationNumber()
        ksp.destroy()
    for name in settings:
        options.delValue(name)
    r = b.duplicate()
    a.mult(x, r)
    r.aypx(-1.0, b)
    return {
        "library": f"{library} {version}",
        "method": method,
        "seconds_setup": setup,
        "seconds_solve": solve,
        "iterations": iterations,
        "residual": r.norm() / b.norm(),
    }


a, b, x = read()
methods = []
for library, method, settings in METHODS:
    try:
        methods.append(measure(a, b, x, library, method, settings))
    except PETSc.Error as error:
        if rank == 0:
            print(f"{library}, {method}: {error}", file=sys.stderr)
if rank == 0:
    print(json.dumps(methods))
