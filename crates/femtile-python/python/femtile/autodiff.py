"""Functionals of forms as differentiable functions of PyTorch and JAX.

A function takes constants of a `Form`, solves it and returns the integral of a formula. Its derivatives are exact, by one adjoint
solve. PyTorch and JAX are loaded when they are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import ArgumentError, Error
from ._form import Form
from ._solution import Solution

__all__ = ["jax_function", "torch_function"]


def torch_function(
    form: Form,
    functional: str,
    parameters: Sequence[str],
    *,
    constants: Mapping[str, Any] | None = None,
    **solver: Any,
) -> Callable[..., Any]:
    """Return a function of PyTorch: from a tensor for each parameter to the value of a functional.

    Tensors have the shapes of the constants of the form: that of a number none, of values by tag an entry for each name in the order
    given, then that of ``default``, of a cell field an entry for each cell. They may be on any device; the functional is
    computed on the host.

    Parameters
    ----------
    form : Form
        A steady form; its constants tell the kinds of the parameters.
    functional : str
        The formula, as in `Solution.integral`.
    parameters : sequence of str
        Names of constants of the form.
    constants : dict, optional
        Scalars of the formula.
    **solver
        Settings of the solver.

    Examples
    --------
    ::

        k = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        heat = femtile.autodiff.torch_function(form, "u", ["k"])
        heat(k).backward()
    """
    torch = importlib.import_module("torch")
    objective = _Objective(form, functional, parameters, constants, solver)

    def forward(ctx: Any, *values: Any) -> Any:
        arrays = [value.detach().to("cpu", torch.float64).numpy() for value in values]
        value, ctx.solution = objective.value(arrays)
        ctx.like = [value.detach() for value in values]
        dtype = values[0].dtype
        for other in values[1:]:
            dtype = torch.promote_types(dtype, other.dtype)
        return torch.tensor(value, dtype=dtype, device=values[0].device)

    def backward(ctx: Any, slope: Any) -> Any:
        wanted = list(ctx.needs_input_grad)
        slopes = iter(objective.slopes(ctx.solution, wanted))
        pairs = zip(ctx.like, wanted, strict=True)
        return tuple(slope * like.new_tensor(next(slopes)) if needs else None for like, needs in pairs)

    once = torch.autograd.function.once_differentiable
    members = {"forward": staticmethod(forward), "backward": staticmethod(once(backward))}
    function: Any = type("FormFunctional", (torch.autograd.Function,), members)
    found: Callable[..., Any] = function.apply
    return found


def jax_function(
    form: Form,
    functional: str,
    parameters: Sequence[str],
    *,
    constants: Mapping[str, Any] | None = None,
    **solver: Any,
) -> Callable[..., Any]:
    """Return a function of JAX, as `torch_function` does of PyTorch; `jax.jit` and `jax.grad` take it.

    Results have the precision of the arguments; for that of the solve enable ``jax_enable_x64``.

    Examples
    --------
    ::

        heat = femtile.autodiff.jax_function(form, "u", ["k"])
        value, slope = jax.value_and_grad(heat)(2.0)
    """
    jax = importlib.import_module("jax")
    objective = _Objective(form, functional, parameters, constants, solver)
    jnp = jax.numpy

    def call(of: Callable[..., Any], kinds: Any, values: Any) -> Any:
        return jax.pure_callback(of, kinds, *values, vmap_method="sequential")

    def kind(value: Any) -> Any:
        return jax.ShapeDtypeStruct(value.shape, value.dtype)

    def arrays(values: Any) -> list[Any]:
        return [jnp.asarray(value, dtype=jnp.result_type(value, float)) for value in values]

    def number(given: Any) -> Any:
        return jax.ShapeDtypeStruct((), jnp.result_type(*given))

    def value_alone(*values: Any) -> Any:
        given = arrays(values)
        to = number(given)
        return call(lambda *own: np.asarray(objective.value(own)[0], to.dtype), to, given)

    def forward(*values: Any) -> Any:
        given = arrays(values)
        to, kinds = number(given), [kind(value) for value in given]

        def with_slopes(*own: Any) -> Any:
            value, solution = objective.value(own)
            slopes = objective.slopes(solution, [True] * len(own))
            pairs = zip(slopes, kinds, strict=True)
            return np.asarray(value, to.dtype), [np.asarray(slope, like.dtype) for slope, like in pairs]

        return call(with_slopes, (to, kinds), given)

    def backward(slopes: Any, by: Any) -> Any:
        return tuple(by * slope for slope in slopes)

    function = jax.custom_vjp(value_alone)
    function.defvjp(forward, backward)
    found: Callable[..., Any] = function
    return found


class _Objective:
    """A functional of a form as a function of some of its constants, as arrays."""

    def __init__(
        self,
        form: Form,
        functional: str,
        parameters: Sequence[str],
        constants: Mapping[str, Any] | None,
        solver: Mapping[str, Any],
    ) -> None:
        self._form, self._functional, self._names = form, functional, list(parameters)
        if not self._names:
            raise ArgumentError("parameters: name at least one constant of the form", "parameters")
        self._constants, self._solver = dict(constants or {}), dict(solver)
        known = form.case()["equation"].get("constants", {})
        for name in self._names:
            if name not in known or isinstance(known[name], str):
                message = f"parameters: `{name}` is no number, vector, tensor, value by tag or cell field of the form"
                raise ArgumentError(message, "parameters")
        self._given = [known[name] for name in self._names]

    def value(self, arrays: Sequence[Any]) -> tuple[float, Solution]:
        """Solve with other constants; return the functional and the solution."""
        if len(arrays) != len(self._names):
            raise ArgumentError(f"{len(arrays)} arguments for {len(self._names)} parameters")
        constants = {
            name: _constant(given, np.asarray(array, np.float64))
            for name, given, array in zip(self._names, self._given, arrays, strict=True)
        }
        solution = self._form.with_constants(**constants).solve(**self._solver)
        if not solution.has_converged:
            raise Error(f"the solve ended before it converged: {solution.report['solve']['stop']}")
        return solution.integral(self._functional, **self._constants), solution

    def slopes(self, solution: Solution, wanted: Sequence[bool]) -> list[NDArray[np.float64]]:
        """Return the derivatives by the constants that are wanted, in their shapes."""
        parameters = zip(self._names, self._given, wanted, strict=True)
        pairs = [(name, given) for name, given, is_wanted in parameters if is_wanted]
        found = solution.gradient(self._functional, [name for name, _ in pairs], **self._constants)
        return [_array(given, slope) for (_, given), slope in zip(pairs, found, strict=True)]


def _tags(given: Any) -> list[str] | None:
    """Return the names of values by tag."""
    if not isinstance(given, Mapping) or "by_tag" not in given:
        return None
    return [str(name) for name in given["by_tag"]] + (["default"] if "default" in given else [])


def _constant(given: Any, array: NDArray[np.float64]) -> Any:
    """Return the value of a constant of a kind."""
    if isinstance(given, Mapping) and "field" in given:
        return array
    names = _tags(given)
    if names is None:
        return array.tolist()
    if array.shape[:1] != (len(names),):
        raise ArgumentError(f"a tensor of shape {array.shape} for {len(names)} values by tag: {', '.join(names)}")
    values = dict(zip(names, array.tolist(), strict=True))
    default = {"default": values.pop("default")} if "default" in given else {}
    return {"by_tag": values, **default}


def _array(given: Any, slope: Any) -> NDArray[np.float64]:
    """Return a derivative by a constant of a kind."""
    names = _tags(given)
    if names is None:
        return np.asarray(slope, np.float64)
    zero = np.zeros_like(next(iter(slope.values()), 0.0))
    return np.stack([np.asarray(slope.get(name, zero), np.float64) for name in names])
