"""Solutions and meshes for PyVista and meshio, which are loaded when they are asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import ArgumentError, Error

if TYPE_CHECKING:
    from ._solution import Solution
    from .mesh import Mesh

#: Name in meshio and number in VTK of straight cells, and of cells of higher order.
_STRAIGHT = {
    "segment": ("line", 3),
    "triangle": ("triangle", 5),
    "quadrilateral": ("quad", 9),
    "tetrahedron": ("tetra", 10),
    "hexahedron": ("hexahedron", 12),
}
_CURVED = {
    "triangle": ("VTK_LAGRANGE_TRIANGLE", 69),
    "quadrilateral": ("VTK_LAGRANGE_QUADRILATERAL", 70),
    "tetrahedron": ("VTK_LAGRANGE_TETRAHEDRON", 71),
    "hexahedron": ("VTK_LAGRANGE_HEXAHEDRON", 72),
}


def _package(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        message = f"{name} is not installed: pip install {name}, or 'femtile[{extra}]'"
        raise Error(message) from None


def _cell(kind: str, order: int) -> tuple[str, int]:
    return _STRAIGHT[kind] if order == 1 else _CURVED[kind]


def to_meshio(solution: Solution) -> Any:
    """Return a solution as a `meshio.Mesh`."""
    meshio = _package("meshio", "meshio")
    mesh = solution.mesh
    cells = [(_cell(mesh.kind, mesh.order)[0], mesh.cells.astype(np.int64))]
    cell_data: dict[str, list[Any]] = {name: [values] for name, values in solution.cell_fields.items()}
    if len(mesh.cell_tags):
        cell_data["tag"] = [mesh.cell_tags]
    return meshio.Mesh(mesh.points, cells, point_data=dict(solution.fields), cell_data=cell_data)


def of_mesh(mesh: Mesh) -> Any:
    """Return a mesh as a `meshio.Mesh`."""
    meshio = _package("meshio", "meshio")
    if mesh.order != 1:
        raise ArgumentError("mesh: curved cells cannot be converted; write a file and read it", "mesh")
    cells = [(_STRAIGHT[mesh.kind][0], mesh.cells.astype(np.int64))]
    cell_data: dict[str, list[Any]] = {name: [values] for name, values in mesh.cell_fields.items()}
    if len(mesh.cell_tags):
        cell_data["gmsh:physical"] = [mesh.cell_tags]
    names = {name: np.array([tag, dimension]) for (dimension, tag), name in mesh.tag_names.items()}
    return meshio.Mesh(mesh.points, cells, point_data=mesh.node_fields, cell_data=cell_data, field_data=names)


def to_pyvista(solution: Solution) -> Any:
    """Return a solution as a `pyvista.UnstructuredGrid`."""
    pyvista = _package("pyvista", "plot")
    mesh = solution.mesh
    n_cells, per_cell = mesh.cells.shape
    cells = np.hstack([np.full((n_cells, 1), per_cell), mesh.cells.astype(np.int64)])
    kinds = np.full(n_cells, _cell(mesh.kind, mesh.order)[1], dtype=np.uint8)
    grid = pyvista.UnstructuredGrid(cells.reshape(-1), kinds, mesh.points)
    for name, values in solution.fields.items():
        grid.point_data[name] = values
    for name, values in solution.cell_fields.items():
        grid.cell_data[name] = values
    if len(mesh.cell_tags):
        grid.cell_data["tag"] = mesh.cell_tags
    return grid


def plot(solution: Solution, field: str, settings: dict[str, Any]) -> Any:
    """Plot a field of a solution."""
    if field not in solution.fields:
        raise ArgumentError(f"field: `{field}` is none of: {', '.join(solution.fields)}", "field")
    return to_pyvista(solution).plot(scalars=field, **settings)
