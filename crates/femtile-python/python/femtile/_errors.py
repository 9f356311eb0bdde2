"""Exceptions and warnings."""

from __future__ import annotations

import numpy as np


class Error(Exception):
    """An error of Femtile; the base of all others.

    Attributes
    ----------
    argument : str or None
        The argument, or the key of a case, that is to blame.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class ArgumentError(Error, ValueError):
    """An argument has a value that cannot be used."""


class ArgumentTypeError(Error, TypeError):
    """An argument has a type, or an array a dtype, that cannot be used."""


class NotDefiniteError(ArgumentError):
    """A matrix, or a preconditioner, is not positive definite."""


class SingularError(Error, np.linalg.LinAlgError):
    """A system cannot be solved: a pivot is zero, lost to rounding or not a number."""


class DeviceError(Error):
    """A device is absent, failed or has too little memory."""


class MeshError(Error, ValueError):
    """A mesh cannot be read, or cannot be solved on."""


class CaseError(Error, ValueError):
    """A case is wrong; `argument` is its key, such as ``solver.tolerance``."""


class ConvergenceWarning(UserWarning):
    """A solve ended without meeting its tolerance."""


class CopyWarning(UserWarning):
    """An array was copied because it is not contiguous."""
