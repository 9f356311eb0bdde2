//! Checks of a case with `kind = "diffusion"` on a mesh.

use femtile_solve::Key;

use crate::file::{EquationSection, Generator, Precision, TimeMethod, TimeSection, Times};
use crate::{Case, CaseError};

/// Refuses settings that have no meaning here.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let file = &case.file;
    let wrong = |path: &[&str], message: &str| {
        let path: Vec<Key> = path.iter().map(|key| (*key).into()).collect();
        Err(case.wrong(&path, message))
    };
    let Some(time) = &file.time else {
        let message = "diffusion needs a [time] section with `end` and `steps` or `tolerance`";
        return wrong(&["equation", "kind"], message);
    };
    if matches!(file.mesh.generate, Some(Generator::Grid { .. })) {
        let message = "a grid is for method = \"adi\"; other methods take a mesh, such as kind = \"box\"";
        return wrong(&["time", "method"], message);
    }
    stepping(case, time)?;
    if time.method == TimeMethod::Adi {
        let message = "\"adi\", the default, is for grids (kind = \"grid\"); on a mesh take \"bdf2\", \"sdirk2\", \"crank-nicolson\" or \"implicit-euler\"";
        return wrong(&["time", "method"], message);
    }
    let default = EquationSection::default();
    for (key, given) in
        [("sigma", file.equation.sigma != default.sigma), ("lambda", file.equation.lambda != default.lambda)]
    {
        if given {
            let message = "belongs to equations without time; the coefficients here are capacity, diffusion, reaction and source";
            return wrong(&["equation", key], message);
        }
    }
    if file.equation.convection.is_some() {
        return wrong(&["equation", "convection"], "convection is for method = \"adi\" on a grid alone");
    }
    if file.space.components != 1 {
        return wrong(&["space", "components"], "equations in time have one");
    }
    if file.solver.precision == Precision::F32 {
        return wrong(&["solver", "precision"], "f32 is for method = \"adi\"; use \"f64\"");
    }
    if !file.output.fields.is_empty() {
        return wrong(&["output", "fields"], "fields are computed for equations without time alone");
    }
    if let Some(i) = file.boundary.iter().position(|section| section.periodic) {
        let message = "periodic sides are for method = \"adi\" on a grid";
        return Err(case.wrong(&["boundary".into(), i.into(), "periodic".into()], message));
    }
    Ok(())
}

/// Checks the steps of an implicit scheme.
pub(super) fn stepping(case: &Case, time: &TimeSection) -> Result<(), CaseError> {
    let wrong = |key: &str, message: &str| Err(case.wrong(&["time".into(), key.into()], message));
    if matches!(time.method, TimeMethod::Godunov | TimeMethod::Strang) {
        return wrong("method", "splitting is for kind = \"monodomain\"");
    }
    for (key, given) in [("step", time.step), ("theta", time.theta)] {
        if given.is_some() {
            return wrong(key, "is for kind = \"monodomain\"; give `steps` or `tolerance`");
        }
    }
    check_time(time).map_err(|(key, message)| case.wrong(&["time".into(), key.into()], message))
}

fn check_time(time: &TimeSection) -> Result<(), (&'static str, String)> {
    let wrong = |key, message: &str| Err((key, message.to_owned()));
    if !(time.start.is_finite() && time.end.is_finite() && time.end > time.start) {
        return Err(("end", format!("{} has to lie after `start`, {}", time.end, time.start)));
    }
    match (time.steps, time.tolerance) {
        (Some(_), Some(_)) => return wrong("tolerance", "give `steps` or `tolerance`, not both"),
        (None, None) => {
            return wrong("end", "give `steps`, a number, or `tolerance`, from which lengths are chosen");
        }
        (Some(0), _) => return wrong("steps", "at least one step is needed"),
        _ => {}
    }
    if time.rannacher_steps > 0 {
        return wrong(
            "rannacher_steps",
            "is for method = \"adi\"; bdf2 and sdirk2 damp rough initial values",
        );
    }
    let of_tolerance = [
        ("tolerance", time.tolerance),
        ("absolute_tolerance", time.absolute_tolerance),
        ("first_step", time.first_step),
        ("shortest_step", time.shortest_step),
        ("longest_step", time.longest_step),
    ];
    for (key, value) in of_tolerance {
        let Some(value) = value else { continue };
        if time.tolerance.is_none() {
            return Err((key, "goes with `tolerance`".into()));
        }
        if !(value.is_finite() && value > 0.0) {
            return Err((key, format!("{value} is not positive")));
        }
    }
    check_times(time)
}

/// Checks the times of frames and traces, and the distance of checkpoints.
pub(super) fn check_times(time: &TimeSection) -> Result<(), (&'static str, String)> {
    let wrong = |key, message: &str| Err((key, message.to_owned()));
    if !(time.start.is_finite() && time.end.is_finite() && time.end > time.start) {
        return Err(("end", format!("{} has to lie after `start`, {}", time.end, time.start)));
    }
    for (key, times) in [("frames", &time.frames), ("traces", &time.traces)] {
        match times {
            Some(Times::Every { every }) if !(every.is_finite() && *every > 0.0) => {
                return Err((key, format!("every = {every} is not positive")));
            }
            Some(Times::Every { every }) if (time.end - time.start) / every > 1e6 => {
                return Err((key, format!("every = {every} would be more than a million times")));
            }
            Some(Times::List(times)) => {
                if let Some(outside) = times.iter().find(|t| !(time.start..=time.end).contains(*t)) {
                    return Err((key, format!("{outside} is not between `start` and `end`")));
                }
            }
            _ => {}
        }
    }
    match &time.checkpoint {
        Some(section) if section.steps.is_some() == section.minutes.is_some() => {
            wrong("checkpoint", "give exactly one of `steps` and `minutes`")
        }
        Some(section) if section.steps == Some(0) => wrong("checkpoint", "at least one step is needed"),
        Some(section) if section.minutes.is_some_and(|minutes| !(0.0..=1e6).contains(&minutes)) => {
            wrong("checkpoint", "`minutes` has to be a number, not negative")
        }
        _ => Ok(()),
    }
}
