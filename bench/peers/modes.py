"""Times the smallest eigenvalues of a cube by scikit-fem, PyAMG and SciPy's lobpcg (modes.toml is the same problem).

-div grad u = lambda u in the unit cube, u = 0 around it, trilinear cubes. Arguments: cells along an edge, eigenvalues,
tolerance of |A x - lambda M x| relative to the largest eigenvalue times |M x|. One thread. Prints JSON.
"""

import json
import sys
import time

import numpy
import pyamg
import scipy
import skfem
from scipy.sparse.linalg import lobpcg
from skfem.models.poisson import laplace, mass

cells, count, tolerance = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
begun = time.perf_counter()
line = numpy.linspace(0, 1, cells + 1)
basis = skfem.Basis(skfem.MeshHex.init_tensor(line, line, line), skfem.ElementHex1())
free = basis.complement_dofs(basis.get_dofs())
a, m = (form.assemble(basis).tocsr()[free][:, free] for form in (laplace, mass))
assembly = time.perf_counter() - begun
begun = time.perf_counter()
levels = pyamg.smoothed_aggregation_solver(a)
setup = time.perf_counter() - begun
# As many guard vectors as Femtile takes.
start = numpy.random.default_rng(0).uniform(-1, 1, (a.shape[0], count + 2 + count // 4))
# Of a smooth function with x^T M x = 1, |M x| is about the square root of the volume of a cell; the twentieth eigenvalue of a cube
# is 14 pi^2 + rounding of the mesh.
absolute = tolerance * 14 * numpy.pi**2 * cells**-1.5
begun = time.perf_counter()
values, vectors, history = lobpcg(
    a, start, B=m, M=levels.aspreconditioner(), tol=absolute, maxiter=200, largest=False, retResidualNormsHistory=True
)
seconds = time.perf_counter() - begun
order = numpy.argsort(values)[:count]
values, vectors = values[order], vectors[:, order]
residuals = numpy.linalg.norm(a @ vectors - m @ vectors * values, axis=0) / (
    values[-1] * numpy.linalg.norm(m @ vectors, axis=0)
)
print(
    json.dumps(
        {
            "library": f"scikit-fem {skfem.__version__}, PyAMG {pyamg.__version__}, SciPy {scipy.__version__}",
            "method": "smoothed aggregation, lobpcg",
            "n_rows": a.shape[0],
            "seconds_assembly": assembly,
            "seconds_setup": setup,
            "seconds_solve": seconds,
            "iterations": len(history) - 1,
            "residual": float(residuals.max()),
            "values": values.tolist(),
        }
    )
)
