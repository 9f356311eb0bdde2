//! Checks of a case that is solved as a form.

use femtile_solve::{Key, below};

use super::stationary::OF_ELASTICITY;
use super::{stationary, transient};
use crate::file::{
    ComponentsName, EquationKind, EquationSection, FieldName, Functional, Generator, MassName, Method,
    MetricName, ModesSection, OfUnknowns, Operator, Precision, PreconditionerName, Quadrature, SolverSection,
    TimeMethod, TimeSection, UnknownSection, Value,
};
use crate::place::has_key;
use crate::route::depends_on_unknown;
use crate::{Case, CaseError};

/// Checks the case; a key without meaning here is an error, so that none is ignored silently. Of reaction and diffusion the message
/// names the key that makes it a form.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let Some(key) = case.needs_form() else { return sections(case) };
    match (case.file.equation.kind, case.file.modes) {
        (EquationKind::Diffusion, _) => transient::check(case)?,
        (_, None) => stationary::check(case)?,
        (_, Some(_)) => {}
    }
    sections(case).map_err(|error| match error {
        CaseError::Input { path, text, key: of, span, message, cause } => {
            let message = format!("{message} (with {key} the equation is solved as a form)");
            CaseError::Input { path, text, key: of, span, message, cause }
        }
        other => other,
    })
}

fn sections(case: &Case) -> Result<(), CaseError> {
    let file = &case.file;
    if matches!(file.mesh.generate, Some(Generator::Grid { .. })) {
        let message = "a grid has no elements; take a mesh, such as kind = \"box\"";
        return wrong(case, &["mesh", "generate"], message);
    }
    equation(case)?;
    match &file.time {
        Some(section) => time(case, section)?,
        None if file.equation.capacity.is_some() && file.modes.is_none() => {
            let message = "is the factor of ∂u/∂t: give a [time] or a [modes] section, or leave it out";
            return wrong(case, &["equation", "capacity"], message);
        }
        None if file.equation.enthalpy.is_some() => {
            return wrong(
                case,
                &["equation", "enthalpy"],
                "is the content of an equation in time: give a [time] section",
            );
        }
        None => {}
    }
    match file.modes {
        Some(ModesSection { count }) => modes(case, count)?,
        None if file.equation.density.is_some() => {
            return wrong(
                case,
                &["equation", "density"],
                "is for [modes]: give that section, or leave this out",
            );
        }
        None => {}
    }
    if file.space.components != 1 {
        let message = "the equation says how many components u has: leave this out";
        return wrong(case, &["space", "components"], message);
    }
    if file.space.quadrature != Quadrature::default() {
        let message = "this equation is integrated with p + 1 Gauss points: leave this out";
        return wrong(case, &["space", "quadrature"], message);
    }
    if file.space.axisymmetric && file.equation.plane.is_some() {
        let message = "a body of revolution has stress and strain around its axis: leave this out";
        return wrong(case, &["equation", "plane"], message);
    }
    if file.space.axisymmetric && file.space.thickness.is_some() {
        let message = "bodies of revolution have no thickness: leave one of them out";
        return wrong(case, &["space", "thickness"], message);
    }
    solver(case)?;
    boundary(case)?;
    periodic(case)?;
    output(case)
}

fn wrong(case: &Case, path: &[&str], message: &str) -> Result<(), CaseError> {
    let path: Vec<Key> = path.iter().map(|key| (*key).into()).collect();
    Err(case.wrong(&path, message))
}

/// The keys of `[equation]` besides `kind`, with whether they are given.
fn given(equation: &EquationSection) -> [(&'static str, bool); 22] {
    let default = EquationSection::default();
    [
        ("sigma", equation.sigma != default.sigma),
        ("lambda", equation.lambda != default.lambda),
        ("source", equation.source != default.source),
        ("capacity", equation.capacity.is_some()),
        ("enthalpy", equation.enthalpy.is_some()),
        ("diffusion", equation.diffusion.is_some()),
        ("convection", equation.convection.is_some()),
        ("reaction", equation.reaction.is_some()),
        ("initial", equation.initial.is_some()),
        ("young", equation.young.is_some()),
        ("poisson", equation.poisson.is_some()),
        ("density", equation.density.is_some()),
        ("plane", equation.plane.is_some()),
        ("expansion", equation.expansion.is_some()),
        ("temperature", equation.temperature.is_some()),
        ("reference_temperature", equation.reference_temperature.is_some()),
        ("velocity", equation.velocity.is_some()),
        ("constants", !equation.constants.is_empty()),
        ("define", equation.define.is_some()),
        ("energy", equation.energy.is_some()),
        ("flux", equation.flux.is_some()),
        ("stabilise", equation.stabilise.is_some()),
    ]
}

/// The keys of `[equation]` and the conditions of a kind.
struct Keys {
    kind: &'static str,
    equation: &'static [&'static str],
    needed: &'static [&'static str],
    boundary: &'static [&'static str],
}

fn keys(kind: EquationKind) -> Keys {
    match kind {
        EquationKind::Elasticity => Keys {
            kind: "elasticity",
            equation: &[
                "young",
                "poisson",
                "expansion",
                "temperature",
                "reference_temperature",
                "density",
                "plane",
                "source",
                "constants",
            ],
            needed: &["young", "poisson"],
            boundary: &["dirichlet", "traction", "pressure", "flux", "total", "floating"],
        },
        EquationKind::Form => Keys {
            kind: "form",
            equation: &[
                "constants",
                "define",
                "energy",
                "flux",
                "source",
                "capacity",
                "enthalpy",
                "initial",
                "stabilise",
            ],
            needed: &[],
            boundary: &["dirichlet", "flux", "total", "floating"],
        },
        EquationKind::ReactionDiffusion => Keys {
            kind: "reaction-diffusion",
            equation: &["sigma", "lambda", "source", "capacity", "initial", "constants"],
            needed: &[],
            boundary: &["dirichlet", "neumann", "robin", "flux", "total", "floating"],
        },
        EquationKind::Diffusion => Keys {
            kind: "diffusion",
            equation: &["capacity", "diffusion", "reaction", "source", "initial", "constants"],
            needed: &[],
            boundary: &["dirichlet", "neumann", "robin", "flux", "total", "floating"],
        },
        _ => Keys {
            kind: "convection-diffusion",
            equation: &["sigma", "velocity", "lambda", "source", "stabilise", "initial", "constants"],
            needed: &["velocity"],
            boundary: &["dirichlet", "neumann", "robin", "flux", "total", "floating"],
        },
    }
}

/// Names joined for a message: `a`, `b` and `c`.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Checks `[equation]` and `[unknown]`.
fn equation(case: &Case) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    let own = keys(equation.kind);
    let has = format!("{} has {}", own.kind, listed(own.equation));
    let given = given(equation);
    if let Some((key, _)) = given.iter().find(|(key, given)| *given && !own.equation.contains(key)) {
        return wrong(case, &["equation", key], &format!("belongs to other equations; {has}"));
    }
    if let Some((key, _)) = given.iter().find(|(key, given)| !*given && own.needed.contains(key)) {
        return wrong(case, &["equation"], &format!("the key `{key}` is missing: {has}"));
    }
    if equation.kind == EquationKind::Elasticity && matches!(equation.source(), Value::Number(x) if *x != 0.0)
    {
        let message = "the source is a force per volume: give an array with an entry for each axis";
        return wrong(case, &["equation", "source"], message);
    }
    if equation.kind == EquationKind::ConvectionDiffusion && equation.initial.is_some() && is_linear(case) {
        let message = "is the first iterate where a flux through the boundary depends on u: leave this out";
        return wrong(case, &["equation", "initial"], message);
    }
    if equation.kind == EquationKind::Form { unknown(case) } else { Ok(()) }
}

/// Checks the unknown and the formulas of `kind = "form"`.
fn unknown(case: &Case) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    let unknowns = &case.file.unknown;
    if unknowns.is_empty() {
        let message = "a form needs its unknown: write [unknown] with u = {}, or u = { components = \"dimension\" } for a vector";
        return wrong(case, &["unknown"], message);
    }
    for (name, unknown) in unknowns {
        if matches!(unknown.components, Some(ComponentsName::Count(0 | 17..))) {
            return wrong(case, &["unknown", name, "components"], "a vector has 1 to 16 components");
        }
        if case.file.space.axisymmetric && matches!(unknown.components, Some(ComponentsName::Count(3))) {
            let message = "of a body of revolution these could be a vector in space or three numbers: take \"dimension\" for a vector, or \
                           an unknown for each number";
            return wrong(case, &["unknown", name, "components"], message);
        }
        let degree_is_given = has_key(&case.text, &["space".into(), "degree".into()]);
        let differs = unknown.degree.is_some_and(|degree| degree != case.file.space.degree);
        if degree_is_given && unknowns.len() == 1 && differs {
            let message = "[space] has another degree: leave one of them out";
            return wrong(case, &["unknown", name, "degree"], message);
        }
    }
    let has_source = equation.source != EquationSection::default().source;
    if equation.energy.is_none() && equation.flux.is_none() && !has_source {
        return wrong(case, &["equation"], "a form needs an `energy`, or a `flux` and a `source`");
    }
    let is_formula =
        |value: &Value| matches!(value, Value::Number(_) | Value::Text(_) | Value::Components(_));
    by_unknown(case, Some(&equation.source), &["equation".into(), "source".into()], |source| {
        (!is_formula(source)).then_some("of a form it is a formula, or an array of formulas for a vector")
    })?;
    if case.file.space.axisymmetric
        && let Some((name, _)) = equation.constants.iter().find(|(_, value)| is_tensor_of_plane(value))
    {
        let message = "give 3 × 3 entries: the third axis is the way around";
        return wrong(case, &["equation", "constants", name], message);
    }
    by_unknown(case, equation.flux.as_ref(), &["equation".into(), "flux".into()], |_| None)?;
    by_unknown(case, equation.initial.as_ref(), &["equation".into(), "initial".into()], |_| None)?;
    by_unknown(case, equation.capacity.as_ref(), &["equation".into(), "capacity".into()], |capacity| {
        let is_wrong = !(is_formula(capacity) || matches!(capacity, Value::Tensor(_)));
        is_wrong.then_some(
            "of a form it is a formula, or an array for a vector; values by tag and fields are `constants`",
        )
    })?;
    if equation.capacity.is_some() && equation.enthalpy.is_some() {
        return wrong(
            case,
            &["equation", "enthalpy"],
            "stands in place of `capacity`: leave one of them out",
        );
    }
    by_unknown(case, equation.enthalpy.as_ref(), &["equation".into(), "enthalpy".into()], |enthalpy| {
        (!is_formula(enthalpy)).then_some("is a formula, or an array of formulas for a vector")
    })?;
    let is_vector = |name: &String| unknowns.get(name).is_some_and(|unknown| unknown.components.is_some());
    let has_vector = match &equation.enthalpy {
        Some(OfUnknowns::One(content)) => unknowns.keys().any(is_vector) && !is_array(content),
        Some(OfUnknowns::Each(contents)) => {
            contents.iter().any(|(name, content)| is_vector(name) && !is_array(content))
        }
        None => false,
    };
    if has_vector {
        return wrong(
            case,
            &["equation", "enthalpy"],
            "of a vector is an array with the content of each component",
        );
    }
    for (i, section) in case.file.boundary.iter().enumerate() {
        let path: [Key; 2] = ["boundary".into(), i.into()];
        by_unknown(case, section.dirichlet.as_ref(), &below(&path, "dirichlet"), |_| None)?;
        by_unknown(case, section.flux.as_ref(), &below(&path, "flux"), |_| None)?;
        by_unknown(case, section.total.as_ref(), &below(&path, "total"), |_| None)?;
        by_unknown(case, section.floating.as_ref(), &below(&path, "floating"), |_| None)?;
    }
    for (i, section) in case.file.periodic.iter().enumerate() {
        let path: [Key; 3] = ["periodic".into(), i.into(), "jump".into()];
        by_unknown(case, section.jump.as_ref(), &path, |_| None)?;
    }
    for (i, section) in case.file.source.iter().enumerate() {
        let path: [Key; 3] = ["source".into(), i.into(), "total".into()];
        by_unknown(case, Some(&section.total), &path, |_| None)?;
    }
    Ok(())
}

/// Returns whether a value is an array of formulas, also in one text.
fn is_array(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.trim_start().starts_with('[') && !text.trim_start().starts_with("[["),
        value => matches!(value, Value::Components(_)),
    }
}

/// Returns whether a value is, or has by tag, a tensor of 2 × 2 entries.
fn is_tensor_of_plane(value: &Value) -> bool {
    match value {
        Value::Tensor(rows) => rows.len() == 2,
        Value::ByTag { by_tag, default } => by_tag.values().chain(default.as_deref()).any(is_tensor_of_plane),
        _ => false,
    }
}

/// Checks a value, or those of several unknowns, whose names must be among those there are.
fn by_unknown<T>(
    case: &Case,
    given: Option<&OfUnknowns<T>>,
    path: &[Key],
    reason: impl Fn(&T) -> Option<&'static str>,
) -> Result<(), CaseError> {
    let names: Vec<&str> = case.file.unknown.keys().map(String::as_str).collect();
    let refuse = |path: &[Key], value| match reason(value) {
        Some(message) => Err(case.wrong(path, message)),
        None => Ok(()),
    };
    match given {
        None => Ok(()),
        // The source is zero where it is not given.
        Some(OfUnknowns::One(value)) if names.len() > 1 && has_key(&case.text, path) => {
            refuse(path, value)?;
            let each: Vec<String> = names.iter().map(|name| format!("{name} = …")).collect();
            let message = format!(
                "there are several unknowns: give a table with one for each, {{ {} }}",
                each.join(", ")
            );
            Err(case.wrong(path, message))
        }
        Some(OfUnknowns::One(value)) => refuse(path, value),
        Some(OfUnknowns::Each(values)) => values.iter().try_for_each(|(name, value)| {
            let path = below(path, name.as_str());
            if !names.contains(&name.as_str()) {
                let message = format!("there is no unknown `{name}`; [unknown] has {}", names.join(", "));
                return Err(case.wrong(&path, message));
            }
            refuse(&path, value)
        }),
    }
}

/// Checks `[time]`.
fn time(case: &Case, time: &TimeSection) -> Result<(), CaseError> {
    if !matches!(case.file.equation.kind, EquationKind::Form | EquationKind::Diffusion) {
        return wrong(case, &["time"], "this equation is stationary: leave [time] out");
    }
    if case.file.continuation.is_some() {
        return wrong(
            case,
            &["continuation"],
            "load steps are for a steady equation: leave [time] or this out",
        );
    }
    let is_asked = has_key(&case.text, &["time".into(), "method".into()]);
    if time.method == TimeMethod::Adi && is_asked {
        let message = "\"adi\" is for grids: take \"bdf2\", the default here, \"sdirk2\", \"crank-nicolson\" or \"implicit-euler\"";
        return wrong(case, &["time", "method"], message);
    }
    if time.mass != MassName::Consistent {
        return wrong(case, &["time", "mass"], "a form has its consistent mass matrix: leave this out");
    }
    let functionals = &case.file.output.functionals;
    let mut functionals = functionals.iter();
    if time.method == TimeMethod::CrankNicolson
        && let Some(i) = functionals.position(|own| matches!(own, Functional::Flux { .. }))
    {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let message = "\"crank-nicolson\" does not determine the rate at the end of a step, which a flux needs: take \"bdf2\" or \"sdirk2\"";
        return Err(case.wrong(&path, message));
    }
    transient::stepping(case, time)
}

/// Checks a case with `[modes]`.
fn modes(case: &Case, count: usize) -> Result<(), CaseError> {
    let file = &case.file;
    if count == 0 {
        return wrong(case, &["modes", "count"], "no modes are asked for: take 1 or more");
    }
    for (key, given) in [("time", file.time.is_some()), ("continuation", file.continuation.is_some())] {
        if given {
            return wrong(case, &[key], "modes are those of a steady equation: leave this or [modes] out");
        }
    }
    if file.equation.kind == EquationKind::ConvectionDiffusion {
        return wrong(case, &["modes"], "modes are those of a symmetric equation, which convection is not");
    }
    // The source of a form may depend on the unknown.
    let has_source =
        file.equation.kind != EquationKind::Form && file.equation.source != EquationSection::default().source;
    for (key, given) in [("source", has_source), ("initial", file.equation.initial.is_some())] {
        if given {
            return wrong(case, &["equation", key], "modes have none: leave this out");
        }
    }
    if !file.source.is_empty() {
        return wrong(case, &["source"], "modes have no load: leave this out");
    }
    for (i, section) in file.boundary.iter().enumerate() {
        let path: [Key; 2] = ["boundary".into(), i.into()];
        let is_load = section.neumann.is_some()
            || section.traction.is_some()
            || section.pressure.is_some()
            || section.total.is_some();
        if is_load {
            let message =
                "modes have no load: leave this out; a part of the boundary without a condition is free";
            return Err(case.wrong(&below(&path, section.condition()), message));
        }
        if section.robin.as_ref().is_some_and(|robin| robin.value != Value::Number(0.0)) {
            let message = "modes have the value zero outside: take 0";
            return Err(case.wrong(&below(&below(&path, "robin"), "value"), message));
        }
    }
    if has_key(&case.text, &["solver".into(), "method".into()]) {
        return wrong(case, &["solver", "method"], "modes have a method of their own: leave this out");
    }
    if !file.output.functionals.is_empty() {
        let message = "functionals are those of one solution, and modes are several: leave them out";
        return wrong(case, &["output", "functionals"], message);
    }
    Ok(())
}

/// Returns whether an equation is linear for certain, without its formulas being read.
fn is_linear(case: &Case) -> bool {
    let equation = &case.file.equation;
    let has_state = || {
        let [sigma, lambda] = case.conduction_and_reaction();
        let capacity = equation.capacity.as_ref().and_then(OfUnknowns::one);
        [Some(&sigma), Some(&lambda), Some(equation.source()), capacity]
            .into_iter()
            .flatten()
            .any(depends_on_unknown)
    };
    let is_of_unknown = match equation.kind {
        EquationKind::Form => true,
        EquationKind::ReactionDiffusion | EquationKind::Diffusion => has_state(),
        _ => false,
    };
    !is_of_unknown && !case.has_flux_of_unknown()
}

/// Checks `[solver]`.
fn solver(case: &Case) -> Result<(), CaseError> {
    let (solver, default) = (&case.file.solver, SolverSection::default());
    let refuse = |key: &str, message: &str| wrong(case, &["solver", key], message);
    if solver.operator == Operator::MatrixFree {
        return refuse("operator", "this equation is solved with a matrix: take \"assembled\" or \"auto\"");
    }
    if matches!(solver.preconditioner, PreconditionerName::Gmg | PreconditionerName::Pmg) {
        let message = "multigrid on cells is not for forms: take \"amg\", \"jacobi\" or \"auto\"";
        return refuse("preconditioner", message);
    }
    if solver.precision == Precision::F32 {
        return refuse("precision", "single precision is for equations in time; use \"f64\"");
    }
    if solver.metric != MetricName::Auto {
        return refuse("metric", "is for operators without a matrix: leave this out");
    }
    let of_nonlinear = [
        ("nonlinear", solver.nonlinear != default.nonlinear),
        ("nonlinear_tolerance", solver.nonlinear_tolerance != default.nonlinear_tolerance),
        ("nonlinear_iterations", solver.nonlinear_iterations != default.nonlinear_iterations),
    ];
    if let Some((key, _)) = of_nonlinear.into_iter().find(|(_, given)| *given) {
        if is_linear(case) {
            return refuse(key, "this equation is linear: leave this out");
        }
        if case.file.modes.is_some() {
            return refuse(key, "modes are those of a linear equation: leave this out");
        }
    }
    let is_asked = solver.method != Method::Cg || has_key(&case.text, &["solver".into(), "method".into()]);
    if case.file.equation.kind == EquationKind::ConvectionDiffusion
        && is_asked
        && solver.method != Method::Gmres
    {
        return refuse(
            "method",
            "convection makes the matrix nonsymmetric: take \"gmres\", the default here",
        );
    }
    Ok(())
}

/// Checks the conditions of `[[boundary]]`.
fn boundary(case: &Case) -> Result<(), CaseError> {
    let own = keys(case.file.equation.kind);
    for (i, section) in case.file.boundary.iter().enumerate() {
        let key = section.condition();
        if !own.boundary.contains(&key) {
            let message = format!("{} has {}", own.kind, listed(own.boundary));
            return Err(case.wrong(&["boundary".into(), i.into(), key.into()], message));
        }
    }
    Ok(())
}

/// Checks `[[periodic]]`.
fn periodic(case: &Case) -> Result<(), CaseError> {
    for (i, section) in case.file.periodic.iter().enumerate() {
        let path: [Key; 2] = ["periodic".into(), i.into()];
        let Some(rotation) = &section.rotation else { continue };
        if section.translation.is_some() {
            return Err(case.wrong(&path, "give `translation` or `rotation`, not both"));
        }
        if !matches!(rotation.centre.len(), 2 | 3) {
            let path = below(&below(&path, "rotation"), "centre");
            return Err(case.wrong(&path, "a point has two or three coordinates"));
        }
        let are_numbers =
            |section: &UnknownSection| matches!(section.components, Some(ComponentsName::Count(2 | 3)));
        if let Some((name, _)) = case.file.unknown.iter().find(|(_, section)| are_numbers(section)) {
            let message = "beside a rotation these could be a vector or single numbers: take \"dimension\" for a vector, or an unknown for each \
                           number";
            return Err(case.wrong(&["unknown".into(), name.as_str().into(), "components".into()], message));
        }
    }
    Ok(())
}

/// Checks `[output]`.
fn output(case: &Case) -> Result<(), CaseError> {
    let file = &case.file;
    let output = &file.output;
    let kind = case.file.equation.kind;
    for (i, field) in output.fields.iter().enumerate() {
        let of_stress = matches!(field, FieldName::Stress | FieldName::Strain);
        let message = match kind == EquationKind::Elasticity {
            _ if file.time.is_some() || file.modes.is_some() => {
                "fields are computed for steady equations: leave them, or [time] and [modes], out"
            }
            true if *field == FieldName::Flux => "the flux of elasticity is its stress: take \"stress\"",
            false if of_stress => OF_ELASTICITY,
            _ => continue,
        };
        return Err(case.wrong(&["output".into(), "fields".into(), i.into()], message));
    }
    let of_space = file.space.degree;
    let mut degrees = file.unknown.values().map(|unknown| unknown.degree.unwrap_or(of_space));
    let first = degrees.next();
    if !output.fields.is_empty() && degrees.any(|degree| Some(degree) != first) {
        let message =
            "fields are computed for unknowns of one degree: give all the same, or leave fields out";
        return wrong(case, &["output", "fields"], message);
    }
    if output.vtu.has_pieces() {
        return wrong(
            case,
            &["output", "vtu"],
            "the solution of this equation is one file, on any number of ranks: `true`, `false` or \"surface\"",
        );
    }
    if !output.matrix.is_empty() {
        let reason = if kind == EquationKind::Elasticity {
            Some("is that of an equation whose unknown is one number: leave this out")
        } else if case.file.time.is_some() || case.file.modes.is_some() {
            Some("is that of a steady equation: leave this, or [time] and [modes], out")
        } else {
            None
        };
        if let Some(message) = reason {
            return wrong(case, &["output", "matrix"], message);
        }
    }
    for (i, functional) in output.functionals.iter().enumerate() {
        let has_energy = match kind {
            EquationKind::Form => case.file.equation.energy.is_some(),
            kind => kind != EquationKind::ConvectionDiffusion,
        };
        if matches!(functional, Functional::Energy { .. }) && !has_energy {
            let message = match kind {
                EquationKind::Form => "needs an equation with `energy`",
                _ => "is not available for this kind of equation, which is not symmetric",
            };
            let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
            return Err(case.wrong(&below(&path, "kind"), message));
        }
    }
    Ok(())
}
