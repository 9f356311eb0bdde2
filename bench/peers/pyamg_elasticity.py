"""Compares multigrid of displacements with PyAMG on meshes of tetrahedra: iterations of conjugate gradients to 1e-8.

Arguments: the program `femtile`, the degree (1 or 2), mesh files (.node with .ele beside it, or what meshio reads). The body has E = 1
and ν = 0.3, is held where the longest axis is within 5 % of its lower end, and hangs under its weight. scikit-fem assembles the matrix,
which both solve with the rigid motions as near-nullspace: `femtile solve-matrix`, which makes no level of degree 1, and PyAMG with its
defaults and with energy-minimizing prolongators. Prints JSON: mesh, unknowns, iterations and processor seconds.
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import meshio
import numpy
import pyamg
import scipy.sparse
import skfem
from skfem.helpers import ddot, eye, sym_grad, trace

YOUNG, POISSON, TOLERANCE = 1.0, 0.3, 1e-8
METHODS = {
    "PyAMG, defaults": {},
    "PyAMG, energy-minimizing": {"smooth": "energy"},
}


def numbers_of(path):
    """The rows of a TetGen file without comments."""
    with open(path, errors="replace") as lines:
        rows = (line.split("#")[0].split() for line in lines)
        return [row for row in rows if row]


def read(path):
    """Points and tetrahedra of the largest connected part, the tetrahedra with positive volumes."""
    if path.suffix == ".node":
        rows = numbers_of(path)
        nodes = rows[1:]
        cells = numbers_of(path.with_suffix(".ele"))
        points = numpy.array([row[1:4] for row in nodes[: int(rows[0][0])]], dtype=float)
        tetrahedra = numpy.array([row[1:5] for row in cells[1 : 1 + int(cells[0][0])]], dtype=int)
        tetrahedra -= int(nodes[0][0])
    else:
        mesh = meshio.read(path)
        points, tetrahedra = mesh.points[:, :3], mesh.cells_dict["tetra"]
    edges = points[tetrahedra[:, 1:]] - points[tetrahedra[:, :1]]
    volumes = numpy.linalg.det(edges)
    tetrahedra = tetrahedra[volumes != 0].copy()
    turned = volumes[volumes != 0] < 0
    tetrahedra[turned, 2:] = tetrahedra[turned, :1:-1]
    first, other = numpy.repeat(tetrahedra[:, 0], 3), tetrahedra[:, 1:].ravel()
    graph = scipy.sparse.coo_matrix((numpy.ones(len(first)), (first, other)), shape=(len(points),) * 2)
    part = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    tetrahedra = tetrahedra[part[tetrahedra[:, 0]] == numpy.bincount(part[tetrahedra[:, 0]]).argmax()]
    used, numbers = numpy.unique(tetrahedra, return_inverse=True)
    return points[used], numbers.reshape(-1, 4)


def system(points, tetrahedra, degree):
    """Matrix, right side and rigid motions, the rows of held nodes replaced by those of the identity."""
    mesh = skfem.MeshTet(points.T.copy(), tetrahedra.T.copy())
    element = {1: skfem.ElementTetP1, 2: skfem.ElementTetP2}[degree]
    basis = skfem.Basis(mesh, skfem.ElementVector(element()), intorder=max(1, 2 * degree - 1))
    first = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
    shear = YOUNG / (2 * (1 + POISSON))
    extents = numpy.ptp(points, axis=0)
    down, along = extents.argmin(), extents.argmax()

    @skfem.BilinearForm
    def stiffness(u, v, _):
        strain = sym_grad(u)
        return ddot(2 * shear * strain + first * eye(trace(strain), 3), sym_grad(v))

    @skfem.LinearForm
    def weight(v, _):
        return -v[down]

    a, b = stiffness.assemble(basis), weight.assemble(basis)
    nodes = basis.doflocs[:, ::3].T
    held = numpy.repeat(nodes[:, along] <= nodes[:, along].min() + 0.05 * extents[along], 3)
    x, y, z = ((nodes - nodes.mean(axis=0)) / extents.max()).T
    motions = numpy.zeros((basis.N, 6))
    for axis in range(3):
        motions[axis::3, axis] = 1
    motions[1::3, 3], motions[2::3, 3] = -z, y
    motions[0::3, 4], motions[2::3, 4] = z, -x
    motions[0::3, 5], motions[1::3, 5] = -y, x
    motions[held], b[held] = 0, 0
    free = scipy.sparse.diags((~held).astype(float))
    a = (free @ a @ free + scipy.sparse.diags(held * numpy.median(a.diagonal()))).tocsr()
    a.sort_indices()
    return a, b, motions


def seconds_of_children():
    """Processor seconds of all programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def of_femtile(program, a, b, motions):
    """Iterations and processor seconds of `femtile solve-matrix`, reading of the files included."""
    with tempfile.TemporaryDirectory() as folder:
        matrix, right, near, report, x = (
            str(pathlib.Path(folder, name)) for name in ("a.npz", "b.npy", "near.npy", "report.json", "x.npy")
        )
        scipy.sparse.save_npz(matrix, a, compressed=False)
        numpy.save(right, b)
        numpy.save(near, motions)
        options = ["--block-size", "3", "--near-nullspace", near, "--preconditioner", "amg", "--device", "cpu"]
        options += ["--tolerance", str(TOLERANCE), "--json", report, "--quiet", "-o", x]
        before = seconds_of_children()
        subprocess.run([program, "solve-matrix", matrix, right, *options], check=True)
        seconds = seconds_of_children() - before
        with open(report) as text:
            systems = json.load(text)
        residual = numpy.linalg.norm(b - a @ numpy.load(x).ravel()) / numpy.linalg.norm(b)
    return {"iterations": iterations_in(systems), "seconds": seconds, "residual": residual}


def iterations_in(report):
    """The first number of iterations in a report."""
    if isinstance(report, dict):
        found = report.get("iterations")
        if isinstance(found, int):
            return found
        report = list(report.values())
    if isinstance(report, list):
        return next((n for n in map(iterations_in, report) if n is not None), None)
    return None


def of_pyamg(a, b, motions, options):
    """Iterations and processor seconds of set-up and solve."""
    begun = time.process_time()
    levels = pyamg.smoothed_aggregation_solver(a.tobsr((3, 3)), B=motions, symmetry="symmetric", **options)
    residuals = []
    x = levels.solve(b, tol=TOLERANCE, maxiter=3000, accel="cg", residuals=residuals)
    return {
        "iterations": len(residuals) - 1,
        "seconds": time.process_time() - begun,
        "residual": numpy.linalg.norm(b - a @ x) / numpy.linalg.norm(b),
    }


def main():
    program, degree, *files = sys.argv[1:]
    results = []
    for path in map(pathlib.Path, files):
        a, b, motions = system(*read(path), int(degree))
        of_mesh = {"mesh": path.stem, "degree": int(degree), "unknowns": a.shape[0]}
        of_mesh["Femtile"] = of_femtile(program, a, b, motions)
        for name, options in METHODS.items():
            of_mesh[name] = of_pyamg(a, b, motions, options)
        results.append(of_mesh)
    print(json.dumps(results, indent=1))


main()
