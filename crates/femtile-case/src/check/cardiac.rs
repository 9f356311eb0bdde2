//! Checks of a case with `kind = "monodomain"`.

use femtile_solve::Key;

use super::transient::check_times;
use crate::file::{EquationSection, Generator, Precision, TimeMethod};
use crate::{Case, CaseError};

/// Refuses settings that have no meaning here.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let file = &case.file;
    let wrong = |path: &[&str], message: &str| {
        let path: Vec<Key> = path.iter().map(|key| (*key).into()).collect();
        Err(case.wrong(&path, message))
    };
    if file.membrane.is_none() {
        return wrong(&["equation", "kind"], "monodomain needs a [membrane] section with a `model`");
    }
    let Some(time) = &file.time else {
        return wrong(&["equation", "kind"], "monodomain needs a [time] section with `end` and `step`");
    };
    if matches!(file.mesh.generate, Some(Generator::Grid { .. })) {
        return wrong(&["mesh", "generate"], "a grid has no elements; take a mesh, such as kind = \"box\"");
    }
    let default = EquationSection::default();
    let equation = &file.equation;
    let others = [
        ("lambda", equation.lambda != default.lambda),
        ("source", equation.source != default.source),
        ("capacity", equation.capacity.is_some()),
        ("diffusion", equation.diffusion.is_some()),
        ("convection", equation.convection.is_some()),
        ("reaction", equation.reaction.is_some()),
        ("initial", equation.initial.is_some()),
    ];
    if let Some((key, _)) = others.into_iter().find(|(_, given)| *given) {
        let message = "belongs to other equations; monodomain has sigma, [membrane] and [[stimulus]]";
        return wrong(&["equation", key], message);
    }
    if !file.boundary.is_empty() {
        return wrong(&["boundary"], "tissue has no flux through its boundary: leave this out");
    }
    if file.space.degree != 1 || file.space.components != 1 {
        return wrong(&["space"], "the potential has linear elements and one component");
    }
    if file.solver.precision == Precision::F32 {
        return wrong(&["solver", "precision"], "use \"f64\"");
    }
    if !file.output.fields.is_empty() {
        return wrong(&["output", "fields"], "maps of activation are written without being asked for");
    }
    if file.output.vtu.has_pieces() {
        return wrong(&["output", "vtu"], "maps of hearts are one file: `true`, `false` or \"surface\"");
    }
    let is_implicit = time.method == TimeMethod::ImplicitEuler;
    if !is_implicit && !matches!(time.method, TimeMethod::Adi | TimeMethod::Godunov | TimeMethod::Strang) {
        let message = "monodomain has \"godunov\", the default, \"strang\" and \"implicit-euler\"";
        return wrong(&["time", "method"], message);
    }
    if is_implicit && case.ranks().n() > 1 {
        let message =
            "several ranks advance hearts by splitting: use method = \"godunov\" or \"strang\", or one rank";
        return wrong(&["solver", "ranks"], message);
    }
    let given = [time.step.is_some(), time.steps.is_some(), time.tolerance.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        let message = "give exactly one of `step`, a length, `steps`, a number, and `tolerance`, from which lengths are chosen";
        return wrong(&["time", "end"], message);
    }
    if time.steps == Some(0) {
        return wrong(&["time", "steps"], "at least one step is needed");
    }
    if time.tolerance.is_some() && !is_implicit {
        let message = "splitting has steps of one length: give `step`, or take method = \"implicit-euler\"";
        return wrong(&["time", "tolerance"], message);
    }
    check_times(time).map_err(|(key, message)| case.wrong(&["time".into(), key.into()], message))
}
