"""Meshes: made by formula, read from files, converted from meshio and scikit-fem, checked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _femtile
from ._arrays import as_rows
from ._errors import ArgumentError, MeshError
from ._findings import Findings

#: Names of cells here by those of meshio, with the number of their nodes.
_OF_MESHIO = {"triangle": "triangle", "quad": "quadrilateral", "tetra": "tetrahedron", "hexahedron": "hexahedron"}
_DIMENSION = {"vertex": 0, "line": 1, "triangle": 2, "quad": 2, "tetra": 3, "hexahedron": 3}
_FACET = {"triangle": "line", "quad": "line", "tetra": "triangle", "hexahedron": "quad"}


class Mesh:
    """A mesh of triangles, quadrilaterals, tetrahedra or hexahedra.

    Parameters
    ----------
    points : array_like
        Coordinates of the nodes, two or three of each.
    cells : array_like
        Nodes of each cell, numbered as VTK numbers them.
    kind : str
        ``triangle``, ``quadrilateral``, ``tetrahedron`` or ``hexahedron``.
    cell_tags : array_like, optional
        A number for each cell.
    facets : tuple of array_like, optional
        Nodes of tagged facets, and their tags.
    tag_names : mapping, optional
        Names of tags by dimension and number.
    node_fields, cell_fields : mapping, optional
        Values at nodes, or of cells, by name.

    Examples
    --------
    >>> import femtile
    >>> mesh = femtile.Mesh([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]], "triangle")
    >>> mesh.n_nodes, mesh.n_cells
    (3, 1)
    """

    def __init__(
        self,
        points: Any,
        cells: Any,
        kind: str,
        *,
        cell_tags: Any = None,
        facets: tuple[Any, Any] | None = None,
        tag_names: Mapping[tuple[int, int], str] | None = None,
        node_fields: Mapping[str, Any] | None = None,
        cell_fields: Mapping[str, Any] | None = None,
    ) -> None:
        shape = (_points(points), kind, _indices("cells", cells))
        tags = None if cell_tags is None else np.ascontiguousarray(cell_tags, dtype=np.int32)
        of_facets = None
        if facets is not None:
            of_facets = (_indices("facets", facets[0]), np.ascontiguousarray(facets[1], dtype=np.int32))
        named = (tags, of_facets, dict(tag_names or {}))
        self._mesh = _femtile.Mesh(shape, named, (as_rows(node_fields), as_rows(cell_fields)))

    @classmethod
    def _of(cls, mesh: _femtile.Mesh) -> Mesh:
        own = cls.__new__(cls)
        own._mesh = mesh
        return own

    def __repr__(self) -> str:
        return f"<femtile.Mesh: {self.n_nodes} nodes, {self.n_cells} cells ({self.kind})>"

    @property
    def kind(self) -> str:
        """Kind of the cells."""
        return self._mesh.counts()[0]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self._mesh.counts()[1]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self._mesh.counts()[2]

    @property
    def order(self) -> int:
        """Polynomial degree of the shapes of cells; 1 for straight ones."""
        return self._mesh.notes()[0]

    @property
    def division(self) -> str | None:
        """Cells of the file and the simplices that they were divided into, in words; none if they were not divided."""
        return self._mesh.division()

    @property
    def points(self) -> NDArray[np.float64]:
        """Coordinates of the nodes, three of each; a copy."""
        return self._mesh.points()

    @property
    def cells(self) -> NDArray[np.uint32]:
        """Nodes of each cell; a copy."""
        return self._mesh.cells()

    @property
    def cell_tags(self) -> NDArray[np.int32]:
        """Tags of cells, or an empty array; a copy."""
        return self._mesh.tags()[0]

    @property
    def facets(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Nodes and tags of tagged facets; copies."""
        return self._mesh.tags()[1]

    @property
    def tag_names(self) -> dict[tuple[int, int], str]:
        """Names of tags by dimension and number."""
        return self._mesh.tags()[2]

    @property
    def node_fields(self) -> dict[str, NDArray[np.float64]]:
        """Values at nodes by name; copies."""
        return self._mesh.fields()[0]

    @property
    def cell_fields(self) -> dict[str, NDArray[np.float64]]:
        """Values of cells by name; copies."""
        return self._mesh.fields()[1]

    def with_fields(
        self, *, cell_fields: Mapping[str, Any] | None = None, node_fields: Mapping[str, Any] | None = None
    ) -> Mesh:
        """Return a mesh with further fields; straight cells only."""
        if self.order != 1:
            raise ArgumentError("mesh: fields cannot be added to curved cells", "mesh")
        return Mesh(
            self.points,
            self.cells,
            self.kind,
            cell_tags=self.cell_tags,
            facets=self.facets,
            tag_names=self.tag_names,
            node_fields={**self.node_fields, **(node_fields or {})},
            cell_fields={**self.cell_fields, **(cell_fields or {})},
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the mesh; the ending of the name is the format, such as ``.vtu`` or ``.msh``."""
        self._mesh.write(os.fspath(path))

    def to_meshio(self) -> Any:
        """Return the mesh as a `meshio.Mesh`."""
        from ._export import of_mesh

        return of_mesh(self)


def box(
    cells: Sequence[int],
    *,
    cell: str = "tetrahedron",
    lower: Sequence[float] = (0.0, 0.0, 0.0),
    upper: Sequence[float] = (1.0, 1.0, 1.0),
    deform: float = 0.0,
    order: int = 1,
) -> Mesh:
    """Make a box of ``cells`` cubes along x, y and z; tags xmin, xmax, ymin, ymax, zmin, zmax.

    Parameters
    ----------
    cells : sequence of three int
        Number of cubes along each axis.
    cell : {"tetrahedron", "tetrahedron-5", "hexahedron"}
        Division of each cube.
    lower, upper : sequence of three float
        Corners.
    deform : float
        Displacement of the centre, relative to the sides.
    order : int
        Degree of the shapes of hexahedra.

    Examples
    --------
    >>> import femtile
    >>> femtile.mesh.box([2, 2, 2])
    <femtile.Mesh: 27 nodes, 48 cells (tetrahedron)>
    """
    return _generate(kind="box", cells=cells, cell=cell, lower=lower, upper=upper, deform=deform, order=order)


def square(
    cells: Sequence[int],
    *,
    cell: str = "triangle",
    lower: Sequence[float] = (0.0, 0.0),
    upper: Sequence[float] = (1.0, 1.0),
    deform: float = 0.0,
    order: int = 1,
) -> Mesh:
    """Make a rectangle of ``cells`` squares along x and y; tags xmin, xmax, ymin, ymax; parameters as for `box`."""
    return _generate(kind="square", cells=cells, cell=cell, lower=lower, upper=upper, deform=deform, order=order)


def ball(h: float, *, radius: float = 1.0, cell: str = "tetrahedron", order: int = 1) -> Mesh:
    """Make a ball about the origin with edges of about `h`; tag surface."""
    return _generate(kind="ball", h=h, radius=radius, cell=cell, order=order)


def cylinder(h: float, *, radius: float = 1.0, height: float = 1.0) -> Mesh:
    """Make a cylinder about the z axis with edges of about `h`; tags side, bottom, top."""
    return _generate(kind="cylinder", h=h, radius=radius, height=height)


def ventricle(h_mm: float = 1.0) -> Mesh:
    """Make an idealised left ventricle in millimetres; tags endocardium, epicardium, base; cell field fibre."""
    return _generate(kind="ventricle", h_mm=h_mm)


def read(path: str | os.PathLike[str], *, accept: Sequence[str] = (), merge: bool = False) -> Mesh:
    """Read a mesh file, check it and repair what can be repaired safely.

    Parameters
    ----------
    path : path
        A file of Gmsh, VTK, TetGen, MEDIT, MFEM, Abaqus, CalculiX or openCARP.
    accept : sequence of str
        Findings to accept.
    merge : bool
        Whether coincident nodes are merged.

    Raises
    ------
    MeshError
        The file cannot be read, or the check refuses the mesh.
    """
    mesh, found = _femtile.read(os.fspath(path)).check(list(accept), merge)
    if mesh is None:
        raise MeshError(f"the mesh cannot be used: {found['refusal']}", "path")
    return Mesh._of(mesh)


def check(mesh: Mesh, *, accept: Sequence[str] = (), merge: bool = False) -> Findings:
    """Check a mesh, and return what was found with the repaired mesh.

    Parameters
    ----------
    mesh : Mesh
        The mesh, which stays as it is.
    accept : sequence of str
        Findings that become warnings: ``duplicate-cells``, ``shared-facet``, ``folded-cells``,
        ``overlapping-facets``, ``gap``.
    merge : bool
        Whether coincident nodes are merged.

    Examples
    --------
    >>> import femtile
    >>> found = femtile.check(femtile.mesh.square([2, 2]))
    >>> found.is_usable, found.counts["n_cells"], found.warnings
    (True, 8, [])
    """
    repaired, found = mesh._mesh.check(list(accept), merge)
    if repaired is None:
        return Findings(None, found["refusal"], found["finding"], [], {}, float("nan"), float("nan"))
    counts = {name: value for name, value in found.items() if name.startswith("n_")}
    warnings, quality, volume = found["warnings"], found["worst_quality"], found["volume"]
    return Findings(Mesh._of(repaired), None, None, warnings, counts, quality, volume, found["division"])


_READ = "`femtile.mesh.read` divides those of other files into simplices"


def from_meshio(mesh: Any) -> Mesh:
    """Convert a `meshio.Mesh` with one kind of cell of the highest dimension; cells below it become tagged facets.

    Tags are taken from ``gmsh:physical`` or ``medit:ref``, names of tags from ``field_data``.
    """
    blocks = [block for block in mesh.cells if block.type in _DIMENSION]
    unknown = [block.type for block in mesh.cells if block.type not in _DIMENSION]
    if unknown or not blocks:
        known = ", ".join(_OF_MESHIO)
        message = f"mesh: cells of type {', '.join(unknown) or 'none'}; {known} can be used, and {_READ}"
        raise ArgumentError(message, "mesh")
    highest = max(_DIMENSION[block.type] for block in blocks)
    kinds = {block.type for block in blocks if _DIMENSION[block.type] == highest}
    if len(kinds) > 1 or highest < 2:
        message = f"mesh: cells of type {', '.join(sorted(kinds))}; one kind can be used, and {_READ}"
        raise ArgumentError(message, "mesh")
    (kind,) = kinds
    tag_key = next((key for key in ("gmsh:physical", "medit:ref") if key in mesh.cell_data), None)
    tags: list[Any] = [None] * len(mesh.cells) if tag_key is None else mesh.cell_data[tag_key]
    pairs = list(zip(mesh.cells, tags, strict=True))
    own = [(block.data, tag) for block, tag in pairs if block.type == kind]
    facets = [(block.data, tag) for block, tag in pairs if block.type == _FACET[kind] and tag is not None]
    chosen = [i for i, block in enumerate(mesh.cells) if block.type == kind]
    fields = {
        name: np.concatenate([np.asarray(values[i], dtype=np.float64) for i in chosen])
        for name, values in mesh.cell_data.items()
        if name != tag_key and not name.startswith("gmsh:")
    }
    return Mesh(
        mesh.points,
        np.concatenate([cells for cells, _ in own]),
        _OF_MESHIO[kind],
        cell_tags=None if tag_key is None else np.concatenate([tag for _, tag in own]),
        facets=_joined(facets),
        tag_names={(int(d), int(tag)): name for name, (tag, d) in mesh.field_data.items()},
        node_fields={name: values for name, values in mesh.point_data.items() if not name.startswith("gmsh:")},
        cell_fields=fields,
    )


def from_skfem(mesh: Any) -> Mesh:
    """Convert a mesh of scikit-fem with straight cells; its boundaries and subdomains become tags with their names."""
    names = {"MeshTri1": "triangle", "MeshQuad1": "quadrilateral", "MeshTet1": "tetrahedron", "MeshHex1": "hexahedron"}
    kind = names.get(type(mesh).__name__)
    if kind is None:
        known = ", ".join(names)
        raise ArgumentError(f"mesh: a {type(mesh).__name__} cannot be converted; {known} can", "mesh")
    order = list(range(mesh.t.shape[0]))
    if kind == "hexahedron":
        from skfem.io.meshio import HEX_MAPPING

        order = HEX_MAPPING[:8]
    boundaries, subdomains = mesh.boundaries or {}, mesh.subdomains or {}
    tag_names: dict[tuple[int, int], str] = {}
    facets = []
    for tag, (name, numbers) in enumerate(boundaries.items(), start=1):
        nodes = mesh.facets[:, np.asarray(numbers)].T
        facets.append((nodes, np.full(nodes.shape[0], tag)))
        tag_names[(mesh.dim() - 1, tag)] = name
    cell_tags = np.zeros(mesh.t.shape[1], dtype=np.int32) if subdomains else None
    for tag, (name, numbers) in enumerate(subdomains.items(), start=1):
        assert cell_tags is not None
        cell_tags[np.asarray(numbers)] = tag
        tag_names[(mesh.dim(), tag)] = name
    cells = mesh.t[order].T
    return Mesh(mesh.p.T, cells, kind, cell_tags=cell_tags, facets=_joined(facets), tag_names=tag_names)


def _joined(parts: list[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    if not parts:
        return None
    return np.concatenate([nodes for nodes, _ in parts]), np.concatenate([tags for _, tags in parts])


def _generate(**settings: Any) -> Mesh:
    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else list(value)

    try:
        text = json.dumps(settings, default=plain, allow_nan=False)
    except ValueError as error:
        raise ArgumentError(f"generate: {error}", "generate") from None
    return Mesh._of(_femtile.generate(text))


def _points(points: Any) -> NDArray[np.float64]:
    found = np.asarray(points, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] not in (2, 3):
        raise ArgumentError(f"points: has shape {found.shape}; two or three coordinates a node are needed", "points")
    if found.shape[1] == 2:
        found = np.pad(found, ((0, 0), (0, 1)))
    return np.ascontiguousarray(found)


def _indices(name: str, values: Any) -> NDArray[np.uint32]:
    found = np.asarray(values)
    if found.ndim != 2 or found.dtype.kind not in "iu":
        message = f"{name}: has shape {found.shape} and dtype {found.dtype}; rows of node numbers are needed"
        raise ArgumentError(message, name)
    if found.size and (found.min() < 0 or found.max() > 0xFFFFFFFF):
        raise ArgumentError(f"{name}: node numbers lie between 0 and 4,294,967,295", name)
    return np.ascontiguousarray(found, dtype=np.uint32)
