"""How iterations ended."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """The outcome of an iterative solve.

    Attributes
    ----------
    iterations : int
        Iterations done.
    stop : str
        The reason for the end: ``converged``, ``max_iterations``, ``stagnated``, ``diverged``, ``breakdown``,
        ``interrupted`` or ``time_limit``.
    message : str
        The reason in words, with advice.
    relative_residual : float
        ‖r‖/‖b‖ at the end, by the recurrence.
    true_relative_residual : float
        ‖b − Ax‖/‖b‖ at the end, computed afresh.
    residuals : list of float
        ‖r‖/‖b‖ before the first and after every iteration.
    """

    iterations: int
    stop: str
    message: str
    relative_residual: float
    true_relative_residual: float
    residuals: list[float]

    @property
    def has_converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.stop == "converged"
