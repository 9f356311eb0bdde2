"""Elasticity and convection–diffusion: beams, exact solutions, scikit-fem, errors."""

import numpy as np
import pytest

import femtile


def beam(cell, cells, degree, **settings):
    """A beam of length 10 and a square section of side 1, clamped at x = 0."""
    mesh = femtile.mesh.box(cells, cell=cell, upper=[10, 1, 1])
    return femtile.Elasticity(mesh, young=1000, degree=degree, **settings).dirichlet("xmin", [0, 0, 0])


@pytest.mark.parametrize(
    ("cell", "cells", "degree", "poisson", "within"),
    [
        ("hexahedron", [10, 2, 2], 2, 0.0, 0.003),
        ("hexahedron", [8, 1, 1], 3, 0.3, 0.015),
        ("tetrahedron", [12, 2, 2], 2, 0.0, 0.01),
    ],
)
def test_a_beam_bends_as_that_of_timoshenko(cell, cells, degree, poisson, within):
    solution = beam(cell, cells, degree, poisson=poisson).traction("xmax", [0, 0, -1]).solve(device="cpu")
    shear, kappa = 1000 / (2 * (1 + poisson)), 10 * (1 + poisson) / (12 + 11 * poisson)
    expected = 1000 / (3 * 1000 / 12) + 10 / (kappa * shear)
    tip = solution.value_at([10, 0.5, 0.5])
    assert solution.has_converged and solution.report["solve"]["preconditioner"] == "amg"
    assert tip.shape == (3,) and tip[2] == pytest.approx(-expected, rel=within) and abs(tip[1]) < 0.01
    assert solution.u.shape == (len(solution.mesh.points), 3) and solution.report["space"]["degree"] == degree
    # The largest bending stress is M / W = 10 · 6 at the clamp; half of it in the middle of the length.
    assert solution.value_at([5, 0.5, 1.0], "stress")[0] == pytest.approx(30, rel=0.05)
    assert solution.value_at([5, 0.5, 1.0], "von_mises") == pytest.approx(30, rel=0.05)


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_plate_is_pulled_and_has_two_components(cell, degree):
    mesh = femtile.mesh.square([4, 3], cell=cell)
    plate = femtile.Elasticity(mesh, young=100, poisson=0.2, plane="stress", degree=degree)
    plate = plate.dirichlet("xmin", [0, "free"]).dirichlet_at_nodes("x < 1e-9 && y < 1e-9", ["free", 0])
    solution = plate.pressure("xmax", -2).solve(tolerance=1e-12)
    assert np.allclose(solution.u, solution.mesh.points[:, :2] * [0.02, -0.004], atol=1e-9)
    assert solution.fields["u"].shape[1] == 3 and not solution.fields["u"][:, 2].any()
    assert np.allclose(solution.fields["stress"], [2, 0, 0, 0, 0, 0], atol=1e-7)
    strain = femtile.Elasticity(mesh, 100, 0.2).dirichlet("all", ["1e-3*x", 0]).solve().fields["stress"]
    assert np.allclose(strain[:, 2], 0.2 / 1.2 / 0.6 * 0.1)


@pytest.mark.parametrize(("cell", "degree"), [("tetrahedron", 2), ("tetrahedron", 3), ("hexahedron", 2)])
def test_a_manufactured_displacement_is_reproduced(cell, degree):
    # u = (x², 0, 0) has the stress (2μ + λ) 2x, λ 2x, λ 2x, so f = −2 (2μ + λ).
    mesh = femtile.mesh.box([2, 2, 2], cell=cell)
    mu, lame = 40.0, 40.0
    source = np.array([-2 * (2 * mu + lame), 0.0, 0.0])
    young = np.full(mesh.n_cells, 100.0)
    problem = femtile.Elasticity(mesh, young, 0.25, source, degree=degree).dirichlet("all", ["x^2", 0, 0])
    solution = problem.solve(tolerance=1e-13)
    x = solution.mesh.points[:, 0]
    assert np.allclose(solution.u[:, 0], x**2, atol=1e-9) and np.allclose(solution.u[:, 1:], 0, atol=1e-9)
    at = np.array([[0.3, 0.4, 0.9], [0.77, 0.13, 0.21]])
    assert np.allclose(solution.value_at(at)[:, 0], at[:, 0] ** 2, atol=1e-9)


def test_forces_are_given_by_cell():
    mesh = femtile.mesh.box([4, 2, 2], cell="hexahedron")
    force = np.zeros((mesh.n_cells, 3))
    force[:, 2] = -1
    settings = {"young": 10, "poisson": 0.3}
    by_cell = femtile.Elasticity(mesh, **settings, source=force).dirichlet("xmin", 0).solve(tolerance=1e-12)
    of_all = femtile.Elasticity(mesh, **settings, source=[0, 0, "-1"]).dirichlet("xmin", [0, 0, 0])
    assert np.allclose(by_cell.u, of_all.solve(tolerance=1e-12).u, atol=1e-10)


@pytest.mark.parametrize(("cell", "degree"), [("triangle", 1), ("triangle", 4), ("quadrilateral", 2)])
def test_a_boundary_layer_is_resolved(cell, degree):
    # −u″/10 + u′ = 0 has the solution (exp(10 x) − 1)/(exp(10) − 1).
    mesh = femtile.mesh.square([40, 2], cell=cell)
    problem = femtile.ConvectionDiffusion(mesh, sigma=0.1, velocity=[1, 0], degree=degree)
    solution = problem.dirichlet("xmin", 0).dirichlet("xmax", 1).solve(tolerance=1e-12)
    exact = np.expm1(10 * solution.mesh.points[:, 0]) / np.expm1(10)
    assert abs(solution.u - exact).max() < [0, 2e-2, 5e-4, 0, 1e-6][degree]
    value = solution.value_at([0.913, 0.4])
    assert float(value) == pytest.approx(np.expm1(9.13) / np.expm1(10), abs=[0, 2e-2, 5e-4, 0, 1e-6][degree])


def test_convection_has_all_kinds_of_values_and_warns_of_a_large_peclet_number():
    mesh = femtile.mesh.square([6, 5])
    wind = np.tile([2.0, -1.0], (mesh.n_cells, 1))
    settings = {"sigma": [[2, 0.5], [0.5, 1]], "reaction": 3.0, "source": "3*(x - y) + 3"}
    for velocity in (wind, np.array([2.0, -1.0]), [2, "-1 + 0*x"]):
        problem = femtile.ConvectionDiffusion(mesh, **settings, velocity=velocity)
        # The solution x − y has the flux σ(1, −1)·n = 0.5 at the upper end of y, as (0.5, 1)·(1, −1) = −0.5.
        problem = problem.dirichlet("all", "x - y").neumann("ymax", -0.5)
        x, y, _ = mesh.points.T
        assert np.allclose(problem.solve(tolerance=1e-12).u, x - y, atol=1e-9)
    fast = femtile.ConvectionDiffusion(mesh, sigma=0.01, velocity=[1, 0]).dirichlet("all", 0).solve()
    assert any("Péclet" in warning for warning in fast.report["warnings"])


def test_displacements_and_scalars_agree_with_scikit_fem():
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, div, dot, grad, sym_grad

    mesh = femtile.mesh.box([3, 2, 2], upper=[1.5, 1, 1])
    of_mesh = skfem.MeshTet(mesh.points.T, mesh.cells.T.astype(np.int64))
    basis = skfem.Basis(of_mesh, skfem.ElementVector(skfem.ElementTetP2()), intorder=6)
    form = skfem.BilinearForm(
        lambda u, v, w: (1 + w.x[0]) * (80 * ddot(sym_grad(u), sym_grad(v)) + 40 * div(u) * div(v))
    )
    load = skfem.LinearForm(lambda v, w: w.x[1] * v[0] - v[2])
    fixed = basis.get_dofs(lambda x: x[0] < 1e-9)
    u = skfem.solve(*skfem.condense(form.assemble(basis), load.assemble(basis), D=fixed))
    problem = femtile.Elasticity(mesh, "100*(1 + x)", 0.25, ["y", 0, -1], degree=2).dirichlet("xmin", 0)
    at = np.array([[0.3, 0.7, 0.2], [1.2, 0.45, 0.81], [1.5, 0.5, 0.5]])
    expected = (basis.probes(at.T) @ u).reshape(3, -1).T
    assert np.allclose(problem.solve(tolerance=1e-13).value_at(at), expected, rtol=1e-7, atol=1e-10)

    basis = skfem.Basis(of_mesh, skfem.ElementTetP2(), intorder=6)
    form = skfem.BilinearForm(
        lambda u, v, w: (1 + w.x[0]) * dot(grad(u), grad(v)) + (grad(u)[0] - w.x[0] * grad(u)[1]) * v
    )
    fixed = basis.get_dofs(lambda x: x[0] < 1e-9)
    load = skfem.LinearForm(lambda v, w: w.x[2] * v)
    u = skfem.solve(*skfem.condense(form.assemble(basis), load.assemble(basis), D=fixed))
    problem = femtile.ConvectionDiffusion(mesh, "1 + x", source="z", velocity=[1, "-x", 0], degree=2)
    found = problem.dirichlet("xmin", 0).solve(tolerance=1e-13).value_at(at)
    assert np.allclose(found, basis.probes(at.T) @ u, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
@pytest.mark.parametrize("degree", [1, 3])
def test_files_have_what_the_solution_has(cell, degree, tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = femtile.mesh.square([3, 2], cell=cell)
    problem = femtile.ConvectionDiffusion(mesh, velocity=[1, 0], degree=degree).dirichlet("all", f"x^{degree}")
    solution = problem.solve()
    solution.write_vtu(tmp_path / "u.vtu")
    number = {"triangle": 69, "quadrilateral": 70}[cell] if degree > 1 else {"triangle": 5, "quadrilateral": 9}[cell]
    assert bytes([number] * mesh.n_cells) in (tmp_path / "u.vtu").read_bytes()
    found = femtile.mesh.read(tmp_path / "u.vtu")
    assert found.n_cells == mesh.n_cells and found.order == (1 if cell == "triangle" else degree)
    assert np.allclose(found.node_fields["u"], solution.value_at(found.points))
    solution.to_meshio().write(tmp_path / "meshio.vtu")
    again = meshio.read(tmp_path / "meshio.vtu")
    assert np.array_equal(again.point_data["u"], solution.u)
    with pytest.raises(femtile.Error, match="absent"):
        solution.write_vtu(tmp_path / "absent" / "u.vtu")


def test_values_are_found_for_other_problems_and_points_outside_are_refused():
    mesh = femtile.mesh.square([8, 8], cell="quadrilateral", deform=0.05, order=2)
    solution = femtile.Poisson(mesh, degree=2).dirichlet("all", "1 + x - y").solve(tolerance=1e-12)
    found = solution.value_at([[0.1, 0.2], [0.9, 0.35]])
    assert found.shape == (2,) and np.allclose(found, [0.9, 1.55], atol=1e-8)
    assert np.allclose(solution.value_at([0.1, 0.2, 0.0]), 0.9)
    for point, message in [([2, 0], "lies in no cell"), ([1], "two or three"), (np.zeros((2, 4)), "two or three")]:
        with pytest.raises(femtile.ArgumentError, match=message) as caught:
            solution.value_at(point)
        assert caught.value.argument == "point"
    with pytest.raises(femtile.ArgumentError, match="`stress` is none of: u"):
        solution.value_at([0.1, 0.2], "stress")


@pytest.mark.parametrize(
    ("settings", "conditions", "key", "message"),
    [
        ({"young": -1}, {}, "equation.young", "must be positive"),
        ({"poisson": 0.5}, {}, "equation.poisson", "below 0.5"),
        ({"poisson": "1 + q"}, {}, "equation.poisson", "q"),
        ({"source": [0, 1]}, {}, "equation.source", "2 entries in 3 dimensions"),
        ({"source": 2}, {}, "equation.source", "an entry for each axis"),
        ({"plane": "stress"}, {}, "equation.plane", "meshes in the plane"),
        ({"degree": 7}, {}, "space.degree", "1 to 6"),
        ({}, {"dirichlet": ("xmin", [0, 0])}, "boundary[0].dirichlet", "u has 3 components"),
        ({}, {"dirichlet": ("xmin", [0, "free", "free"])}, "boundary", "free to move"),
        ({}, {"traction": ("xmax", [1, 0])}, "boundary[0].traction", "2 entries in 3 dimensions"),
        ({}, {"pressure": ("xmay", 1)}, "boundary[0].where", "xmax"),
    ],
)
def test_wrong_bodies_are_refused_by_key(settings, conditions, key, message):
    mesh = femtile.mesh.box([2, 2, 2])
    problem = femtile.Elasticity(mesh, **{"young": 1, "poisson": 0.3, **settings})
    for name, arguments in ({"dirichlet": ("xmin", 0)} if not conditions else conditions).items():
        problem = getattr(problem, name)(*arguments)
    with pytest.raises(ValueError, match=message) as caught:
        problem.solve()
    assert isinstance(caught.value, femtile.CaseError) and caught.value.argument == key


def test_wrong_arrays_and_flows_are_refused_by_name():
    mesh = femtile.mesh.square([2, 2])
    with pytest.raises(femtile.ArgumentError, match="young: 3 entries for 8 cells"):
        femtile.Elasticity(mesh, np.ones(3), 0.3)
    with pytest.raises(femtile.ArgumentError, match="reaction: 3 entries for 8 cells"):
        femtile.ConvectionDiffusion(mesh, reaction=np.ones(3), velocity=[1, 0])
    with pytest.raises(femtile.ArgumentError, match="velocity: 3 entries for 8 cells"):
        femtile.ConvectionDiffusion(mesh, velocity=np.ones((3, 2)))
    with pytest.raises(femtile.ArgumentError, match="mesh"):
        femtile.Elasticity("mesh", 1, 0.3)
    for settings, key in [({"velocity": [1, 0, 0]}, "equation.velocity"), ({"velocity": [1, 0], "sigma": -1}, None)]:
        with pytest.raises(femtile.CaseError) as caught:
            femtile.ConvectionDiffusion(mesh, **settings).dirichlet("all", 0).solve()
        assert key is None or caught.value.argument == key
    with pytest.raises(femtile.CaseError, match="gmres"):
        femtile.ConvectionDiffusion(mesh, velocity=[1, 0]).dirichlet("all", 0).solve(method="pipelined-cg")


def test_forms_of_the_user_are_solved():
    mesh = femtile.mesh.box([6, 1, 1], cell="hexahedron")
    block = femtile.Form(
        mesh,
        components="dimension",
        constants={"mu": 3.0, "lam": np.full(mesh.n_cells, 5.0)},
        define="F = identity + grad(u); J = det(F)",
        energy="mu/2*(tr(F'*F) - 3) - mu*log(J) + lam/2*log(J)^2",
        steps=2,
    )
    held = block.dirichlet("xmin", [0, "free", "free"]).dirichlet("ymin", ["free", 0, "free"])
    stretched = held.dirichlet("zmin", ["free", "free", 0]).dirichlet("xmax", ["0.5*t", "free", "free"])
    solution = stretched.solve(nonlinear_tolerance=1e-12, tolerance=1e-10)
    assert solution.has_converged and solution.report["solve"]["nonlinear"]["residuals"]
    # Uniaxial stretch: the stress across vanishes, mu (s^2 - 1) + lam log(1.5 s^2) = 0 with the stretch s across.
    s = 1.0
    for _ in range(50):
        s -= (3 * (s**2 - 1) + 5 * np.log(1.5 * s**2)) / (6 * s + 10 / s)
    assert np.allclose(solution.value_at([0.4, 0.3, 0.9]), [0.2, (s - 1) * 0.3, (s - 1) * 0.9], atol=1e-8)
    soft = stretched.with_constants(lam=0.0).solve(nonlinear_tolerance=1e-12, tolerance=1e-10)
    assert np.allclose(soft.value_at([0.4, 0.3, 0.9]), [0.2, 0, 0], atol=1e-8)
    flux = femtile.Form(mesh, flux="grad(c)", source="1", unknown="c").dirichlet("xmin", 0).flux("xmax", "-2*c")
    expected = femtile.Poisson(mesh, source=1).dirichlet("xmin", 0).robin("xmax", 2, 0).solve(tolerance=1e-12)
    assert np.allclose(flux.solve(tolerance=1e-12).u, expected.u, atol=1e-9)
    with pytest.raises(femtile.CaseError, match="unknown name `w`") as caught:
        femtile.Form(mesh, flux="grad(u)", source="w").dirichlet("xmin", 0).solve()
    assert caught.value.argument == "equation.source"
    with pytest.raises(femtile.ArgumentError, match="lam: 2 entries for 6 cells"):
        femtile.Form(mesh, flux="lam*grad(u)", constants={"lam": np.ones(2)})


def test_unknowns_have_their_names_and_degrees():
    mesh = femtile.mesh.square([6, 6])
    fluid = femtile.Form(
        mesh,
        unknown={"u": {"components": 2, "degree": 2}, "p": {}},
        constants={"mu": 2},
        flux={"u": "mu*grad(u) - p*identity"},
        source={"u": ["y^2", 0], "p": "div(u)"},
    )
    fluid = fluid.dirichlet("all", {"u": [0, 0]}).dirichlet_at_nodes("x < 1e-9 && y < 1e-9", {"p": 0})
    solution = fluid.solve(device="cpu", functionals=({"name": "mean", "kind": "mean"},))
    assert solution.has_converged and solution.fields["u"].shape[1] == 3
    # Nothing flows through the walls, so that div u is zero on average.
    assert abs(solution.report["functionals"]["mean[u[0]]"]) < 1e-3 and solution.fields["p"].max() > 0.1
    with pytest.raises(femtile.Error, match="there is no unknown `q`"):
        fluid.dirichlet("xmax", {"q": 0}).solve(device="cpu")
