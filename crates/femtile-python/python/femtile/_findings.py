"""What the check of a mesh found."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .mesh import Mesh


class Findings(NamedTuple):
    """What the check of a mesh found, as `docs/mesh-check.md` explains it.

    Attributes
    ----------
    mesh : Mesh or None
        The repaired mesh; none where it is refused.
    refusal : str or None
        The reason why it is refused, with the cells.
    finding : str or None
        The name by which `accept` takes what was refused, where it can.
    warnings : list of str
        Warnings, in sentences.
    counts : dict
        Numbers of nodes, cells, repairs and findings by name.
    worst_quality : float
        Smallest quality of a cell, from 0 (flat) to 1.
    volume : float
        Area or volume of the mesh.
    division : str or None
        Cells of the file and the simplices that they were divided into, in words.
    """

    mesh: Mesh | None
    refusal: str | None
    finding: str | None
    warnings: list[str]
    counts: dict[str, int]
    worst_quality: float
    volume: float
    division: str | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the mesh can be solved on."""
        return self.refusal is None
