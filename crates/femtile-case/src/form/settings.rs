//! Keys of a case as a problem of a form.

use std::sync::Arc;

use femtile_form::{
    Axes, CellTerms, CoefficientShape, Components, Equation, EquationText, FormError, Formulas, Parameter,
    Stabilisation, Unknown,
};
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_solve::{
    Continuation, FormProblem, Key, Method, Periodic, SideMap, SolveError, SolverConfig, Value, below,
    check_count, check_degree,
};

use super::interface::{self, Pairs};
use crate::file::{
    AxesName, BoundarySection, ComponentsName, ContinuationSection, Entries, Entry, EquationKind,
    EquationSection, OfUnknowns, PeriodicSection, PlaneName, RotationSection, StabilisationName, Totals,
    UnknownSection, Value as Given,
};
use crate::functional::in_space;
use crate::place::has_key;
use crate::{Case, CaseError};

/// The word of `dirichlet` for a component without a value.
pub(crate) const FREE: &str = "free";

/// Returns the settings of the solve: those of the case, with GMRES for a problem that conjugate gradients cannot solve where no method is
/// asked for.
pub(super) fn solver_config(case: &Case, problem: &FormProblem<'_>) -> Result<SolverConfig, CaseError> {
    let mut config = case.solver_config()?;
    let is_asked = has_key(&case.text, &["solver".into(), "method".into()]);
    if config.method == Method::Cg && !is_asked {
        config.method = problem.default_method()?;
    }
    Ok(config)
}

/// Returns the name of the equation of a case in the library; none for those that are written in the case.
pub(super) fn library_equation(case: &Case) -> Option<&'static str> {
    match case.file.equation.kind {
        EquationKind::Elasticity => Some("elasticity"),
        EquationKind::Form => None,
        EquationKind::ReactionDiffusion if case.file.modes.is_none() => Some("reaction-diffusion"),
        EquationKind::ReactionDiffusion | EquationKind::Diffusion => Some("diffusion"),
        _ => Some("convection-diffusion"),
    }
}

/// Returns the problem of a case on its mesh, which was cut along its interfaces.
pub(super) fn problem<'m>(
    case: &Case,
    mesh: &'m Mesh,
    (boundary, cuts): (&Arc<BoundaryFacets>, &[Pairs]),
) -> Result<FormProblem<'m>, CaseError> {
    let kind = case.file.equation.kind;
    let equation = match library_equation(case) {
        Some(name) => Equation::named(name),
        None => Equation::new("form", text(case, mesh)),
    };
    let equation = equation.map_err(|error| match error {
        FormError::Coefficient { coefficient, message } => {
            case.wrong(&["equation".into(), "constants".into(), coefficient.as_str().into()], message)
        }
        FormError::Equation { message, .. } if message.starts_with("unknown: ") => {
            case.wrong(&["unknown".into()], message.trim_start_matches("unknown: "))
        }
        other => SolveError::from(other).into(),
    })?;
    let mut problem = FormProblem::new(mesh, Arc::clone(boundary), equation);
    let of_space = case.file.space.degree;
    let degrees = case.file.unknown.values().map(|unknown| unknown.degree.unwrap_or(of_space) as usize);
    let degrees: Vec<usize> = match kind {
        EquationKind::Form => degrees.collect(),
        _ => vec![of_space as usize],
    };
    degrees.iter().try_for_each(|&degree| check_degree(mesh.kind, degree))?;
    problem = problem.degrees(&degrees)?;
    if case.file.space.axisymmetric {
        problem = problem.axisymmetric()?;
    }
    if let Some(thickness) = &case.file.space.thickness {
        problem = problem.thickness(&thickness.into())?;
    }
    if let Some(ContinuationSection { steps, max_halvings }) = case.file.continuation {
        problem = problem.continuation(Continuation { steps, max_halvings });
    }
    if case.file.time.is_some() {
        problem = problem.in_time();
    }
    if case.file.equation.enthalpy.is_some() {
        problem = problem.with_content();
    }
    if let Some(initial) = &case.file.equation.initial {
        let path = ["equation".into(), "initial".into()];
        let values = flattened(&problem, initial, &path, |initial, n, _| {
            Ok(match initial {
                None => vec![Value::Number(0.0); n],
                Some(Entries::All(initial)) => vec![value(initial); n],
                Some(Entries::Each(initial)) => values(initial),
            })
        })?;
        problem.initial(&values)?;
    }
    if let Some(StabilisationName::Supg) = case.file.equation.stabilise {
        problem.stabilise(Stabilisation::Supg);
    }
    match kind {
        EquationKind::Elasticity => elasticity(case, &mut problem)?,
        EquationKind::Form => {}
        _ => diffusion(case, &mut problem)?,
    }
    constants(case, &mut problem, mesh)?;
    interface::add(case, &mut problem, cuts)?;
    for (i, section) in case.file.boundary.iter().enumerate() {
        condition(case, &mut problem, section, &["boundary".into(), i.into()])?;
    }
    for (i, section) in case.file.source.iter().enumerate() {
        let path: [Key; 2] = ["source".into(), i.into()];
        let point = in_space(case, &section.point, &below(&path, "point"))?;
        let totals = totals(case, &problem, &section.total, &below(&path, "total"))?;
        problem.point_source(point, &totals)?;
    }
    for section in &case.file.tie {
        problem.tie(&section.from, &section.to, section.tolerance)?;
    }
    for (i, section) in case.file.periodic.iter().enumerate() {
        periodic(case, &mut problem, section, &["periodic".into(), i.into()])?;
    }
    Ok(problem)
}

/// Adds the sides of a `[[periodic]]`.
fn periodic(
    case: &Case,
    problem: &mut FormProblem<'_>,
    section: &PeriodicSection,
    path: &[Key],
) -> Result<(), CaseError> {
    let map = match (&section.translation, &section.rotation) {
        (Some(translation), _) => {
            SideMap::Translation(in_space(case, translation, &below(path, "translation"))?)
        }
        (None, Some(RotationSection { degrees, axis, centre })) => {
            let centre = in_space(case, centre, &below(&below(path, "rotation"), "centre"))?;
            SideMap::Rotation { axis: *axis, centre, degrees: *degrees }
        }
        (None, None) => SideMap::Found,
    };
    let of_jump = below(path, "jump");
    let jump = match &section.jump {
        None => Vec::new(),
        Some(jump) => flattened(problem, jump, &of_jump, |jump, n, path| match jump {
            None => Ok(vec![Value::Number(0.0); n]),
            Some(Entries::All(jump)) if n == 1 => Ok(vec![value(jump)]),
            Some(Entries::All(_)) => {
                Err(case.wrong(path, format!("give an array with an entry for each of the {n} components")))
            }
            Some(Entries::Each(jump)) => Ok(values(jump)),
        })?,
    };
    let periodic = Periodic { map, jump, tolerance: section.tolerance };
    Ok(problem.periodic(&section.from, &section.to, &periodic)?)
}

/// Returns the text of the equation of a case.
fn text(case: &Case, mesh: &Mesh) -> EquationText {
    let equation = &case.file.equation;
    let unknown = |section: &UnknownSection| Unknown {
        components: section.components.map(|components| match components {
            ComponentsName::Count(n) => Components::Count(n),
            ComponentsName::Axes(AxesName::Dimension) => Components::Axes(Axes::Dimension),
        }),
    };
    let parameter = |value| Parameter { shape: shape(value, mesh), default: None };
    let (flux, source, capacity) = terms(equation);
    EquationText {
        unknown: case.file.unknown.iter().map(|(name, section)| (name.clone(), unknown(section))).collect(),
        coefficients: equation
            .constants
            .iter()
            .map(|(name, value)| (name.clone(), parameter(value)))
            .collect(),
        define: equation.define.clone().unwrap_or_default(),
        cells: CellTerms { energy: equation.energy.clone(), flux, source, capacity, ..CellTerms::default() },
        ..EquationText::default()
    }
}

/// Returns the shape of a constant.
fn shape(value: &Given, mesh: &Mesh) -> CoefficientShape {
    fn is_tensor(value: &Given) -> bool {
        match value {
            Given::Tensor(_) => true,
            Given::ByTag { by_tag, default } => by_tag.values().chain(default.as_deref()).any(is_tensor),
            _ => false,
        }
    }
    match value {
        Given::ByTag { .. } if is_tensor(value) => CoefficientShape::Tensor,
        Given::Components(_) => CoefficientShape::Vector,
        Given::Tensor(_) | Given::Fibres { .. } | Given::Sheets { .. } | Given::Bidomain { .. } => {
            CoefficientShape::Tensor
        }
        Given::Field { field } => match mesh.cell_fields.get(field).map(|field| field.n_components) {
            Some(n) if n == mesh.space_dimension() || n == 3 => CoefficientShape::Vector,
            Some(6 | 9) => CoefficientShape::Tensor,
            _ => CoefficientShape::Scalar,
        },
        _ => CoefficientShape::Scalar,
    }
}

/// Returns the formulas of flux and source, and of the capacity or the content in its place.
pub(super) fn terms(equation: &EquationSection) -> (Formulas, Formulas, Formulas) {
    let source = Some(&equation.source).filter(|source| source.one() != Some(&Given::Number(0.0)));
    let flux = equation.flux.as_ref().map_or(Formulas::None, fluxes);
    (flux, formulas(source), formulas(equation.capacity.as_ref().or(equation.enthalpy.as_ref())))
}

fn fluxes(flux: &OfUnknowns<String>) -> Formulas {
    match flux {
        OfUnknowns::One(text) => Formulas::One(text.clone()),
        OfUnknowns::Each(texts) => Formulas::ByUnknown(texts.clone()),
    }
}

/// Returns the formulas of values.
fn formulas(value: Option<&OfUnknowns<Given>>) -> Formulas {
    match value {
        None => Formulas::None,
        Some(OfUnknowns::One(value)) => formula(value).map_or(Formulas::None, Formulas::One),
        Some(OfUnknowns::Each(values)) => {
            let of = |(name, value): (&String, &Given)| Some((name.clone(), formula(value)?));
            Formulas::ByUnknown(values.iter().filter_map(of).collect())
        }
    }
}

/// Returns a number, a formula or an array of them as a formula.
fn formula(value: &Given) -> Option<String> {
    let array = |entries: &[Entry]| {
        let entries = entries.iter().map(|entry| match entry {
            Entry::Number(number) => number.to_string(),
            Entry::Text(text) => format!("({text})"),
        });
        format!("[{}]", entries.collect::<Vec<_>>().join(", "))
    };
    match value {
        Given::Number(number) => Some(number.to_string()),
        Given::Text(text) => Some(text.clone()),
        Given::Components(entries) => Some(array(entries)),
        Given::Tensor(rows) => {
            let rows: Vec<String> = rows.iter().map(|row| array(row)).collect();
            Some(format!("[{}]", rows.join(", ")))
        }
        _ => None,
    }
}

/// Sets the constants, which equations of the library get for their conditions.
fn constants(case: &Case, problem: &mut FormProblem<'_>, mesh: &Mesh) -> Result<(), CaseError> {
    for (name, value) in &case.file.equation.constants {
        if case.file.equation.kind != EquationKind::Form {
            problem.add_coefficient(name, shape(value, mesh))?;
        }
        match (value, problem.coefficient_shape(name)) {
            (Given::Components(entries), _) => problem.vector(name, &values(entries))?,
            (_, Some(CoefficientShape::Vector)) => problem.vector_field(name, &value.into())?,
            (_, Some(CoefficientShape::Tensor)) => problem.tensor(name, &value.into())?,
            _ => problem.scalar(name, &value.into())?,
        }
    }
    Ok(())
}

fn elasticity(case: &Case, problem: &mut FormProblem<'_>) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    let thermal = |key: &str, message: &str| Err(case.wrong(&["equation".into(), key.into()], message));
    match (&equation.expansion, &equation.temperature, &equation.reference_temperature) {
        (Some(_), None, _) => return thermal("expansion", "thermal strain needs a `temperature`: give it"),
        (None, Some(_), _) => {
            return thermal("temperature", "needs the `expansion` of the material: give it");
        }
        (None, None, Some(_)) => {
            return thermal("reference_temperature", "needs `expansion` and `temperature`: give them");
        }
        _ => {}
    }
    for (key, value) in [
        ("young", &equation.young),
        ("poisson", &equation.poisson),
        ("expansion", &equation.expansion),
        ("temperature", &equation.temperature),
        ("reference_temperature", &equation.reference_temperature),
    ] {
        if let Some(value) = value {
            problem.scalar(key, &value.into())?;
        }
    }
    if let Some(density) = &equation.density {
        problem.density(&density.into())?;
    }
    if let Some(plane) = equation.plane {
        if problem.n_components() != 2 {
            let message = "is for meshes in the plane; a body in space has all of its stresses";
            return Err(case.wrong(&["equation".into(), "plane".into()], message));
        }
        problem.scalar("plane_stress", &Value::Number(f64::from(u8::from(plane == PlaneName::Stress))))?;
    }
    if *equation.source() != Given::Number(0.0) {
        vector(problem, "source", equation.source())?;
    }
    Ok(())
}

/// Sets the coefficients of diffusion: with a reaction, convection or a capacity.
fn diffusion(case: &Case, problem: &mut FormProblem<'_>) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    let [sigma, lambda] = case.conduction_and_reaction();
    problem.tensor("sigma", &(&sigma).into())?;
    if let Some(velocity) = &equation.velocity {
        vector(problem, "velocity", velocity)?;
    }
    if let Some(capacity) = equation.capacity.as_ref().and_then(OfUnknowns::one) {
        match equation.kind {
            EquationKind::Diffusion => problem.capacity(&capacity.into())?,
            _ => problem.scalar("capacity", &capacity.into())?,
        }
    }
    problem.scalar("lambda", &(&lambda).into())?;
    Ok(problem.scalar("source", &equation.source().into())?)
}

/// Sets a vector: an array, or a cell field.
fn vector(problem: &mut FormProblem<'_>, key: &str, value: &Given) -> Result<(), CaseError> {
    let set = match value {
        Given::Components(entries) => problem.vector(key, &values(entries)),
        other => problem.vector_field(key, &other.into()),
    };
    Ok(set?)
}

fn values(entries: &[Entry]) -> Vec<Value> {
    entries.iter().map(value).collect()
}

fn value(entry: &Entry) -> Value {
    match entry {
        Entry::Number(number) => Value::Number(*number),
        Entry::Text(text) => Value::Text(text.clone()),
    }
}

/// Adds the condition of a `[[boundary]]`.
fn condition(
    case: &Case,
    problem: &mut FormProblem<'_>,
    section: &BoundarySection,
    path: &[Key],
) -> Result<(), CaseError> {
    let on = section.region();
    if let Some(value) = &section.dirichlet {
        let of = |value: Option<&Given>, n: usize, path: &[Key]| match value {
            None => Ok(vec![None; n]),
            Some(value) => dirichlet(case, value, n, path),
        };
        let values = flattened(problem, value, &below(path, "dirichlet"), of)?;
        let given = match &section.nodes {
            Some(nodes) => problem.dirichlet_at_nodes(nodes, &values),
            None => problem.dirichlet(on, &values),
        };
        return Ok(given?);
    }
    if let Some(traction) = &section.traction {
        return Ok(problem.vector_on_boundary("traction", on, &values(traction))?);
    }
    if let Some(flux) = &section.flux {
        return Ok(problem.flux_on_boundary(on, fluxes(flux))?);
    }
    if let Some(floating) = section.floating.as_ref().filter(|_| section.floats()) {
        let totals = match &section.total {
            None => vec![0.0; problem.n_components()],
            Some(total) => totals(case, problem, total, &below(path, "total"))?,
        };
        let floats = flattened(problem, floating, &below(path, "floating"), |floats, n, _| {
            Ok(vec![floats.copied().unwrap_or(false); n])
        })?;
        if let (Some(OfUnknowns::Each(totals)), OfUnknowns::Each(floats)) = (&section.total, floating)
            && let Some(name) = totals.keys().find(|name| floats.get(*name) != Some(&true))
        {
            let message = "is not floating here: give its total in a condition of its own";
            return Err(case.wrong(&below(&below(path, "total"), name.as_str()), message));
        }
        let totals: Vec<Option<f64>> =
            floats.into_iter().zip(totals).map(|(floats, total)| floats.then_some(total)).collect();
        return Ok(problem.floating(on, &totals)?);
    }
    if let Some(total) = &section.total {
        let totals = totals(case, problem, total, &below(path, "total"))?;
        return Ok(problem.total_on_boundary(on, &totals)?);
    }
    for (term, value) in [("pressure", &section.pressure), ("neumann", &section.neumann)] {
        if let Some(value) = value {
            return Ok(problem.scalars_on_boundary(term, on, &[("value", &value.into())])?);
        }
    }
    if let Some(robin) = &section.robin {
        let (coefficient, value) = (Value::from(&robin.coefficient), Value::from(&robin.value));
        let values = [("coefficient", &coefficient), ("value", &value)];
        return Ok(problem.scalars_on_boundary("robin", on, &values)?);
    }
    Ok(())
}

/// Returns the total of each component, zero of unknowns that are left out.
fn totals(
    case: &Case,
    problem: &FormProblem<'_>,
    total: &OfUnknowns<Totals>,
    path: &[Key],
) -> Result<Vec<f64>, CaseError> {
    flattened(problem, total, path, |total, n, path| match total {
        None => Ok(vec![0.0; n]),
        Some(Totals::One(total)) if n == 1 => Ok(vec![*total]),
        Some(Totals::One(_)) => {
            Err(case.wrong(path, format!("give an array with an entry for each of the {n} components")))
        }
        Some(Totals::Each(totals)) => Ok(totals.clone()),
    })
}

/// Returns the value of each component, by a function of that of an unknown, of its number of components, and of the path.
fn flattened<T, U>(
    problem: &FormProblem<'_>,
    given: &OfUnknowns<T>,
    path: &[Key],
    of: impl Fn(Option<&T>, usize, &[Key]) -> Result<Vec<U>, CaseError>,
) -> Result<Vec<U>, CaseError> {
    let values = match given {
        OfUnknowns::One(value) => return of(Some(value), problem.n_components(), path),
        OfUnknowns::Each(values) => values,
    };
    let mut all = Vec::new();
    for (name, shape) in problem.unknowns() {
        let (n, path) = (shape.n_entries(), below(path, name));
        let found = of(values.get(name), n, &path)?;
        check_count(found.len(), n, &path)?;
        all.extend(found);
    }
    Ok(all)
}

/// Returns the value of each component, none of those that are free; a single value is that of all.
fn dirichlet(case: &Case, value: &Given, n: usize, path: &[Key]) -> Result<Vec<Option<Value>>, CaseError> {
    let Given::Components(entries) = value else { return Ok(vec![Some(value.into()); n]) };
    let is_free = |entry: &Entry| matches!(entry, Entry::Text(text) if text == FREE);
    if n > 1 && entries.iter().all(is_free) {
        return Err(case.wrong(path, "all components are free: leave the condition out"));
    }
    let free_or = |(entry, value): (&Entry, Value)| if is_free(entry) { None } else { Some(value) };
    Ok(entries.iter().zip(values(entries)).map(free_or).collect())
}
