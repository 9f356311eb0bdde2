//! Validation of a case, as far as possible without its mesh.

mod boundary;
mod cardiac;
mod diffusion;
mod form;
mod functionals;
mod interface;
mod solver;
mod stationary;
mod transient;

use femtile_solve::Key;

use crate::file::{
    CheckName, Entries, EquationKind, InterfaceSection, OfUnknowns, PeriodicSection, Quadrature,
};
use crate::placed::placed;
use crate::route::Route;
use crate::{Case, CaseError};

impl Case {
    /// Checks the values of the case, which options of the program may have changed since it was read.
    ///
    /// # Errors
    /// [`CaseError::Input`] with the place of the first wrong value.
    pub fn check(&self) -> Result<(), CaseError> {
        sections(self).map_err(|error| placed(self, error))
    }
}

fn sections(case: &Case) -> Result<(), CaseError> {
    mesh(case)?;
    solver::check(case)?;
    keys_of_forms(case)?;
    if case.file.modes.is_some() && case.file.equation.kind.is_in_time() {
        let message = "modes are for `\"reaction-diffusion\"`, `\"elasticity\"` and `\"form\"`: decay of heat is that of \
                           `\"reaction-diffusion\"` with its `capacity`";
        return Err(case.wrong(&["modes".into()], message));
    }
    match case.route() {
        Route::Stationary => stationary::check(case)?,
        Route::Transient => transient::check(case)?,
        Route::Grid => diffusion::check(case)?,
        Route::Heart => cardiac::check(case)?,
        Route::Form => form::check(case)?,
    }
    space(case)?;
    sections_of_hearts(case)?;
    boundary::check(case)?;
    interface::check(case)?;
    functionals::check(case)
}

/// Checks `[mesh]`.
fn mesh(case: &Case) -> Result<(), CaseError> {
    let mesh = &case.file.mesh;
    if case.embedding.mesh.is_some() && (mesh.file.is_some() || mesh.generate.is_some()) {
        let message = "a mesh is given beside the case: leave out `file` and `generate`, or that mesh";
        return Err(case.wrong(&["mesh".into()], message));
    }
    if case.embedding.mesh.is_none() && mesh.file.is_some() == mesh.generate.is_some() {
        return Err(case.wrong(&["mesh".into()], "give exactly one of `file` and `generate`"));
    }
    if mesh.file.is_some() && mesh.check == Some(CheckName::Generated) {
        let message = "`generated` relies on what generators guarantee; a file needs check = \"full\"";
        return Err(case.wrong(&["mesh".into(), "check".into()], message));
    }
    if mesh.tags.is_some() && mesh.file.is_none() {
        let message = "chooses an array of `file`, which is missing";
        return Err(case.wrong(&["mesh".into(), "tags".into()], message));
    }
    if mesh.refine > 10 {
        let message = format!("{} refinements would make 8^{0} cells of one; 10 is the most", mesh.refine);
        return Err(case.wrong(&["mesh".into(), "refine".into()], message));
    }
    Ok(())
}

/// Checks `[space]`.
fn space(case: &Case) -> Result<(), CaseError> {
    let space = &case.file.space;
    let wrong = |key: &str, message: &str| Err(case.wrong(&["space".into(), key.into()], message));
    if case.file.equation.kind == EquationKind::Diffusion && !case.is_transient_on_mesh() {
        let no_elements = "has no meaning here: a grid has no elements";
        if space.degree != 1 {
            return wrong("degree", no_elements);
        }
        if space.components != 1 {
            return wrong("components", "equations in time have one");
        }
        if space.quadrature != Quadrature::default() {
            return wrong("quadrature", no_elements);
        }
    }
    Ok(case.space_config().check()?)
}

/// Refuses values by unknown in an equation with one unknown.
fn by_unknown(case: &Case) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    let wrong = |path: &[Key]| {
        let message =
            "a table of values by unknown is for kind = \"form\", and there is no value with keys like these";
        Err(case.wrong(path, message))
    };
    let of_equation = [
        ("source", equation.source.one().is_none()),
        ("capacity", matches!(equation.capacity, Some(OfUnknowns::Each(_)))),
        ("initial", matches!(equation.initial, Some(OfUnknowns::Each(_)))),
    ];
    if let Some((key, _)) = of_equation.into_iter().find(|(_, is_table)| *is_table) {
        return wrong(&["equation".into(), key.into()]);
    }
    for (i, section) in case.file.boundary.iter().enumerate() {
        let of_section = [
            ("dirichlet", matches!(section.dirichlet, Some(OfUnknowns::Each(_)))),
            ("flux", matches!(section.flux, Some(OfUnknowns::Each(_)))),
            ("total", matches!(section.total, Some(OfUnknowns::Each(_)))),
            ("floating", matches!(section.floating, Some(OfUnknowns::Each(_)))),
        ];
        if let Some((key, _)) = of_section.into_iter().find(|(_, is_table)| *is_table) {
            return wrong(&["boundary".into(), i.into(), key.into()]);
        }
    }
    let has_table = |section: &InterfaceSection| matches!(section.conductance, Some(OfUnknowns::Each(_)));
    if let Some(i) = case.file.interface.iter().position(has_table) {
        return wrong(&["interface".into(), i.into(), "conductance".into()]);
    }
    let has_table = |section: &PeriodicSection| matches!(section.jump, Some(OfUnknowns::Each(_)));
    if let Some(i) = case.file.periodic.iter().position(has_table) {
        return wrong(&["periodic".into(), i.into(), "jump".into()]);
    }
    match case.file.source.iter().position(|section| matches!(section.total, OfUnknowns::Each(_))) {
        Some(i) => wrong(&["source".into(), i.into(), "total".into()]),
        None => Ok(()),
    }
}

/// Refuses keys that grids and hearts do not have, and keys of one kind of equation in others.
fn keys_of_forms(case: &Case) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    if equation.kind != EquationKind::Form {
        sections_of_forms(case)?;
        by_unknown(case)?;
        if matches!(equation.initial, Some(OfUnknowns::One(Entries::Each(_)))) {
            let message = "an array is for the components of a form: give one number or expression";
            return Err(case.wrong(&["equation".into(), "initial".into()], message));
        }
    }
    if equation.kind.is_form() {
        return Ok(());
    }
    match case.route() {
        Route::Grid => without_forms(case, "a grid has no elements; take a mesh, such as kind = \"box\"")?,
        Route::Heart => without_forms(case, "is not for hearts")?,
        Route::Stationary | Route::Transient | Route::Form => {}
    }
    let (elasticity, convection, form) = ("elasticity", "convection-diffusion", "form");
    let of_equation = [
        ("young", equation.young.is_some(), elasticity),
        ("poisson", equation.poisson.is_some(), elasticity),
        ("density", equation.density.is_some(), elasticity),
        ("plane", equation.plane.is_some(), elasticity),
        ("expansion", equation.expansion.is_some(), elasticity),
        ("temperature", equation.temperature.is_some(), elasticity),
        ("reference_temperature", equation.reference_temperature.is_some(), elasticity),
        ("velocity", equation.velocity.is_some(), convection),
        ("stabilise", equation.stabilise.is_some(), convection),
        ("define", equation.define.is_some(), form),
        ("energy", equation.energy.is_some(), form),
        ("flux", equation.flux.is_some(), form),
        ("enthalpy", equation.enthalpy.is_some(), form),
    ];
    if let Some((key, _, kind)) = of_equation.into_iter().find(|(_, given, _)| *given) {
        return Err(case.wrong(&["equation".into(), key.into()], format!("belongs to `kind = \"{kind}\"`")));
    }
    for (i, section) in case.file.boundary.iter().enumerate() {
        let given = [
            ("traction", section.traction.is_some(), elasticity),
            ("pressure", section.pressure.is_some(), elasticity),
        ];
        if let Some((key, _, kind)) = given.into_iter().find(|(_, given, _)| *given) {
            let message = format!("belongs to `kind = \"{kind}\"`");
            return Err(case.wrong(&["boundary".into(), i.into(), key.into()], message));
        }
    }
    Ok(())
}

/// Refuses keys that only forms on meshes have.
fn without_forms(case: &Case, reason: &str) -> Result<(), CaseError> {
    let file = &case.file;
    if let Some(path) = file.key_of_sides() {
        return Err(case.wrong(&path, reason));
    }
    let keys: [(&[&str], bool); 5] = [
        (&["interface"], !file.interface.is_empty()),
        (&["space", "axisymmetric"], file.space.axisymmetric),
        (&["space", "thickness"], file.space.thickness.is_some()),
        (&["source"], !file.source.is_empty()),
        (&["equation", "constants"], !file.equation.constants.is_empty()),
    ];
    if let Some((path, _)) = keys.into_iter().find(|(_, given)| *given) {
        let path: Vec<Key> = path.iter().map(|key| (*key).into()).collect();
        return Err(case.wrong(&path, reason));
    }
    for (i, section) in file.boundary.iter().enumerate() {
        let keys = [
            ("total", section.total.is_some()),
            ("flux", section.flux.is_some()),
            ("from", section.from.is_some()),
        ];
        if let Some((key, _)) = keys.into_iter().find(|(_, given)| *given) {
            return Err(case.wrong(&["boundary".into(), i.into(), key.into()], reason));
        }
    }
    Ok(())
}

/// Refuses sections that belong to `kind = "form"` alone.
fn sections_of_forms(case: &Case) -> Result<(), CaseError> {
    if case.file.continuation.is_some() {
        return Err(case.wrong(&["continuation".into()], "load steps belong to `kind = \"form\"`"));
    }
    if !case.file.unknown.is_empty() {
        return Err(case.wrong(
            &["unknown".into()],
            "belongs to `kind = \"form\"`; other equations name their unknown u",
        ));
    }
    Ok(())
}

/// Refuses sections that belong to the monodomain equation alone.
fn sections_of_hearts(case: &Case) -> Result<(), CaseError> {
    let file = &case.file;
    if file.equation.kind == EquationKind::Monodomain {
        return Ok(());
    }
    let given = [
        ("membrane", file.membrane.is_some()),
        ("stimulus", !file.stimulus.is_empty()),
        ("activation", file.activation.is_some()),
        ("ecg", file.ecg.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(case.wrong(&[key.into()], "is for kind = \"monodomain\"")),
        None => Ok(()),
    }
}
