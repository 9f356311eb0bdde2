"""Solutions for other packages, and the module itself."""

import subprocess
import sys

import numpy as np
import pytest

import femtile


@pytest.mark.parametrize(("cell", "degree"), [("tetrahedron", 1), ("hexahedron", 1), ("hexahedron", 3)])
def test_solutions_become_meshes_of_meshio(cell, degree, tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = femtile.mesh.box([2, 2, 2], cell=cell)
    solution = femtile.Poisson(mesh, degree=degree).dirichlet("all", "x").solve(fields=("error",))
    converted = solution.to_meshio()
    converted.write(tmp_path / "u.vtu")
    again = meshio.read(tmp_path / "u.vtu")
    assert np.array_equal(again.point_data["u"], solution.fields["u"]) and "error" in again.cell_data


def test_solutions_become_grids_of_pyvista():
    pytest.importorskip("pyvista")
    mesh = femtile.mesh.box([2, 2, 2], cell="hexahedron")
    grid = femtile.Poisson(mesh, degree=2).dirichlet("all", "x").solve().to_pyvista()
    assert grid.n_cells == 8 and np.allclose(grid.point_data["u"], grid.points[:, 0])


def test_a_package_that_is_absent_is_named_with_its_installation(monkeypatch):
    solution = femtile.Poisson(femtile.mesh.square([2, 2]), source=1).dirichlet("all", 0).solve()
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(femtile.Error, match=r"pip install pyvista, or 'femtile\[plot\]'"):
        solution.plot()
    with pytest.raises(femtile.ArgumentError, match="`v` is none of: u"):
        solution.plot("v")


def test_importing_femtile_loads_numpy_alone():
    heavy = "scipy", "meshio", "pyvista", "skfem", "pyamg", "matplotlib"
    code = f"import sys, femtile; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_exception_has_the_base_and_the_usual_class():
    assert issubclass(femtile.ArgumentError, ValueError) and issubclass(femtile.ArgumentTypeError, TypeError)
    for name in femtile.__all__:
        item = getattr(femtile, name)
        if isinstance(item, type) and issubclass(item, Exception) and not issubclass(item, Warning):
            assert issubclass(item, femtile.Error)
