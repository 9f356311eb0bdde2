"""Functionals of forms and their gradients, also in PyTorch and JAX."""

import numpy as np
import pytest

import femtile

SETTINGS = {"tolerance": 1e-12, "nonlinear_tolerance": 1e-12}


def two_parts() -> femtile.Mesh:
    """A square whose right part has the tag 2, named core."""
    square = femtile.mesh.square([6, 6])
    tags = np.where(square.points[square.cells][:, :, 0].mean(axis=1) > 0.5, 2, 1).astype(np.int32)
    names = {(2, 2): "core"}
    return femtile.Mesh(square.points, square.cells, "triangle", cell_tags=tags, tag_names=names)


def heated(mesh, **constants):
    """Diffusion with a conductivity that grows with u, an anisotropic part, and a flow."""
    given = {"k": 2.0, "b": [0.5, -1.0], "D": [[0.2, 0.1], [0.1, 0.3]], **constants}
    form = femtile.Form(mesh, flux="k*(1 + u^2)*grad(u) + D*grad(u) - b*u", source="1 + x", constants=given)
    return form.dirichlet("x < 1e-9", "0.2*y").flux("x > 1 - 1e-9", "-k*u")


def difference(of, at, step=1e-4):
    """The derivative by central differences of two steps."""
    by = [(of(at + s) - of(at - s)) / (2 * s) for s in (step, 2 * step)]
    return (4 * by[0] - by[1]) / 3


def test_gradients_are_those_of_differences():
    mesh = two_parts()
    rng = np.random.default_rng(1)
    field, measured = rng.uniform(1, 2, mesh.n_cells), rng.uniform(0, 1, mesh.n_cells)
    functional = "(u - m)^2 + s*k*grad(u).grad(u)"

    def value(**constants):
        solution = heated(mesh, **constants).solve(**SETTINGS)
        assert solution.has_converged
        return solution.integral(functional, m=measured, s=0.1)

    def gradient(names, **constants):
        solution = heated(mesh, **constants).solve(**SETTINGS)
        return solution.gradient(functional, names, m=measured, s=0.1)

    k, b, D = gradient(["k", "b", "D"])
    assert isinstance(k, float) and b.shape == (2,) and D.shape == (2, 2)
    assert k == pytest.approx(difference(lambda k: value(k=k), 2.0), rel=1e-6)
    assert b[1] == pytest.approx(difference(lambda b: value(b=[0.5, b]), -1.0), rel=1e-6)
    assert D[0, 1] == pytest.approx(difference(lambda d: value(D=[[0.2, d], [0.1, 0.3]]), 0.1), rel=1e-6)
    by_tag = gradient("k", k={"by_tag": {"core": 3.0}, "default": 1.5})
    assert list(by_tag) == ["core", "default"]
    tags = lambda core, default: value(k={"by_tag": {"core": core}, "default": default})
    assert by_tag["core"] == pytest.approx(difference(lambda k: tags(k, 1.5), 3.0), rel=1e-6)
    assert by_tag["default"] == pytest.approx(difference(lambda k: tags(3.0, k), 1.5), rel=1e-6)
    by_cell = gradient("k", k=field)
    assert by_cell.shape == (mesh.n_cells,)
    for cell in (0, 11, mesh.n_cells - 1):
        unit = np.eye(mesh.n_cells)[cell]
        expected = difference(lambda k: value(k=field + k * unit), 0.0, 1e-3)
        assert by_cell[cell] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_gradients_that_cannot_be_had_are_refused():
    mesh = two_parts()
    solution = heated(mesh, k="1 + x").solve(**SETTINGS)
    for functional, parameter, argument, message in [
        ("u*w", "b", "functional", "unknown name `w`"),
        ("u", "q", "parameter", "no coefficient `q`"),
        ("u", "k", "parameter", "formula of the point"),
    ]:
        with pytest.raises(femtile.CaseError, match=message) as caught:
            solution.gradient(functional, parameter)
        assert caught.value.argument == argument
    with pytest.raises(femtile.ArgumentError, match="m: has shape"):
        solution.integral("u - m", m=np.ones(3))
    poisson = femtile.Poisson(mesh).dirichlet("all", 0).solve()
    with pytest.raises(femtile.Error, match="femtile.Form"):
        poisson.gradient("u", "sigma")
    with pytest.raises(femtile.ArgumentError, match="parameters: `q`"):
        femtile.autodiff._Objective(heated(mesh), "u", ["q"], None, {})


PARAMETERS = ["k", "b"]


def mixed():
    """A form with values by tag and a vector, and the arrays of its constants."""
    form = heated(two_parts(), k={"by_tag": {"core": 3.0}, "default": 1.5})
    return form, [np.array([3.0, 1.5]), np.array([0.5, -1.0])]


def expected_slopes(form):
    """The value of u·k integrated, and its derivatives."""
    solution = form.solve(**SETTINGS)
    k, b = solution.gradient("u*k", PARAMETERS)
    return solution.integral("u*k"), [np.array([k["core"], k["default"]]), b]


def test_functions_of_pytorch():
    torch = pytest.importorskip("torch")
    form, arrays = mixed()
    value, slopes = expected_slopes(form)
    function = femtile.autodiff.torch_function(form, "u*k", PARAMETERS, **SETTINGS)
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    (3 * function(*tensors)).backward()
    assert function(*tensors).item() == pytest.approx(value, rel=1e-12)
    for tensor, slope in zip(tensors, slopes, strict=True):
        assert np.allclose(tensor.grad.numpy(), 3 * slope, rtol=1e-10)
    # By one of the arguments alone.
    tensors[1] = tensors[1].detach()
    tensors[0].grad = None
    function(*tensors).backward()
    assert np.allclose(tensors[0].grad.numpy(), slopes[0], rtol=1e-10)
    assert torch.autograd.gradcheck(function, tensors, eps=1e-5, rtol=1e-4)
    with pytest.raises(femtile.ArgumentError, match="2 values by tag: core, default"):
        function(torch.ones(3), tensors[1])


def test_functions_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    form, arrays = mixed()
    value, slopes = expected_slopes(form)
    function = femtile.autodiff.jax_function(form, "u*k", PARAMETERS, **SETTINGS)
    assert float(function(*arrays)) == pytest.approx(value, rel=1e-12)
    of = jax.jit(jax.value_and_grad(lambda k, b: 3 * function(k, b), argnums=(0, 1)))
    found, by = of(*arrays)
    assert float(found) == pytest.approx(3 * value, rel=1e-12)
    for own, slope in zip(by, slopes, strict=True):
        assert np.allclose(own, 3 * slope, rtol=1e-10)
