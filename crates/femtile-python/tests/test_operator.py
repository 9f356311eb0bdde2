"""Operators of problems on meshes against SciPy, scikit-fem and the solves of Femtile."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse.linalg as spl

import femtile


def bent(cells):
    """A square, or a box, whose cells are deformed."""
    if len(cells) == 2:
        return femtile.mesh.square(cells, cell="quadrilateral", deform=0.1)
    return femtile.mesh.box(cells, cell="hexahedron", deform=0.1)


def problem(mesh, **settings):
    made = femtile.Poisson(mesh, sigma="1 + x", reaction=0.5, source="sin(3*x)*y", **settings)
    return made.dirichlet("xmin", "1 + y").robin("ymin", 2.0, 3.0)


def dense(operator):
    return operator @ np.eye(operator.shape[0])


@pytest.mark.parametrize("cells", [(3, 2), (2, 2, 2)])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_operators_equal_the_assembled_matrix(cells, degree):
    made = problem(bent(cells), degree=degree)
    free, matrix = made.operator("matrix-free"), made.operator("assembled")
    assert free.format == "matrix-free" and matrix.format != "matrix-free"
    A = dense(free)
    assert np.allclose(A, dense(matrix), atol=1e-11) and np.allclose(A, A.T, atol=1e-11)
    assert np.allclose(free.diagonal(), A.diagonal()) and np.allclose(matrix.diagonal(), A.diagonal())
    assert np.allclose(free.rhs, matrix.rhs, atol=1e-12)
    assert np.linalg.eigvalsh(A).min() > 0


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("method", [spl.cg, femtile.cg])
def test_conjugate_gradients_of_scipy_and_of_femtile_solve_to_the_answer_of_solve(degree, method):
    made = problem(bent((6, 5)), degree=degree)
    A = made.operator()
    M = spl.LinearOperator(A.shape, matvec=lambda r, d=A.diagonal(): r / d)
    w, info = method(A, A.rhs, rtol=1e-12, M=M)
    expected = made.solve(tolerance=1e-12)
    found = A.solution(w)
    assert info == 0 and np.array_equal(found.mesh.points, expected.mesh.points)
    assert np.allclose(found.fields["u"], expected.fields["u"], atol=1e-9)


def test_triangles_have_the_matrix_of_scikit_fem():
    skfem = pytest.importorskip("skfem")
    from skfem.models.poisson import laplace, unit_load

    mesh = femtile.mesh.square([5, 4])
    A = femtile.Poisson(mesh, source="x - 0.5").operator()
    basis = skfem.Basis(skfem.MeshTri(mesh.points[:, :2].T.copy(), mesh.cells.T.astype(np.int64)), skfem.ElementTriP1())
    assert np.allclose(dense(A), laplace.assemble(basis).toarray(), atol=1e-12)
    assert A.is_pure_neumann and np.allclose(A @ np.ones(A.shape[1]), 0, atol=1e-12)
    held = femtile.Poisson(mesh, source=1.0).dirichlet("all", 0.0).operator()
    free = held.rhs != 0
    assert np.allclose(held.rhs[free], unit_load.assemble(basis)[free])


def test_a_free_constant_is_removed():
    flux = femtile.Poisson(bent((4, 4)), degree=2).neumann("xmin", 1.0).neumann("xmax", -1.0)
    A = flux.operator()
    w, info = femtile.cg(A, A.rhs, rtol=1e-12)
    assert info == 0 and A.is_pure_neumann
    expected = flux.solve(tolerance=1e-12).fields["u"]
    assert np.allclose(A.solution(w + 7.0).fields["u"], expected, atol=1e-9)


def test_components_alternate():
    two = femtile.Poisson(bent((4, 4)), source=1.0, degree=2, components=2).dirichlet("all", [0.0, 1.0])
    A = two.operator()
    w, info = femtile.cg(A, A.rhs, rtol=1e-12)
    u = A.solution(w).fields["u"]
    assert info == 0 and u.shape[1] == 2 and np.allclose(u, two.solve(tolerance=1e-12).fields["u"], atol=1e-9)
    assert np.allclose(u[:, 1], u[:, 0] + 1)


def test_operators_are_those_of_scipy_in_expressions():
    A = problem(bent((3, 3)), degree=2).operator()
    x = np.linspace(-1, 1, A.shape[0])
    assert isinstance(A, spl.LinearOperator) and isinstance(A, femtile.Operator)
    assert np.allclose((2 * A + A.T) @ x, 3 * (A @ x)) and np.allclose(A.dot(np.stack([x, -x], 1))[:, 1], -(A @ x))
    assert femtile.gmres(A, A.rhs, rtol=1e-8)[1] == 0


def test_operators_need_no_scipy():
    program = """
import sys
sys.modules["scipy"] = None
import femtile, numpy as np
mesh = femtile.mesh.square([4, 4], cell="quadrilateral")
A = femtile.Poisson(mesh, source=1.0, degree=2).dirichlet("all", 0.0).operator()
w, info = femtile.cg(A, A.rhs, rtol=1e-10)
assert info == 0 and np.allclose(A @ w, A.rhs) and (A @ np.eye(A.shape[0])).shape == A.shape
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_bad_arguments_are_refused_by_name():
    mesh = femtile.mesh.square([3, 3])
    made = femtile.Poisson(mesh, source=1.0).dirichlet("all", 0.0)
    A = made.operator()
    calls = {
        "x": lambda: femtile.Operator.matvec(A, np.ones(3)),
        "w": lambda: A.solution(np.ones(3)),
        "solver.operator": lambda: made.operator("matrix-free"),
        "equation.sigma": lambda: femtile.Poisson(mesh, sigma="1 + u^2").dirichlet("all", 0.0).operator(),
    }
    for argument, call in calls.items():
        with pytest.raises(femtile.Error) as caught:
            call()
        assert caught.value.argument == argument
