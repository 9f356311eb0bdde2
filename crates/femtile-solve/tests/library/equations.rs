//! Texts of equations for tests.

use femtile_form::Equation;

/// $-\nabla\cdot((1 + u^2)\nabla u) = f$.
pub fn diffusion() -> Equation {
    of(r#"
unknown = { u = {} }
coefficients = { source = { default = 0 } }
cells = { flux = "(1 + u^2)*grad(u)", source = "source" }
boundary = { neumann = { coefficients = { value = {} }, flux = "value" } }
"#)
}

/// The minimum of $\int (\varepsilon^2 + |\nabla u|^2)^{p/2}/p - f u$.
pub fn p_laplacian() -> Equation {
    of(r#"
unknown = { u = {} }
coefficients = { p = {}, epsilon = {}, source = { default = 0 } }
cells = { energy = "(epsilon^2 + grad(u).grad(u))^(p/2)/p", source = "source" }
"#)
}

/// $W = \mu/2 (\operatorname{tr} F^\mathsf{T} F - 3) - \mu\log J + \lambda/2 \log^2 J$.
pub fn neo_hooke() -> Equation {
    of(r#"
unknown = { u = { components = "dimension" } }
coefficients = { mu = {}, lambda = {} }
define = "F = identity + grad(u); J = det(F)"
cells = { energy = "mu/2*(tr(F'*F) - 3) - mu*log(J) + lambda/2*log(J)^2" }
boundary = { traction = { coefficients = { value = { shape = "vector" } }, flux = "value" } }
"#)
}

/// $-\Delta u + \sqrt{u + c} = 1$, which has no value below −c.
pub fn root() -> Equation {
    of(r#"
unknown = { u = {} }
coefficients = { offset = {} }
cells = { flux = "grad(u)", source = "1 - sqrt(u + offset)" }
"#)
}

/// $-\Delta u = \lambda e^u$, which has no solution for large λ.
pub fn bratu() -> Equation {
    of(r#"
unknown = { u = {} }
coefficients = { lambda = {} }
cells = { flux = "grad(u)", source = "lambda*exp(u)" }
"#)
}

fn of(text: &str) -> Equation {
    Equation::from_toml("test", text).unwrap()
}
