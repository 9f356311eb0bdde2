//! The equation of a form for the page of a run: as written, as formulas, and the class of its tangent.

use femtile_expression::{Equality, Mathematics};
use femtile_form::{Class, Dependence, Derivation, Equation, Form, Formulas};
use femtile_report::{EquationPart, FormulaRow, FormulaTable};
use femtile_solve::{FormProblem, FormSolution};

use super::{interface, settings};
use crate::conditions::text;
use crate::file::{EquationKind, OfUnknowns};
use crate::{Case, CaseError};

/// Describes the equation of a case with its solution.
pub(super) fn equation(
    case: &Case,
    problem: &FormProblem<'_>,
    solution: &FormSolution<'_>,
) -> Result<EquationPart, CaseError> {
    let form = solution.form();
    let derivations = problem.derivations(case.file.modes.is_some())?;
    Ok(EquationPart {
        written: written(case),
        weak_form: weak_form(case, form),
        formulas: derivations
            .iter()
            .flat_map(|derivation| tables(case, derivation, form))
            .filter(|table| !table.heading.is_empty())
            .collect(),
        properties: properties(case, form, solution),
    })
}

/// Returns keys and formulas as they were written.
fn written(case: &Case) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = match settings::library_equation(case) {
        Some(name) => vec![(name.to_owned(), Equation::text_of(name).unwrap_or_default().to_owned())],
        None => written_form(case),
    };
    if let Some(thickness) = &case.file.space.thickness {
        rows.push(("thickness".to_owned(), text(thickness)));
    }
    for (i, section) in case.file.boundary.iter().enumerate() {
        if let Some(flux) = &section.flux {
            let key = format!("boundary[{i}].flux");
            match flux {
                OfUnknowns::One(text) => rows.push((key, text.clone())),
                OfUnknowns::Each(texts) => rows
                    .extend(texts.iter().map(|(unknown, text)| (format!("{key}.{unknown}"), text.clone()))),
            }
        }
    }
    for (i, section) in case.file.source.iter().enumerate() {
        let text = format!("point = {}, total = {}", text(&section.point), text(&section.total));
        rows.push((format!("source[{i}]"), text));
    }
    for (i, section) in case.file.interface.iter().enumerate() {
        let values = interface::values(section, &[]).into_iter();
        rows.extend(values.map(|(_, value)| (format!("interface[{i}]"), text(value))));
        let fluxes = interface::fluxes(section);
        rows.extend(fluxes.map(|flux| (format!("interface[{i}].flux"), flux.clone())));
    }
    rows
}

/// Returns the keys of `kind = "form"`.
fn written_form(case: &Case) -> Vec<(String, String)> {
    let equation = &case.file.equation;
    let mut rows: Vec<(String, String)> = Vec::new();
    for (name, unknown) in &case.file.unknown {
        rows.push((format!("unknown.{name}"), text(unknown)));
    }
    rows.extend(equation.constants.iter().map(|(name, value)| (format!("constants.{name}"), text(value))));
    let texts = [("define", &equation.define), ("energy", &equation.energy)];
    rows.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text.clone()?))));
    let (flux, source, capacity) = settings::terms(equation);
    let storage = if equation.enthalpy.is_some() { "enthalpy" } else { "capacity" };
    for (key, formulas) in [("flux", flux), ("source", source), (storage, capacity)] {
        rows.extend(of_unknowns(key, &formulas));
    }
    rows.extend(equation.stabilise.map(|stabilise| ("stabilise".to_owned(), text(&stabilise))));
    rows
}

fn of_unknowns(key: &str, formulas: &Formulas) -> Vec<(String, String)> {
    match formulas {
        Formulas::None => Vec::new(),
        Formulas::One(text) => vec![(key.to_owned(), text.clone())],
        Formulas::ByUnknown(texts) => {
            texts.iter().map(|(unknown, text)| (format!("{key}.{unknown}"), text.clone())).collect()
        }
    }
}

/// Returns lines of MathML; integrals of bodies of revolution have the circumference as weight, those of sheets the thickness.
fn weak_form(case: &Case, form: &Form) -> Vec<String> {
    let space = "<mspace width=\"0.3em\"></mspace>";
    let weight = match (case.file.space.axisymmetric, &case.file.space.thickness) {
        (true, _) => format!("{space}<mn>2</mn><mi>π</mi><mi>x</mi>"),
        (false, Some(_)) => format!("{space}<mi>thickness</mi>"),
        (false, None) => String::new(),
    };
    let integral = |integrand: &str| format!("<mo>∫</mo>{integrand}{weight}{space}<mi>d</mi><mi>x</mi>");
    let product = if form.n_components() > 1 { ":" } else { "·" };
    let flux = integral(&format!("<mi>flux</mi><mo>{product}</mo><mo>∇</mo><mi>v</mi>"));
    let source = integral("<mi>source</mi><mo>·</mo><mi>v</mi>");
    let on_boundary = |sign: &str| match form.integrals().len() {
        1 => String::new(),
        _ => {
            let gamma = "<msub><mo>∫</mo><mi>Γ</mi></msub><msub><mi>flux</mi><mi>Γ</mi></msub>";
            format!("<mo>{sign}</mo>{gamma}<mo>·</mo><mi>v</mi>{weight}{space}<mi>d</mi><mi>s</mi>")
        }
    };
    let at_points = match case.file.source.is_empty() {
        true => "",
        false => {
            "<mo>+</mo><munder><mo>∑</mo><mi>s</mi></munder><msub><mi>total</mi><mi>s</mi></msub><mo>·</mo><mi>v</mi><mo>(</mo>\
             <msub><mi>x</mi><mi>s</mi></msub><mo>)</mo>"
        }
    };
    let all = "<mspace width=\"1em\"></mspace><mtext>for all v</mtext>";
    let mut lines = vec![match case.file.modes {
        Some(_) => {
            let mass = match case.file.equation.kind {
                EquationKind::Elasticity => "density",
                _ => "capacity",
            };
            let mass = integral(&format!(
                "<mi>{mass}</mi><mspace width=\"0.17em\"></mspace><mi>u</mi><mo>·</mo><mi>v</mi>"
            ));
            format!("{flux}<mo>−</mo>{source}{}<mo>=</mo><mi>λ</mi>{mass}{all}", on_boundary("−"))
        }
        None => format!("{flux}<mo>=</mo>{source}{}{at_points}{all}", on_boundary("+")),
    }];
    if form.integrals()[0].integrand.energy().is_some() {
        let by = |by: &str| {
            format!("<mfrac><mrow><mo>∂</mo><mi>energy</mi></mrow><mrow><mo>∂</mo>{by}</mrow></mfrac>")
        };
        let [by_gradient, by_value] = [by("<mo>∇</mo><mi>u</mi>"), by("<mi>u</mi>")];
        let comma = "<mo>,</mo><mspace width=\"1em\"></mspace>";
        lines.push(format!(
            "<mi>flux</mi><mo>=</mo>{by_gradient}<mo>+</mo><mi>…</mi>{comma}<mi>source</mi><mo>=</mo><mi>…</mi><mo>−</mo>{by_value}"
        ));
    }
    lines
}

/// Returns the formulas of an integral and of its tangent; one without formulas has no heading.
fn tables(case: &Case, derivation: &Derivation, form: &Form) -> [FormulaTable; 2] {
    let Derivation { term, residual, tangent, shift } = derivation;
    let [of_residual, of_tangent] = match term {
        None => ["Flux and source".to_owned(), "Tangent along δu".to_owned()],
        Some(term) => [format!("Flux through the boundary: {term}"), format!("Its tangent along δu: {term}")],
    };
    let has_rate = term.is_none() && case.file.modes.is_none() && form.storage().components.contains(&true);
    let note = match has_rate {
        true if case.file.equation.enthalpy.is_some() => {
            "The content times ∂u/∂t stands for its own rate: a stage has it with a factor of the step, less that of earlier steps.".to_owned()
        }
        true => {
            let shift = shift.replace("alpha", "α");
            format!("{shift} is the derivative of the rate ∂u/∂t by u in a step of time.")
        }
        false => String::new(),
    };
    [table(of_residual, residual, ""), table(of_tangent, tangent, &note)]
}

fn table(heading: String, written: &Mathematics, note: &str) -> FormulaTable {
    let row = |Equality { symbol, text, mathml }: &Equality| FormulaRow {
        name: symbol.mathml(),
        formula: mathml.clone(),
        text: format!("{symbol} = {text}"),
    };
    match &written.lines {
        Some(lines) if lines.is_empty() => FormulaTable::default(),
        Some(lines) => FormulaTable { heading, rows: lines.iter().map(row).collect(), note: note.to_owned() },
        None => {
            let note = format!("{} operations, not shown.", written.n_operations);
            FormulaTable { heading, rows: Vec::new(), note }
        }
    }
}

/// Returns the class of the tangent and what follows from it, in sentences.
fn properties(case: &Case, form: &Form, solution: &FormSolution<'_>) -> Vec<String> {
    let class = form.integrals()[0].integrand.class();
    let has_modes = case.file.modes.is_some();
    let is_in_time = case.file.time.is_some();
    let linear = match (form.is_linear(), is_in_time) {
        _ if has_modes => {
            "It does not depend on u: the equation is linear, and LOBPCG finds its smallest eigenvalues."
        }
        (true, false) => "It does not depend on u: the equation is linear, and one linear solve finds u.",
        (true, true) => {
            "It does not depend on u: the equation is linear, and each stage of a step is one linear solve."
        }
        (false, _) => "It depends on u: Newton's method finds u, with a linear solve in each of its steps.",
    };
    let symmetric = match (form.takes_conjugate_gradients(), form.is_symmetric()) {
        _ if has_modes => "It is symmetric: eigenvalues are real, and functions of different ones are orthogonal.".to_owned(),
        (true, _) => {
            let then = match form.is_linear() {
                true => "",
                false => "; GMRES takes over from a linearization that is not",
            };
            format!(
                "It is symmetric: conjugate gradients are the default. They need it to be positive definite, which formulas alone \
                 do not tell{then}."
            )
        }
        (false, true) => {
            "It is symmetric and not definite, as the equation of an unknown does not contain this unknown: a saddle point. GMRES is \
             the default, and the preconditioner has a Schur complement for that unknown."
                .to_owned()
        }
        (false, false) => format!("It is not symmetric{}: GMRES is the default.", reason(class)),
    };
    let mut sentences = vec![linear.to_owned(), symmetric];
    let parts = [
        ("diffusion, ∂flux/∂∇u,", class.diffusion),
        ("drift, ∂flux/∂u,", class.drift),
        ("convection, −∂source/∂∇u,", class.convection),
        ("reaction, −∂source/∂u,", class.reaction),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(part, on)| Some(format!("{part} {}", words(on)?))).collect();
    if !parts.is_empty() {
        sentences.push(format!("In the cells, {}.", parts.join("; ")));
    }
    if class.is_diffusion_reaction() {
        let of_each = if form.n_components() > 1 { " of each component on its own" } else { "" };
        let tensor = if class.isotropic { "a number" } else { "a tensor" };
        sentences
            .push(format!("This is scalar diffusion and reaction{of_each}; the diffusivity is {tensor}."));
    } else if form.n_components() > 1 {
        let couples = if class.couples_components { "couples" } else { "does not couple" };
        sentences.push(format!("It {couples} the components."));
    }
    sentences.push(format!("The preconditioner of this run is {}.", solution.preconditioner()));
    sentences
}

/// Returns what makes a tangent nonsymmetric, if a single part of it does.
fn reason(class: &Class) -> &'static str {
    if class.symmetric {
        return ", as a flux through the boundary is not";
    }
    match (class.convection != Dependence::Zero, class.drift != Dependence::Zero) {
        (true, false) => ", as the source depends on the gradient of u",
        (false, true) => ", as the flux depends on u",
        _ => "",
    }
}

fn words(dependence: Dependence) -> Option<&'static str> {
    match dependence {
        Dependence::Zero => None,
        Dependence::Constant => Some("is constant"),
        Dependence::ByCell => Some("differs from cell to cell"),
        Dependence::ByPoint => Some("differs from point to point"),
        Dependence::WithState => Some("depends on u"),
    }
}
