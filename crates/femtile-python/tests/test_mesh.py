"""Meshes: generators, files, conversion, check."""

import numpy as np
import pytest

import femtile


@pytest.mark.parametrize(
    ("make", "kind", "volume"),
    [
        (lambda: femtile.mesh.box([2, 3, 4]), "tetrahedron", 1.0),
        (lambda: femtile.mesh.box((2, 3, 4), cell="hexahedron", upper=np.array([1, 2, 3])), "hexahedron", 6.0),
        (lambda: femtile.mesh.square([4, 5]), "triangle", 1.0),
        (lambda: femtile.mesh.square([4, 5], cell="quadrilateral"), "quadrilateral", 1.0),
        (lambda: femtile.mesh.ball(0.2), "tetrahedron", 4 * np.pi / 3),
        (lambda: femtile.mesh.cylinder(0.2), "tetrahedron", np.pi),
    ],
)
def test_generators_make_meshes_that_pass_the_check(make, kind, volume):
    mesh = make()
    found = femtile.check(mesh)
    assert mesh.kind == kind and found.is_usable and found.warnings == []
    assert found.volume == pytest.approx(volume, rel=0.05)


def test_the_ventricle_has_its_tags_and_fibres():
    mesh = femtile.mesh.ventricle(5.0)
    assert set(mesh.tag_names.values()) >= {"endocardium", "epicardium", "base"}
    assert np.allclose(np.linalg.norm(mesh.cell_fields["fibre"], axis=1), 1)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: femtile.mesh.box([2, 2, 0]), "cells"),
        (lambda: femtile.mesh.ball(-1.0), "h"),
        (lambda: femtile.mesh.square([2, 2], cell="hexagon"), "generate"),
        (lambda: femtile.mesh.ball(float("nan")), "generate"),
        (lambda: femtile.Mesh([[0, 0]], [[0, 1, 2]], "triangle"), "cells"),
        (lambda: femtile.Mesh([[0, 0]], [[0, 0, -1]], "triangle"), "cells"),
        (lambda: femtile.Mesh([0, 0], [[0, 0, 0]], "triangle"), "points"),
        (lambda: femtile.Mesh(np.eye(3), [[0, 1, 2]], "circle"), "kind"),
        (lambda: femtile.Mesh(np.full((3, 2), np.nan), [[0, 1, 2]], "triangle"), "points"),
        (lambda: femtile.check(femtile.mesh.square([1, 1]), accept=["holes"]), "accept"),
    ],
)
def test_wrong_settings_are_refused_by_name(make, argument):
    with pytest.raises(femtile.ArgumentError) as caught:
        make()
    assert caught.value.argument == argument


def test_meshes_survive_files_and_meshio(tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = femtile.mesh.box([2, 2, 2]).with_fields(cell_fields={"k": np.arange(48.0)})
    mesh.write(tmp_path / "box.vtu")
    again = femtile.mesh.read(tmp_path / "box.vtu")
    assert np.array_equal(again.cells, mesh.cells) and np.array_equal(again.cell_fields["k"], np.arange(48.0))
    mesh.write(tmp_path / "box.msh")
    converted = femtile.mesh.from_meshio(meshio.read(tmp_path / "box.msh"))
    assert np.allclose(converted.points, mesh.points) and converted.n_cells == 48
    assert set(converted.tag_names.values()) >= {"xmin", "zmax"}
    x = femtile.Poisson(converted).dirichlet("xmin", 0).dirichlet("xmax", 1).solve()
    assert np.allclose(x.fields["u"], mesh.points[:, 0])
    assert np.array_equal(femtile.mesh.from_meshio(mesh.to_meshio()).cells, mesh.cells)


@pytest.mark.parametrize("name", ["MeshTri", "MeshQuad", "MeshTet", "MeshHex"])
def test_meshes_of_scikit_fem_solve_as_there(name):
    skfem = pytest.importorskip("skfem")
    from skfem.models.poisson import laplace, unit_load

    mesh = getattr(skfem, name)().refined(2).with_boundaries({"left": lambda x: x[0] == 0})
    element = {"MeshTri": "TriP1", "MeshQuad": "Quad1", "MeshTet": "TetP1", "MeshHex": "Hex1"}[name]
    basis = skfem.Basis(mesh, getattr(skfem, f"Element{element}")())
    A, b = laplace.assemble(basis), unit_load.assemble(basis)
    expected = skfem.solve(*skfem.condense(A, b, D=basis.get_dofs("left")))
    own = femtile.mesh.from_skfem(mesh)
    assert femtile.check(own).is_usable
    solution = femtile.Poisson(own, source=1.0).dirichlet("left", 0.0).solve(tolerance=1e-12)
    # Points of quadrilaterals and hexahedra have an order of their own.
    place = np.lexsort(np.round(solution.mesh.points.T, 9))
    there = np.lexsort(np.round(own.points.T, 9))
    assert np.allclose(solution.fields["u"][place], expected[there], atol=1e-9)


def test_subdomains_of_scikit_fem_are_tags():
    skfem = pytest.importorskip("skfem")
    mesh = skfem.MeshTri().refined(3).with_subdomains({"low": lambda x: x[1] < 0.5})
    own = femtile.mesh.from_skfem(mesh)
    sigma = {"by_tag": {"low": 4.0}, "default": 1.0}
    u = femtile.Poisson(own, sigma).dirichlet("y < 1e-9", 0).dirichlet("y > 1 - 1e-9", 1).solve().fields["u"]
    assert np.allclose(u[own.points[:, 1] == 0.5], 0.2)


def test_what_meshio_has_and_femtile_has_not_is_named():
    meshio = pytest.importorskip("meshio")
    points = np.random.default_rng(0).random((8, 3))
    for cells in ([("wedge", [[0, 1, 2, 3, 4, 5]])], [("tetra", [[0, 1, 2, 3]]), ("hexahedron", [[*range(8)]])]):
        with pytest.raises(femtile.ArgumentError) as caught:
            femtile.mesh.from_meshio(meshio.Mesh(points, cells))
        assert caught.value.argument == "mesh"


def test_findings_are_data():
    good = femtile.mesh.square([2, 2])
    doubled = femtile.Mesh(good.points, np.r_[good.cells, good.cells[:1]], "triangle")
    found = femtile.check(doubled)
    assert not found.is_usable and found.finding == "duplicate-cells" and "same nodes" in found.refusal
    turned = good.cells
    turned[0] = turned[0][::-1]
    found = femtile.check(femtile.Mesh(good.points, turned, "triangle"))
    assert found.counts["n_flipped"] == 1 and "turned over" in found.warnings[0]
    assert femtile.Poisson(found.mesh, source=1).dirichlet("y < 1e-9", 0).solve().has_converged


def test_divided_cells_are_told(tmp_path):
    nodes = "1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 1 0 1\n6 0 1 1\n"
    (tmp_path / "a.msh").write_text(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n6\n" + nodes + "$EndNodes\n$Elements\n1\n1 6 0 1 2 3 4 5 6\n$EndElements\n"
    )
    mesh = femtile.mesh.read(tmp_path / "a.msh")
    assert mesh.division == "1 prism, divided into 3 tetrahedra" == femtile.check(mesh).division
    assert femtile.mesh.square([2, 2]).division is None


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "a.msh").write_text("nothing")
    for name in ("a.msh", "absent.vtu"):
        with pytest.raises(femtile.MeshError, match=name):
            femtile.mesh.read(tmp_path / name)
