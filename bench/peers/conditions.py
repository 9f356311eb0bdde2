"""Compare conditions of docs/conditions.md with scikit-fem: values on the same meshes, and times.

    pip install ./crates/femtile-python meshio scikit-fem scipy
    python bench/peers/conditions.py
    OMP_NUM_THREADS=1 python bench/peers/conditions.py --cells 256 --program femtile

Each row is a case as a user writes it, a mesh, and the same problem by scikit-fem with the direct solver of SciPy. The data are
such that both take the same discrete equations: polynomials that all quadratures integrate exactly, or the same Gauss points. So values
differ by the tolerances alone. Prints JSON: the largest difference of u at the nodes relative to the largest value there, that of the
functionals relative to the largest of them, and seconds of CPU time. Those of scikit-fem are from the mesh to u, those of Femtile
in the package as well; with `--program` they are those of the whole program, which reads the mesh and writes the results.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import meshio
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
import skfem
from skfem.helpers import ddot, div, dot, grad, sym_grad

import femtile

SOLVER = """
[solver]
device = "cpu"
threads = 1
"""
LINEAR = "tolerance = 1e-12\n"
NEWTON = LINEAR + "nonlinear_tolerance = 1e-12\n"


class Answer(NamedTuple):
    """u at points, and functionals."""

    points: np.ndarray
    u: np.ndarray
    functionals: dict[str, float]


class Row(NamedTuple):
    """A condition: a mesh for a number of cells along an edge, the case without it, the answer of scikit-fem, the mesh of the case."""

    mesh: Callable[[int], skfem.Mesh]
    case: str
    peer: Callable[[skfem.Mesh], Answer]
    own_mesh: Callable[[skfem.Mesh], femtile.Mesh]


ROWS: dict[str, Row] = {}


def row(mesh, case, own_mesh=femtile.mesh.from_skfem, solver=LINEAR):
    """Add a function that solves by scikit-fem, with its case, to the rows."""

    def add(peer):
        ROWS[peer.__name__] = Row(mesh, case + SOLVER + solver, peer, own_mesh)
        return peer

    return add


def grid(kind, cells, upper):
    """A rectangle from the origin with its sides by name."""
    return kind.init_tensor(*(np.linspace(0, end, n + 1) for n, end in zip(cells, upper, strict=True))).with_defaults()


def solved(basis, A, b, values):
    """The solution with values, an array of u, on sides by name."""
    x, dofs = basis.zeros(), []
    for side, value in values.items():
        of_side = basis.get_dofs(side).all()
        x[of_side] = value(basis.doflocs[:, of_side]) if callable(value) else value
        dofs.append(of_side)
    return skfem.solve(*skfem.condense(A, b, x=x, D=np.unique(np.concatenate(dofs))))


laplace = skfem.BilinearForm(lambda u, v, w: dot(grad(u), grad(v)))


@row(
    lambda n: grid(skfem.MeshTri, [n, n // 2], [0.1, 0.05]),
    """
    [space]
    degree = 2
    [equation]
    sigma = 55.6
    constants = { eps = 0.98, s = 5.67e-8, T_out = 300 }
    initial = 1000
    [[boundary]]
    where = "left"
    dirichlet = 1000
    [[boundary]]
    where = "right"
    flux = "eps*s*(T_out^4 - u^4)"
    [[boundary]]
    where = "top"
    flux = "eps*s*(T_out^4 - u^4)"
    """,
    solver=NEWTON,
)
def radiation(mesh):
    """Newton's method, with three Gauss points on an edge."""
    basis = skfem.Basis(mesh, skfem.ElementTriP2())
    facets = np.union1d(mesh.boundaries["right"], mesh.boundaries["top"])
    sides = skfem.FacetBasis(mesh, skfem.ElementTriP2(), facets=facets, intorder=5)
    rate, cold = 0.98 * 5.67e-8, 300.0
    slope = skfem.BilinearForm(lambda u, v, w: 4 * rate * w["T"] ** 3 * u * v)
    radiated = skfem.LinearForm(lambda v, w: rate * (w["T"] ** 4 - cold**4) * v)
    A = 55.6 * laplace.assemble(basis)
    u, held = np.full(basis.N, 1000.0), basis.get_dofs("left")
    for _ in range(20):
        T = sides.interpolate(u)
        residual = A @ u + radiated.assemble(sides, T=T)
        step = skfem.solve(*skfem.condense(A + slope.assemble(sides, T=T), -residual, D=held))
        u += step
        if np.abs(step).max() < 1e-12 * np.abs(u).max():
            break
    return Answer(basis.doflocs, u, {})


@row(
    lambda n: grid(skfem.MeshQuad, [n, n], [1, 1]).with_subdomains(
        {"inclusion": lambda x: abs(x - 0.5).max(0) < 0.25, "matrix": lambda x: abs(x - 0.5).max(0) > 0.25}
    ),
    """
    [space]
    degree = 2
    [equation]
    sigma = { by_tag = { matrix = 1, inclusion = 10 } }
    [[periodic]]
    from = "left"
    to = "right"
    jump = 1
    [[periodic]]
    from = "bottom"
    to = "top"
    [[boundary]]
    nodes = "x < 1e-9 && y < 1e-9"
    dirichlet = 0
    [output]
    functionals = [{ name = "conductivity", kind = "flux", where = "right" }]
    """,
)
def periodic(mesh):
    """The periodic part w of u = x + w on a periodic mesh, from which u on the given mesh follows."""
    x, y = mesh.p
    eliminated = np.flatnonzero((x == 1) | (y == 1))
    wrapped = np.mod(mesh.p, 1)
    numbers = {tuple(point): node for node, point in enumerate(mesh.p.T)}
    kept = np.array([numbers[tuple(wrapped[:, node])] for node in eliminated])
    ring = skfem.MeshQuad1DG.periodic(mesh, eliminated, kept)
    basis = skfem.Basis(ring, skfem.ElementQuad2())
    inside = skfem.Basis(mesh, skfem.ElementQuad0()).zeros() + 1
    inside[mesh.subdomains["inclusion"]] = 10
    sigma = skfem.Basis(mesh, skfem.ElementQuad0(), quadrature=basis.quadrature).interpolate(inside)
    A = skfem.BilinearForm(lambda u, v, w: w["k"] * dot(grad(u), grad(v))).assemble(basis, k=sigma)
    b = skfem.LinearForm(lambda v, w: -w["k"] * grad(v)[0]).assemble(basis, k=sigma)
    # The basis on the given mesh has the same cells: where it has one unknown the periodic basis has it too.
    plain = skfem.Basis(mesh, skfem.ElementQuad2())
    origin = np.flatnonzero((plain.doflocs == 0).all(0))
    w = skfem.solve(*skfem.condense(A, b, D=basis.element_dofs[plain.element_dofs == origin]))
    u = plain.zeros()
    u[plain.element_dofs] = w[basis.element_dofs]
    u += plain.doflocs[0]
    at = skfem.Functional(lambda w: w["k"] * grad(w["u"])[0]).assemble(plain, k=sigma, u=plain.interpolate(u))
    return Answer(plain.doflocs, u, {"conductivity": at})


@row(
    lambda n: grid(skfem.MeshQuad, [n, n], [2, 1]).with_subdomains(
        {"copper": lambda x: x[0] < 1, "aluminium": lambda x: x[0] > 1}
    ),
    """
    [space]
    degree = 2
    [equation]
    sigma = { by_tag = { copper = 4, aluminium = 2 } }
    source = "x"
    [[boundary]]
    where = "left"
    dirichlet = 1
    [[boundary]]
    where = "right"
    dirichlet = "y^2"
    [[interface]]
    between = ["copper", "aluminium"]
    name = "contact"
    conductance = "3 + y"
    [output]
    functionals = [{ name = "through", kind = "flux", where = "contact", from = "copper" }]
    """,
)
def contact(mesh):
    """A mesh of each body, and facets of both in the same order along the contact."""
    bodies = [mesh.restrict(name) for name in ("copper", "aluminium")]
    bases, facets = [], []
    for body in bodies:
        bases.append(skfem.Basis(body, skfem.ElementQuad2()))
        touching = body.facets_satisfying(lambda x: np.abs(x[0] - 1) < 1e-9, boundaries_only=True)
        touching = touching[np.argsort(body.p[1, body.facets[:, touching]].mean(0))]
        facets.append(skfem.FacetBasis(body, skfem.ElementQuad2(), facets=touching))
    mass = skfem.BilinearForm(lambda u, v, w: (3 + w.x[1]) * u * v)
    blocks = [[(1 if i == j else -1) * mass.assemble(facets[j], facets[i]) for j in range(2)] for i in range(2)]
    for i, k in enumerate([4, 2]):
        blocks[i][i] = blocks[i][i] + k * laplace.assemble(bases[i])
    load = skfem.LinearForm(lambda v, w: w.x[0] * v)
    n = bases[0].N
    b = np.concatenate([load.assemble(basis) for basis in bases])
    given = np.concatenate([basis.zeros() for basis in bases])
    left, right = bases[0].get_dofs("left").all(), bases[1].get_dofs("right").all()
    given[left], given[n + right] = 1, bases[1].doflocs[1, right] ** 2
    u = skfem.solve(*skfem.condense(sp.bmat(blocks, "csr"), b, x=given, D=np.concatenate([left, n + right])))
    jump = skfem.Functional(lambda w: (3 + w.x[1]) * (w["one"] - w["other"]))
    through = jump.assemble(facets[0], one=facets[0].interpolate(u[:n]), other=facets[1].interpolate(u[n:]))
    return Answer(np.hstack([basis.doflocs for basis in bases]), u, {"through": through})


@row(
    lambda n: grid(skfem.MeshTri, [n, n], [1, 1])
    .with_boundaries({"foil": lambda x: abs(x[0] - 0.5) < 1e-9}, boundaries_only=False)
    .with_subdomains({"glass": lambda x: x[0] < 0.5, "foam": lambda x: x[0] > 0.5}),
    """
    [space]
    degree = 2
    [equation]
    sigma = { by_tag = { glass = 3, foam = 1 } }
    [[boundary]]
    where = "left"
    dirichlet = "y"
    [[boundary]]
    where = "right"
    dirichlet = 0
    [[boundary]]
    where = "foil"
    neumann = "10 + y"
    [output]
    functionals = [{ name = "into_glass", kind = "flux", where = "foil", from = "glass" }]
    """,
)
def inner_source(mesh):
    """A linear form on facets inside the mesh; the flux out of one side is the reaction of its cells."""
    element = skfem.ElementTriP2()
    basis, foil = skfem.Basis(mesh, element), skfem.FacetBasis(mesh, element, facets="foil")
    of_glass = 3 * laplace.assemble(skfem.Basis(mesh, element, elements="glass"))
    of_foam = laplace.assemble(skfem.Basis(mesh, element, elements="foam"))
    b = skfem.LinearForm(lambda v, w: (10 + w.x[1]) * v).assemble(foil)
    u = solved(basis, of_glass + of_foam, b, {"left": lambda x: x[1], "right": 0})
    return Answer(basis.doflocs, u, {"into_glass": -(of_glass @ u)[basis.get_dofs("foil").all()].sum()})


@row(
    lambda n: grid(skfem.MeshTri, [n, n], [1, 1]),
    """
    [space]
    degree = 2
    [equation]
    sigma = 0.02
    [[boundary]]
    where = "all"
    dirichlet = 10
    [[source]]
    point = [0.3137, 0.4142]
    total = -0.01
    """,
)
def point_source(mesh):
    """The basis at the point."""
    basis = skfem.Basis(mesh, skfem.ElementTriP2())
    b = -0.01 * basis.point_source(np.array([0.3137, 0.4142]))
    sides = dict.fromkeys(mesh.boundaries, 10)
    return Answer(basis.doflocs, solved(basis, 0.02 * laplace.assemble(basis), b, sides), {})


@row(
    lambda n: grid(skfem.MeshQuad, [n, n], [1, 2]),
    """
    [space]
    degree = 2
    axisymmetric = true
    [equation]
    sigma = 3
    lambda = 2
    source = "1 + y"
    [[boundary]]
    where = "right"
    dirichlet = 0
    [[boundary]]
    where = "top"
    neumann = "x"
    [output]
    functionals = [{ name = "content", kind = "integral" }, { name = "out", kind = "flux", where = "right" }]
    """,
)
def axisymmetric(mesh):
    """Weights 2 pi x in all forms."""
    element = skfem.ElementQuad2()
    basis, top = skfem.Basis(mesh, element, intorder=5), skfem.FacetBasis(mesh, element, facets="top", intorder=5)
    turn = 2 * np.pi
    form = skfem.BilinearForm(lambda u, v, w: turn * w.x[0] * (3 * dot(grad(u), grad(v)) + 2 * u * v))
    load = skfem.LinearForm(lambda v, w: turn * w.x[0] * (1 + w.x[1]) * v).assemble(basis)
    A, b = form.assemble(basis), load + skfem.LinearForm(lambda v, w: turn * w.x[0] ** 2 * v).assemble(top)
    u = solved(basis, A, b, {"right": 0})
    content = skfem.Functional(lambda w: turn * w.x[0] * w["u"]).assemble(basis, u=basis.interpolate(u))
    return Answer(basis.doflocs, u, {"content": content, "out": (A @ u - b)[basis.get_dofs("right").all()].sum()})


@row(
    lambda n: grid(skfem.MeshQuad, [n, n], [1, 1]).with_boundaries(
        {"shield": lambda x: (x[1] == 1) & (abs(x[0] - 0.5) < 0.25)}
    ),
    """
    [space]
    degree = 2
    [[boundary]]
    where = "left"
    dirichlet = 1
    [[boundary]]
    where = "bottom"
    dirichlet = "1 - x"
    [[boundary]]
    where = "right"
    total = -0.5
    [[boundary]]
    where = "shield"
    floating = true
    total = 0.25
    [output]
    functionals = [
        { name = "charge", kind = "flux", where = "shield" },
        { name = "potential", kind = "value_at", point = [0.5, 1] },
        { name = "out", kind = "flux", where = "right" },
    ]
    """,
)
def floating(mesh):
    """One unknown for the shield, by a matrix T that repeats it on all its nodes; the total of the right side per length."""
    basis = skfem.Basis(mesh, skfem.ElementQuad2())
    A = laplace.assemble(basis)
    b = -0.5 * skfem.LinearForm(lambda v, w: v).assemble(skfem.FacetBasis(mesh, skfem.ElementQuad2(), facets="right"))
    shield = basis.get_dofs("shield").all()
    rest = np.setdiff1d(np.arange(basis.N), shield)
    column = np.empty(basis.N, dtype=int)
    column[rest], column[shield] = np.arange(len(rest)), len(rest)
    T = sp.csr_matrix((np.ones(basis.N), (np.arange(basis.N), column)))
    right = T.T @ b
    right[-1] += 0.25
    held = np.union1d(basis.get_dofs("left").all(), basis.get_dofs("bottom").all())
    x = np.zeros(T.shape[1])
    x[column[held]] = 1 - basis.doflocs[0, held]
    u = T @ skfem.solve(*skfem.condense((T.T @ A @ T).tocsr(), right, x=x, D=column[held]))
    return Answer(basis.doflocs, u, {"charge": (A @ u - b)[shield].sum(), "potential": u[shield[0]], "out": b.sum()})


def two_blocks(n):
    """Two blocks on each other, the upper one with cells of half the size."""
    lower = grid(skfem.MeshQuad, [n, n // 2], [2, 1])
    upper = grid(skfem.MeshQuad, [2 * n, n], [2, 1]).translated((0, 1))
    return lower, upper


def joined(blocks):
    """Both as one mesh; the names of the sides of the upper one begin with `upper-`."""
    parts = [femtile.mesh.from_skfem(block) for block in blocks]
    nodes, tags = zip(*(part.facets for part in parts), strict=True)
    shift, n_tags = parts[0].n_nodes, len(parts[0].tag_names)
    upper_names = {(d, tag + n_tags): f"upper-{name}" for (d, tag), name in parts[1].tag_names.items()}
    return femtile.Mesh(
        np.vstack([part.points for part in parts]),
        np.vstack([parts[0].cells, parts[1].cells + shift]),
        "quadrilateral",
        facets=(np.vstack([nodes[0], nodes[1] + shift]), np.concatenate([tags[0], tags[1] + n_tags])),
        tag_names=parts[0].tag_names | upper_names,
    )


@row(
    two_blocks,
    """
    [space]
    degree = 2
    [equation]
    sigma = 2
    source = "x*y"
    [[boundary]]
    where = "bottom"
    dirichlet = "x"
    [[boundary]]
    where = "upper-right"
    neumann = 1
    [[tie]]
    from = "top"
    to = "upper-bottom"
    """,
    joined,
)
def tie(blocks):
    """The nodes of the finer side have the values of the basis of the coarser one there."""
    bases = [skfem.Basis(mesh, skfem.ElementQuad2()) for mesh in blocks]
    A = 2 * sp.block_diag([laplace.assemble(basis) for basis in bases])
    load = skfem.LinearForm(lambda v, w: w.x[0] * w.x[1] * v)
    b = np.concatenate([load.assemble(basis) for basis in bases])
    n = bases[0].N
    side = skfem.FacetBasis(blocks[1], skfem.ElementQuad2(), facets="right")
    b[n:] += skfem.LinearForm(lambda v, w: v).assemble(side)
    tied = bases[1].get_dofs("bottom").all()
    rest = np.setdiff1d(np.arange(bases[1].N), tied)
    values = bases[0].probes(bases[1].doflocs[:, tied] - [[0], [1e-14]])
    T = sp.lil_matrix((n + bases[1].N, n + len(rest)))
    T[:n, :n] = sp.eye(n)
    T[n + rest, n + np.arange(len(rest))] = 1
    T[n + tied, :n] = values
    T = T.tocsr()
    held = bases[0].get_dofs("bottom").all()
    x = np.zeros(T.shape[1])
    x[held] = bases[0].doflocs[0, held]
    u = T @ skfem.solve(*skfem.condense((T.T @ A @ T).tocsr(), T.T @ b, x=x, D=held))
    return Answer(np.hstack([basis.doflocs for basis in bases]), u, {})




def bent(plane):
    """The plane sheet bent around half a circle: its cells stay flat and keep their lengths."""
    flat = femtile.mesh.from_skfem(plane)
    lines, number = np.unique(flat.points[:, 0], return_inverse=True)
    angles = np.pi * np.arange(len(lines)) / (len(lines) - 1)
    radius = (lines[1] - lines[0]) / (2 * np.sin(angles[1] / 2))
    points = np.stack([radius * np.cos(angles)[number], radius * np.sin(angles)[number], flat.points[:, 1]], 1)
    return femtile.Mesh(points, flat.cells, "quadrilateral", facets=flat.facets, tag_names=flat.tag_names)


@row(
    lambda n: grid(skfem.MeshQuad, [n, n], [3, 1]),
    """
    [space]
    degree = 2
    thickness = "1 + z"
    [equation]
    sigma = 2
    source = "z"
    [[boundary]]
    where = "left"
    dirichlet = "z^2"
    [[boundary]]
    where = "right"
    neumann = 1
    [output]
    functionals = [{ name = "content", kind = "integral" }]
    """,
    bent,
)
def surface(mesh):
    """The sheet before it is bent, as scikit-fem has no surfaces in space; z is y there."""
    element = skfem.ElementQuad2()
    basis = skfem.Basis(mesh, element)
    A = skfem.BilinearForm(lambda u, v, w: 2 * (1 + w.x[1]) * dot(grad(u), grad(v))).assemble(basis)
    b = skfem.LinearForm(lambda v, w: (1 + w.x[1]) * w.x[1] * v).assemble(basis)
    b += skfem.LinearForm(lambda v, w: (1 + w.x[1]) * v).assemble(skfem.FacetBasis(mesh, element, facets="right"))
    u = solved(basis, A, b, {"left": lambda x: x[1] ** 2})
    content = skfem.Functional(lambda w: (1 + w.x[1]) * w["u"]).assemble(basis, u=basis.interpolate(u))
    lines, number = np.unique(np.round(basis.doflocs[0], 9), return_inverse=True)
    # Lines of nodes, and lines in the middle of cells between them.
    angles = np.pi * np.arange(0, len(lines), 2) / (len(lines) - 1)
    radius = lines[2] / (2 * np.sin(angles[1] / 2))
    on_circle = radius * np.stack([np.cos(angles), np.sin(angles)])
    at = np.empty((2, len(lines)))
    at[:, ::2], at[:, 1::2] = on_circle, (on_circle[:, 1:] + on_circle[:, :-1]) / 2
    return Answer(np.vstack([at[:, number], basis.doflocs[1]]), u, {"content": content})


@row(
    lambda n: grid(skfem.MeshQuad, [n, 2], [2, 0.1]),
    """
    [unknown]
    u = {}
    [equation]
    kind = "form"
    define = "heat = u + (1 + tanh((u - 0.5)/0.2))/2"
    enthalpy = "heat"
    flux = "grad(u)"
    [[boundary]]
    where = "left"
    dirichlet = 1
    [time]
    method = "implicit-euler"
    end = 0.5
    steps = 20
    """,
    solver=NEWTON,
)
def phase_change(mesh):
    """Implicit Euler with Newton's method in each step, two Gauss points along an axis."""
    basis = skfem.Basis(mesh, skfem.ElementQuad1(), intorder=3)
    stiffness, held, step = laplace.assemble(basis), basis.get_dofs("left"), 0.5 / 20
    heat = skfem.LinearForm(lambda v, w: (w["u"] + (1 + np.tanh((w["u"] - 0.5) / 0.2)) / 2) * v)
    capacity = skfem.BilinearForm(lambda u, v, w: (1 + 2.5 / np.cosh((w["u"] - 0.5) / 0.2) ** 2) * u * v)
    u = basis.zeros()
    u[held.all()] = 1
    for _ in range(20):
        before = heat.assemble(basis, u=basis.interpolate(u))
        for _ in range(30):
            at = basis.interpolate(u)
            residual = heat.assemble(basis, u=at) - before + step * stiffness @ u
            tangent = capacity.assemble(basis, u=at) + step * stiffness
            change = skfem.solve(*skfem.condense(tangent, -residual, D=held))
            u += change
            if np.abs(change).max() < 1e-12:
                break
    return Answer(basis.doflocs, u, {})


def strain_energy(young, poisson):
    """The form of plane strain."""
    mu, lame = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    return skfem.BilinearForm(lambda u, v, w: 2 * mu * ddot(sym_grad(u), sym_grad(v)) + lame * div(u) * div(v))


@row(
    lambda n: grid(skfem.MeshTri, [2 * n, n], [2, 1]),
    """
    [space]
    degree = 2
    [equation]
    kind = "elasticity"
    young = 200
    poisson = 0.3
    source = [0, -1]
    [[boundary]]
    where = "left"
    dirichlet = [0, 0]
    [[boundary]]
    where = "top"
    traction = [0, "-x"]
    [[boundary]]
    where = "right"
    total = [3, 1]
    """,
)
def elasticity(mesh):
    """Plane strain with tractions, and a force that is spread over a side of length 1."""
    element = skfem.ElementVector(skfem.ElementTriP2())
    basis = skfem.Basis(mesh, element)
    b = skfem.LinearForm(lambda v, w: -v[1]).assemble(basis)
    b += skfem.LinearForm(lambda v, w: -w.x[0] * v[1]).assemble(skfem.FacetBasis(mesh, element, facets="top"))
    b += skfem.LinearForm(lambda v, w: 3 * v[0] + v[1]).assemble(skfem.FacetBasis(mesh, element, facets="right"))
    u = solved(basis, strain_energy(200, 0.3).assemble(basis), b, {"left": 0})
    dofs = [np.concatenate([of[i::2].ravel() for of in (basis.nodal_dofs, basis.facet_dofs)]) for i in range(2)]
    return Answer(basis.doflocs[:, dofs[0]], np.stack([u[of] for of in dofs], 1), {})


N_MODES = 8


@row(
    lambda n: grid(skfem.MeshQuad, [4 * n, n], [4, 1]),
    f"""
    [space]
    degree = 2
    [equation]
    kind = "elasticity"
    young = 200
    poisson = 0.3
    density = 2
    [[boundary]]
    where = "left"
    dirichlet = [0, 0]
    [modes]
    count = {N_MODES}
    """,
    # Eigenvalues have the square of the error of their functions.
    solver="tolerance = 1e-7\n",
)
def frequencies(mesh):
    """The smallest eigenvalues by the Lanczos method of ARPACK about zero."""
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementQuad2()))
    A = strain_energy(200, 0.3).assemble(basis)
    M = skfem.BilinearForm(lambda u, v, w: 2 * dot(u, v)).assemble(basis)
    free = basis.complement_dofs(basis.get_dofs("left"))
    A, M = (matrix.tocsc()[free][:, free] for matrix in (A, M))
    found = np.sort(spl.eigsh(A, N_MODES, M, sigma=0, return_eigenvectors=False))
    return Answer(np.empty((2, 0)), np.empty(0), {f"mode_{i + 1}": value for i, value in enumerate(found)})


def by_package(found, mesh):
    """Solve a row by the Python package."""
    begun = time.process_time()
    solution = femtile.solve(tomllib.loads(found.case), mesh)
    seconds = time.process_time() - begun
    return solution.report, solution.mesh.points, solution.fields, seconds


def of_children():
    """CPU time of the programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_program(program):
    """Return a function that solves a row by the program, from a mesh file to the results."""

    def solve(found, mesh):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            mesh.write(folder / "mesh.msh")
            (folder / "case.toml").write_text('[mesh]\nfile = "mesh.msh"\n' + found.case, encoding="utf-8")
            command = [program, "solve", folder / "case.toml", "--output", folder / "out"]
            begun = of_children()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = of_children() - begun
            report = json.loads((folder / "out/report.json").read_text(encoding="utf-8"))
            file = folder / "out/solution.vtu"
            # Version 2.2 has another order of nodes of hexahedra than 1.0, the last version that meshio reads.
            file.write_bytes(file.read_bytes().replace(b'version="2.2"', b'version="1.0"', 1))
            written = meshio.read(file)
            return report, written.points, written.point_data, seconds

    return solve


def sorted_values(points, u):
    """Values by the place of their points; at one place, as on both sides of a contact, by value."""
    columns = u.reshape(len(points), -1)
    return columns[np.lexsort([*columns.T[::-1], *np.round(points.T, 8)])]


def compare(found, cells, solve=by_package):
    """Solve a row in both ways: differences and seconds."""
    mesh = found.mesh(cells)
    begun = time.process_time()
    expected = found.peer(mesh)
    seconds = time.process_time() - begun
    report, points, fields, own_seconds = solve(found, found.own_mesh(mesh))
    assert report["solve"]["stop"] == "converged", report["solve"]
    result: dict[str, Any] = {"seconds_scikit_fem": seconds, "seconds_femtile": own_seconds}
    if expected.u.size:
        theirs = sorted_values(expected.points.T, expected.u)
        own = sorted_values(points[:, : len(expected.points)], fields["u"])[:, : theirs.shape[1]]
        assert own.shape == theirs.shape, (own.shape, theirs.shape)
        result |= {"n_unknowns": own.size, "difference": float(np.abs(own - theirs).max() / np.abs(theirs).max())}
    modes = enumerate(report.get("modes", []), start=1)
    functionals = report["functionals"] | {f"mode_{i}": mode["eigenvalue"] for i, mode in modes}
    assert functionals.keys() == expected.functionals.keys(), (functionals, expected.functionals)
    if functionals:
        largest = max(map(abs, expected.functionals.values()))
        differences = (abs(functionals[name] - value) for name, value in expected.functionals.items())
        result["difference_functionals"] = float(max(differences) / largest)
    return result


def main():
    """Compare all rows, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--cells", type=int, default=12, help="cells along an edge, a multiple of four")
    parser.add_argument("--program", help="the program in place of the package")
    given = parser.parse_args()
    solve = by_program(given.program) if given.program else by_package
    print(json.dumps({name: compare(ROWS[name], given.cells, solve) for name in given.rows}, indent=1))


if __name__ == "__main__":
    main()
