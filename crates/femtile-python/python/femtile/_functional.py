"""Functionals of solutions of forms, and their derivatives by constants."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _femtile
from ._errors import ArgumentError
from .mesh import Mesh


class FormState(NamedTuple):
    """The unknowns of a solution with the case that they solve."""

    case: dict[str, str | None]
    mesh: Mesh | None
    state: tuple[NDArray[np.float64], float]

    def functional(
        self, formula: str, constants: Mapping[str, Any], parameters: list[str]
    ) -> tuple[float, list[Any]]:
        """Return the value of a functional with constants of its own, and its derivatives by constants of the equation."""
        fields: dict[str, Any] = {}
        values = {name: self._constant(name, value, fields) for name, value in constants.items()}
        mesh = self.mesh if self.mesh is None or not fields else self.mesh.with_fields(cell_fields=fields)
        try:
            own = json.dumps(values, default=plain, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{', '.join(values)}: {error}", "constants") from error
        of = (None if mesh is None else mesh._mesh, self.state, (formula, own), parameters)
        return _femtile.functional(self.case, *of)

    def _constant(self, name: str, value: Any, fields: dict[str, Any]) -> Any:
        if not isinstance(value, np.ndarray) or value.ndim == 0:
            return value
        if self.mesh is None:
            raise ArgumentError(f"{name}: an array needs a mesh in memory, in the call of solve", name)
        if value.shape != (self.mesh.n_cells,):
            raise ArgumentError(f"{name}: has shape {value.shape}; the mesh has {self.mesh.n_cells} cells", name)
        field = f"functional.{name}"
        fields[field] = value
        return {"field": field}


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot stand in a case: {value!r}")
