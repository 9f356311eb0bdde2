//! Checks of a case with `kind = "diffusion"`.

use femtile_mesh::io::vtu::Compression;
use femtile_solve::Key;

use crate::file::{EquationSection, Functional, Generator, MassName, SolverSection, VtuOutput};
use crate::{Case, CaseError};

/// Checks the case; a key without meaning here is an error, so that none is ignored silently.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let file = &case.file;
    let wrong = |path: &[Key], message: &str| Err(case.wrong(path, message));
    if !matches!(file.mesh.generate, Some(Generator::Grid { .. })) {
        let message = "diffusion is solved on a grid: generate = { kind = \"grid\", nodes = [65, 65] }";
        return wrong(&["mesh".into()], message);
    }
    if file.mesh.refine > 0 || file.mesh.scale != 1.0 || file.mesh.merge || !file.mesh.accept.is_empty() {
        return wrong(
            &["mesh".into()],
            "a grid is neither refined nor scaled nor merged nor checked; choose its `nodes` and corners",
        );
    }
    if !file.region.is_empty() {
        return wrong(&["region".into()], "a grid has no cells: put `if(…)` into the expressions");
    }
    let Some(time) = &file.time else {
        let message = "diffusion needs a [time] section with `end` and `steps`";
        return wrong(&["equation".into(), "kind".into()], message);
    };
    if time.steps.is_none() {
        return wrong(&["time".into()], "the key `steps` is missing: the number of steps");
    }
    let of_meshes = [
        ("tolerance", time.tolerance.is_some()),
        ("absolute_tolerance", time.absolute_tolerance.is_some()),
        ("first_step", time.first_step.is_some()),
        ("shortest_step", time.shortest_step.is_some()),
        ("longest_step", time.longest_step.is_some()),
        ("mass", time.mass != MassName::default()),
        ("frames", time.frames.is_some()),
        ("traces", time.traces.is_some()),
        ("checkpoint", time.checkpoint.is_some()),
        ("restart", time.restart),
    ];
    if let Some((key, _)) = of_meshes.into_iter().find(|(_, given)| *given) {
        return wrong(&["time".into(), key.into()], "is not for method = \"adi\", but for those on a mesh");
    }
    let default = EquationSection::default();
    for (key, given) in
        [("sigma", file.equation.sigma != default.sigma), ("lambda", file.equation.lambda != default.lambda)]
    {
        if given {
            let message = "belongs to `kind = \"reaction-diffusion\"`; the coefficients here are diffusion, convection, reaction, source";
            return wrong(&["equation".into(), key.into()], message);
        }
    }
    if file.equation.capacity.is_some() {
        let message = "belongs to equations on a mesh, such as method = \"bdf2\"; on a grid divide the other coefficients by it";
        return wrong(&["equation".into(), "capacity".into()], message);
    }
    check_solver(case)?;
    let is_zero = file.equation.source == default.source && file.equation.initial.is_none();
    if is_zero && file.boundary.is_empty() {
        let message =
            "nothing determines u: give an `initial` value, a `source`, or a condition in [[boundary]]";
        return wrong(&["equation".into()], message);
    }
    for (i, section) in file.boundary.iter().enumerate() {
        if section.nodes.is_some() {
            let message = "a condition on a grid is for a side: `where = \"xmin\"`";
            return wrong(&["boundary".into(), i.into(), "nodes".into()], message);
        }
        if section.robin.is_some() {
            let message = "sides of a grid are dirichlet, neumann or periodic";
            return wrong(&["boundary".into(), i.into(), "robin".into()], message);
        }
    }
    check_output(case)
}

fn check_output(case: &Case) -> Result<(), CaseError> {
    let output = &case.file.output;
    let wrong = |path: &[Key], message: &str| Err(case.wrong(path, message));
    if !output.fields.is_empty() {
        return wrong(&["output".into(), "fields".into()], "a grid has u alone");
    }
    if matches!(output.vtu, VtuOutput::Part(_)) {
        return wrong(&["output".into(), "vtu".into()], "solution.vti has all nodes: `true` or `false`");
    }
    if output.vtkhdf {
        let message = "holds cells of a mesh, and a grid has none: solution.vti shows it";
        return wrong(&["output".into(), "vtkhdf".into()], message);
    }
    if Compression::from(output.compress) != Compression::None {
        return wrong(&["output".into(), "compress".into()], "solution.vti is not compressed");
    }
    for (i, functional) in output.functionals.iter().enumerate() {
        if let Functional::Energy { .. }
        | Functional::ErrorH1 { .. }
        | Functional::Flux { .. }
        | Functional::Along { .. } = functional
        {
            let message =
                "is not available on a grid; take max, min, integral, mean, l2_norm, value_at or error_l2";
            return wrong(&["output".into(), "functionals".into(), i.into(), "kind".into()], message);
        }
    }
    Ok(())
}

fn check_solver(case: &Case) -> Result<(), CaseError> {
    let (solver, default) = (&case.file.solver, SolverSection::default());
    let keys = [
        ("operator", solver.operator != default.operator),
        ("format", solver.format != default.format),
        ("method", solver.method != default.method),
        ("steps", solver.steps != default.steps),
        ("preconditioner", solver.preconditioner != default.preconditioner),
        ("tolerance", solver.tolerance != default.tolerance),
        ("max_iterations", solver.max_iterations != default.max_iterations),
        ("nonlinear", solver.nonlinear != default.nonlinear),
        ("nonlinear_tolerance", solver.nonlinear_tolerance != default.nonlinear_tolerance),
        ("nonlinear_iterations", solver.nonlinear_iterations != default.nonlinear_iterations),
    ];
    match keys.into_iter().find(|(_, changed)| *changed) {
        Some((key, _)) => {
            let message = "has no meaning here: the systems of a step are solved directly";
            Err(case.wrong(&["solver".into(), key.into()], message))
        }
        None => Ok(()),
    }
}
