"""Finite-element solves that keep their data in small tiles of fast memory.

For matrices of SciPy: `amg`, `cg`, `gmres`, `EllWarp`; for batches of tridiagonal systems: `solve_tridiagonal`,
`solve_block_tridiagonal`; for equations on meshes: `solve`, `study`, `frames`, `Poisson`, `Elasticity`,
`ConvectionDiffusion`, `Form`, `check` and the module `mesh`; for gradients in PyTorch and JAX the module `autodiff`.

Examples
--------
>>> import femtile
>>> solution = femtile.Poisson(femtile.mesh.square([8, 8]), source=1.0).dirichlet("all", 0.0).solve()
>>> round(float(solution.fields["u"].max()), 3)
0.073
"""

from . import autodiff, mesh
from ._amg import Amg, Level, amg
from ._case import Frames, frames, schema, solve, study
from ._convection import ConvectionDiffusion
from ._elasticity import Elasticity
from ._ell_warp import EllWarp
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    CaseError,
    ConvergenceWarning,
    CopyWarning,
    DeviceError,
    Error,
    MeshError,
    NotDefiniteError,
    SingularError,
)
from ._femtile import __version__
from ._form import Form
from ._krylov import cg, gmres
from ._operator import Operator
from ._outcome import Outcome
from ._poisson import Poisson
from ._solution import Solution
from ._tridiagonal import solve_block_tridiagonal, solve_tridiagonal
from .mesh import Mesh, check

__all__ = [
    "Amg",
    "ArgumentError",
    "ArgumentTypeError",
    "CaseError",
    "ConvectionDiffusion",
    "ConvergenceWarning",
    "CopyWarning",
    "DeviceError",
    "Elasticity",
    "EllWarp",
    "Error",
    "Form",
    "Frames",
    "Level",
    "Mesh",
    "MeshError",
    "NotDefiniteError",
    "Operator",
    "Outcome",
    "Poisson",
    "SingularError",
    "Solution",
    "__version__",
    "amg",
    "autodiff",
    "cg",
    "check",
    "frames",
    "gmres",
    "mesh",
    "schema",
    "solve",
    "solve_block_tridiagonal",
    "solve_tridiagonal",
    "study",
]
