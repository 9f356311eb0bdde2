"""Times the Python package beside PyAMG, SciPy and NumPy, all in one process on one thread; prints JSON.

    taskset -c 1 python bench/python/femtile_python.py [--nodes 65] [--systems 65536 256] [--rounds 5]

needs femtile, pyamg, scikit-fem and scipy. Figures are medians of the rounds, in seconds unless a name says otherwise.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import statistics
import subprocess
import sys
import time

import numpy as np
import pyamg
import scipy.sparse as sp
import skfem
from scipy.linalg import solve_banded
from skfem.helpers import dot, grad

import femtile

TOLERANCE = 1e-8


def kuhn_box(nodes: int) -> tuple[sp.csr_array, np.ndarray]:
    """−Δu + u = 1 on a cube of side 4 with natural sides, Kuhn tetrahedra, linear elements: `kuhn_box.rs`."""
    mesh = femtile.mesh.box([nodes - 1] * 3, upper=[4.0] * 3)
    basis = skfem.Basis(skfem.MeshTet(mesh.points.T, mesh.cells.T.astype(np.int64)), skfem.ElementTetP1())
    a = skfem.BilinearForm(lambda u, v, _: dot(grad(u), grad(v)) + u * v).assemble(basis)
    b = skfem.LinearForm(lambda v, _: 1.0 * v).assemble(basis)
    return sp.csr_array(a), b


def timed(rounds: int, work) -> float:
    """The median time of some work."""
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def multigrid(nodes: int, rounds: int) -> dict:
    """Set-up and solve to the same residual."""
    A, b = kuhn_box(nodes)
    of_pyamg = sp.csr_matrix(A)

    def own():
        return femtile.amg(A, device="cpu", threads=1).solve(b, tol=TOLERANCE)

    def peer():
        return pyamg.smoothed_aggregation_solver(of_pyamg).solve(b, tol=TOLERANCE, accel="cg")

    residual = [float(np.linalg.norm(b - A @ solve()) / np.linalg.norm(b)) for solve in (own, peer)]
    solver = femtile.amg(A, device="cpu", threads=1)
    pairs = [(timed(1, own), timed(1, peer)) for _ in range(rounds)]
    seconds = [statistics.median(column) for column in zip(*pairs, strict=True)]
    return {
        "rows": A.shape[0],
        "entries": A.nnz,
        "femtile": seconds[0],
        "femtile_set_up": timed(rounds, lambda: femtile.amg(A, device="cpu", threads=1)),
        "femtile_solve": timed(rounds, lambda: solver.solve(b, tol=TOLERANCE)),
        "pyamg": seconds[1],
        "speedup": seconds[1] / seconds[0],
        "true_residuals": residual,
    }


def tridiagonal(n_systems: int, n: int, rounds: int) -> dict:
    """A batch of systems, each along a contiguous line, beside both ways to call `solve_banded`."""
    rng = np.random.default_rng(1)
    a, c, d = (rng.uniform(-1, 1, (n_systems, n)) for _ in range(3))
    b = 4 + a
    out = np.empty_like(d)
    part = slice(0, max(n_systems // 64, 1))

    def looped():
        for i in range(part.stop):
            bands = np.stack([np.r_[0.0, c[i, :-1]], b[i], np.r_[a[i, 1:], 0.0]])
            solve_banded((1, 1), bands, d[i], overwrite_ab=True, check_finite=False)

    def joined():
        upper, lower = np.roll(c, 1, axis=1), np.roll(a, -1, axis=1)
        upper[:, 0] = lower[:, -1] = 0
        bands = np.stack([upper.ravel(), b.ravel(), lower.ravel()])
        return solve_banded((1, 1), bands, d.ravel(), overwrite_ab=True, check_finite=False)

    femtile.solve_tridiagonal(a, b, c, d, out=out, threads=1)
    difference = float(np.abs(out.ravel() - joined()).max())
    own = timed(rounds, lambda: femtile.solve_tridiagonal(a, b, c, d, threads=1))
    with_out = timed(rounds, lambda: femtile.solve_tridiagonal(a, b, c, d, out=out, threads=1))
    peers = {"looped": timed(1, looped) * n_systems / part.stop, "joined": timed(min(rounds, 3), joined)}
    return {
        "systems": n_systems,
        "rows": n,
        "femtile": own,
        "femtile_with_out": with_out,
        "solve_banded": peers,
        "speedup": min(peers.values()) / own,
        "largest_difference": difference,
    }


def overhead(rounds: int) -> dict:
    """Microseconds of calls with next to nothing to compute."""
    A = sp.csr_array(sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(10, 10)))
    solver, slices, x = femtile.amg(A, device="cpu", threads=1), femtile.EllWarp(A, threads=1), np.ones(10)
    ones = np.ones(10)
    calls = {
        "solve_tridiagonal": lambda: femtile.solve_tridiagonal(ones, 4 * ones, ones, ones, threads=1),
        "EllWarp @ x": lambda: slices @ x,
        "Amg.precondition": lambda: solver.precondition(x),
        "Amg.solve": lambda: solver.solve(x),
    }
    return {name: 1e6 * statistics.median(timed(1, call) for _ in range(200 * rounds)) for name, call in calls.items()}


def imports(rounds: int) -> dict:
    """Milliseconds of `import femtile` beyond `import numpy`."""

    def seconds(code: str) -> float:
        return timed(4 * rounds, lambda: subprocess.run([sys.executable, "-c", code], check=True))

    numpy, both = seconds("import numpy"), seconds("import numpy, femtile")
    return {"numpy": 1e3 * numpy, "femtile_beyond": 1e3 * (both - numpy)}


def main() -> None:
    """Runs all comparisons."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=65)
    parser.add_argument("--systems", type=int, nargs=2, default=[65536, 256])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    record = {
        "versions": {"femtile": femtile.__version__, "pyamg": pyamg.__version__, "numpy": np.__version__},
        "import_ms": imports(options.rounds),
        "overhead_us": overhead(options.rounds),
        "tridiagonal": tridiagonal(*options.systems, options.rounds),
        "multigrid": multigrid(options.nodes, options.rounds),
    }
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
