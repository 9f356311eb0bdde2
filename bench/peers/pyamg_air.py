"""Times PyAMG's AIR on stabilised convection-diffusion (convection.py).

Arguments: nodes along an edge, diffusivity, tolerance relative to b. One thread. Prints JSON.
"""

import json
import sys
import time

import numpy
import pyamg

from convection import system

nodes, diffusivity, tolerance = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
a, b = system(nodes, diffusivity)
begun = time.perf_counter()
levels = pyamg.air_solver(a)
setup = time.perf_counter() - begun
residuals = []
begun = time.perf_counter()
x = levels.solve(b, tol=tolerance, maxiter=300, accel="gmres", residuals=residuals)
print(
    json.dumps(
        {
            "library": f"PyAMG {pyamg.__version__}",
            "method": "AIR, GMRES",
            "n_rows": a.shape[0],
            "seconds_setup": setup,
            "seconds_solve": time.perf_counter() - begun,
            "iterations": len(residuals) - 1,
            "residual": float(numpy.linalg.norm(b - a @ x) / numpy.linalg.norm(b)),
            "operator_complexity": float(levels.operator_complexity()),
        }
    )
)
