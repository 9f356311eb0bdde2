//! Functionals of a case: parsed before the solve, evaluated after it.

mod line;

use std::collections::BTreeMap;

use femtile_expression::{Expression, Shape};
use femtile_fem::FemError;
use femtile_solve::{
    Component, Discretization, FormIntegral, FormProblem, Key, Region, Selected, Solution, SolveError, below,
    check_count, expression,
};

pub(crate) use line::{SampledLine, is_header_of_line};

use crate::file::{Exact, FieldOfRun, Functional, of_side};
use crate::{Case, CaseError};
use line::ReadyLine;

/// The functionals of a case, ready to be evaluated.
pub(crate) struct Prepared {
    pub numbers: Vec<Ready>,
    pub lines: Vec<ReadyLine>,
    /// Warnings about tags that are on inner facets too.
    pub warnings: Vec<String>,
}

/// Numbers of a component, ready to be evaluated.
pub(crate) struct Ready {
    pub name: String,
    /// The suffix that distinguishes it from those of other components.
    pub index: String,
    pub component: usize,
    /// The field of a run in time, if it is not u.
    of: Option<FieldOfRun>,
    pub kind: Kind,
}

pub(crate) enum Kind {
    Max,
    Min,
    L2Norm,
    Energy,
    Integral,
    Mean,
    ValueAt([f64; 3]),
    ValuesAt(Vec<[f64; 3]>),
    /// Into the body, or out of the cells with a tag.
    Flux {
        facets: Vec<u32>,
        from: Option<String>,
    },
    /// Of a formula over the cells, or over facets.
    Formula {
        of: FormIntegral,
        is_mean: bool,
    },
    ErrorL2(Expression),
    ErrorH1(Expression),
}

/// The functionals of a solution.
pub(crate) struct Evaluated {
    pub numbers: BTreeMap<String, f64>,
    pub lines: Vec<SampledLine>,
    /// Keys of the papers behind them.
    pub citations: Vec<&'static str>,
}

/// The integrand of a functional.
pub(crate) enum FormulaOf<'t> {
    Text(&'t str),
    Component(usize),
}

/// A problem on a mesh whose solution has functionals.
pub(crate) trait Problem {
    /// Returns the unknowns by name, vectors with the number of their components; of one alone the name is u.
    fn unknowns(&self) -> Vec<(String, Option<usize>)>;
    /// Returns the facets of a region through which there is a flux.
    fn facets(&self, region: Region, path: &[Key]) -> Result<Selected, SolveError>;
    /// Prepares the integral of a formula, or of a component, over the cells or a region of facets.
    fn integral(
        &self,
        of: FormulaOf<'_>,
        region: Option<Region>,
        path: &[Key],
    ) -> Result<FormIntegral, SolveError>;
    /// Returns the first point outside the mesh as an error.
    fn check_points(&self, points: &[[f64; 3]]) -> Result<(), (usize, FemError)>;
    /// Returns whether any of `n` points of a line lies in the mesh.
    fn meets_line(&self, from: [f64; 3], to: [f64; 3], n: usize) -> Result<bool, FemError>;
}

/// Implements the trait with the unknowns and the facets of functions, and forwards to the methods of a type with the same names.
macro_rules! problem {
    ($type:ident, $unknowns:expr, $facets:expr, $integral:expr) => {
        impl Problem for $type<'_> {
            fn unknowns(&self) -> Vec<(String, Option<usize>)> {
                $unknowns(self)
            }

            fn facets(&self, region: Region, path: &[Key]) -> Result<Selected, SolveError> {
                $facets(self, region, path)
            }

            fn integral(
                &self,
                of: FormulaOf<'_>,
                region: Option<Region>,
                path: &[Key],
            ) -> Result<FormIntegral, SolveError> {
                $integral(self, of, region, path)
            }

            fn check_points(&self, points: &[[f64; 3]]) -> Result<(), (usize, FemError)> {
                self.check_points(points)
            }

            fn meets_line(&self, from: [f64; 3], to: [f64; 3], n: usize) -> Result<bool, FemError> {
                self.meets_line(from, to, n)
            }
        }
    };
}

problem!(
    Discretization,
    |own: &Discretization<'_>| {
        let n = own.n_components();
        vec![("u".to_owned(), (n > 1).then_some(n))]
    },
    |own: &Discretization<'_>, region: Region, path: &[Key]| own.facets(region, path),
    |_: &Discretization<'_>, _: FormulaOf<'_>, _: Option<Region>, path: &[Key]| {
        Err(SolveError::setting(path, "integrals of formulas and over facets are those of forms"))
    }
);
problem!(
    FormProblem,
    |own: &FormProblem<'_>| {
        let is_alone = own.unknowns().len() == 1;
        let of = |(name, shape): (&str, Shape)| {
            let n = (shape != Shape::Number && own.n_components() > 1).then(|| shape.n_entries());
            (if is_alone { "u".to_owned() } else { name.to_owned() }, n)
        };
        own.unknowns().into_iter().map(of).collect()
    },
    |own: &FormProblem<'_>, region: Region, path: &[Key]| {
        let facets = own.facets_of_flux(region, path)?;
        Ok(Selected { facets, ..Selected::default() })
    },
    |own: &FormProblem<'_>, of: FormulaOf<'_>, region: Option<Region>, path: &[Key]| {
        let formula = match of {
            FormulaOf::Text(text) => text.to_owned(),
            FormulaOf::Component(component) => own.formula_of(component),
        };
        own.integral(&formula, region, path)
    }
);

/// How results call a component.
struct Called {
    /// `u`, `u[0]`.
    name: String,
    /// The suffix of the name of a functional: nothing of one component alone, `[0]` of a vector alone, else the name in brackets.
    index: String,
}

fn components(unknowns: &[(String, Option<usize>)]) -> Vec<Called> {
    let is_alone = unknowns.len() == 1;
    let of = |(unknown, n): &(String, Option<usize>)| -> Vec<Called> {
        let called = |number: Option<usize>| {
            let bracket = number.map_or(String::new(), |number| format!("[{number}]"));
            let name = format!("{unknown}{bracket}");
            let index = if is_alone { bracket } else { format!("[{name}]") };
            Called { name, index }
        };
        match n {
            None => vec![called(None)],
            Some(n) => (0..*n).map(|number| called(Some(number))).collect(),
        }
    };
    unknowns.iter().flat_map(of).collect()
}

/// Parses the functionals; checks before the solve that points lie in the mesh and parts of the boundary have facets.
///
/// With several components each has its own functionals, `name[0]`, `name[1]`, …, with several unknowns `name[T]`, `name[u[0]]`, ….
pub(crate) fn prepare(case: &Case, problem: &impl Problem) -> Result<Prepared, CaseError> {
    check_points(case, problem)?;
    let components = components(&problem.unknowns());
    let mut prepared = Prepared { numbers: Vec::new(), lines: Vec::new(), warnings: Vec::new() };
    for (i, functional) in case.file.output.functionals.iter().enumerate() {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let of = functional.field();
        if let Functional::Along { from, to, points, .. } = functional {
            let names = components.iter().map(|called| called.name.clone()).collect();
            let line = line(case, problem, (functional.name(), from, to, *points), &path)?;
            prepared.lines.push(ReadyLine { of, names, ..line });
            continue;
        }
        if let Functional::Flux { r#where: region, from, .. } = functional {
            let path = below(&path, "where");
            let selected = problem.facets(of_side(region, from.as_deref()), &path)?;
            let line = case.line(&path).map_or_else(String::new, |line| format!("line {line}, "));
            let name = || format!("output.functionals[{i}] ({line}flux on \"{region}\")");
            prepared.warnings.extend(selected.warning(name));
        }
        for (component, Called { index, .. }) in components.iter().enumerate() {
            if component > 0 && functional.key_of_form() == Some("formula") {
                continue;
            }
            let index = if functional.key_of_form() == Some("formula") { "" } else { index };
            let (name, index) = (functional.name().to_owned(), index.to_owned());
            let at = (component, components.len());
            let kind = kind(case, problem, (functional, at), &path)?;
            prepared.numbers.extend(kind.map(|kind| Ready { name, index, component, of, kind }));
        }
    }
    Ok(prepared)
}

/// The numbers of a functional; none of a line.
fn kind(
    case: &Case,
    problem: &impl Problem,
    (functional, component): (&Functional, (usize, usize)),
    path: &[Key],
) -> Result<Option<Kind>, CaseError> {
    let exact = |given: &Exact| exact(case, given, component, &below(path, "exact"));
    let several = |points: &[Vec<f64>]| {
        let places = points.iter().enumerate().map(|(i, point)| (point, below(&below(path, "points"), i)));
        places.map(|(point, path)| in_space(case, point, &path)).collect::<Result<_, _>>()
    };
    Ok(Some(match functional {
        Functional::Max { .. } => Kind::Max,
        Functional::Min { .. } => Kind::Min,
        Functional::L2Norm { .. } => Kind::L2Norm,
        Functional::Energy { .. } => Kind::Energy,
        Functional::Integral { .. } | Functional::Mean { .. } if functional.key_of_form().is_some() => {
            integral(problem, functional, component.0, path)?
        }
        Functional::Integral { .. } => Kind::Integral,
        Functional::Mean { .. } => Kind::Mean,
        Functional::ValueAt { points: Some(points), .. } => Kind::ValuesAt(several(points)?),
        Functional::ValueAt { point, .. } => {
            let point = point.as_deref().unwrap_or_default();
            Kind::ValueAt(in_space(case, point, &below(path, "point"))?)
        }
        Functional::Flux { r#where: region, from, .. } => {
            let region = of_side(region, from.as_deref());
            let facets = problem.facets(region, &below(path, "where"))?.facets;
            Kind::Flux { facets, from: from.clone() }
        }
        Functional::ErrorL2 { exact: given, .. } => Kind::ErrorL2(exact(given)?),
        Functional::ErrorH1 { exact: given, .. } => Kind::ErrorH1(exact(given)?),
        Functional::Along { .. } => return Ok(None),
    }))
}

/// Prepares an integral or a mean of a formula, or of a component, over cells or facets.
fn integral(
    problem: &impl Problem,
    functional: &Functional,
    component: usize,
    path: &[Key],
) -> Result<Kind, CaseError> {
    let is_mean = matches!(functional, Functional::Mean { .. });
    let (Functional::Integral { formula, r#where, from, .. }
    | Functional::Mean { formula, r#where, from, .. }) = functional
    else {
        return Ok(Kind::Integral);
    };
    let of = formula.as_deref().map_or(FormulaOf::Component(component), FormulaOf::Text);
    let region = r#where.as_deref().map(|region| of_side(region, from.as_deref()));
    Ok(Kind::Formula { of: problem.integral(of, region, path)?, is_mean })
}

/// Refuses lines that do not meet the mesh.
fn line(
    case: &Case,
    problem: &impl Problem,
    (name, from, to, n): (&str, &[f64], &[f64], u32),
    path: &[Key],
) -> Result<ReadyLine, CaseError> {
    let from = in_space(case, from, &below(path, "from"))?;
    let to = in_space(case, to, &below(path, "to"))?;
    let n = n as usize;
    if !problem.meets_line(from, to, n)? {
        let message = format!("none of the {n} points of the line lies in the mesh");
        return Err(case.wrong(path, message));
    }
    Ok(ReadyLine { name: name.into(), names: Vec::new(), of: None, from, to, n })
}

/// Returns the exact solution of a component.
fn exact(
    case: &Case,
    given: &Exact,
    (component, n): (usize, usize),
    path: &[Key],
) -> Result<Expression, CaseError> {
    let expression = |text: &str, path: &[Key]| match case.file.time.is_some() {
        true => Expression::parse_in_time(text)
            .map_err(|error| case.wrong_inside(path, &error.span, error.to_string())),
        false => Ok(expression(text, path)?),
    };
    match given {
        Exact::All(text) => Ok(expression(text, path)?),
        Exact::Each(texts) => {
            check_count(texts.len(), n, path)?;
            Ok(expression(&texts[component], &below(path, component))?)
        }
    }
}

/// Refuses points that do not lie in the mesh.
fn check_points(case: &Case, problem: &impl Problem) -> Result<(), CaseError> {
    let (mut points, mut paths) = (Vec::new(), Vec::new());
    for (i, functional) in case.file.output.functionals.iter().enumerate() {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let Functional::ValueAt { point: one, points: several, .. } = functional else { continue };
        let one = one.iter().map(|point| (point, below(&path, "point")));
        let several = several.iter().flatten().enumerate();
        let several = several.map(|(k, point)| (point, below(&below(&path, "points"), k)));
        for (point, path) in one.chain(several) {
            points.push(in_space(case, point, &path)?);
            paths.push(path);
        }
    }
    problem.check_points(&points).map_err(|(i, error)| case.wrong(&paths[i], error.to_string()))
}

pub(crate) fn in_space(case: &Case, point: &[f64], path: &[Key]) -> Result<[f64; 3], CaseError> {
    match *point {
        [x, y] => Ok([x, y, 0.0]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(case.wrong(path, "a point has two or three coordinates")),
    }
}

impl Prepared {
    /// Evaluates all functionals of a solution.
    pub(crate) fn evaluate(&self, solution: &Solution<'_>) -> Result<Evaluated, FemError> {
        self.evaluate_at(solution, None)
    }

    /// Evaluates all functionals of a solution at a time.
    pub(crate) fn evaluate_at(
        &self,
        solution: &Solution<'_>,
        time: Option<f64>,
    ) -> Result<Evaluated, FemError> {
        let components: Vec<_> = (0..solution.n_components()).map(|k| solution.component(k)).collect();
        let numbers = self.numbers(&components, time)?;
        let lines = self.lines(&components, None)?;
        let has_fluxes = self.numbers.iter().any(|ready| matches!(ready.kind, Kind::Flux { .. }));
        Ok(Evaluated { numbers, lines, citations: has_fluxes.then_some("carey1985").into_iter().collect() })
    }

    /// Evaluates the numbers of components, at a time if there is one.
    pub(crate) fn numbers(
        &self,
        components: &[Component<'_>],
        time: Option<f64>,
    ) -> Result<BTreeMap<String, f64>, FemError> {
        self.numbers_for(None, components, time)
    }

    /// Evaluates the numbers of a field of a run in time.
    pub(crate) fn numbers_of(
        &self,
        field: FieldOfRun,
        values: Component<'_>,
    ) -> Result<BTreeMap<String, f64>, FemError> {
        self.numbers_for(Some(field), &[values], None)
    }

    /// Samples the lines of a field; of u if it is none.
    pub(crate) fn lines(
        &self,
        components: &[Component<'_>],
        field: Option<FieldOfRun>,
    ) -> Result<Vec<SampledLine>, FemError> {
        self.lines.iter().filter(|line| line.of == field).map(|line| line.sample(components)).collect()
    }

    fn numbers_for(
        &self,
        field: Option<FieldOfRun>,
        components: &[Component<'_>],
        time: Option<f64>,
    ) -> Result<BTreeMap<String, f64>, FemError> {
        let mut numbers = BTreeMap::new();
        // Fluxes through all facets cost as much as those through one.
        let mut fluxes: Vec<Option<Vec<f64>>> = vec![None; components.len()];
        for ready in self.numbers.iter().filter(|ready| ready.of == field) {
            let Ready { component, kind, .. } = ready;
            let values = values((kind, time), &components[*component], &mut fluxes[*component])?;
            numbers.extend(ready.names(values.len()).into_iter().zip(values));
        }
        Ok(numbers)
    }

    /// Returns the names of the numbers of u.
    pub(crate) fn names(&self) -> Vec<String> {
        let of = |ready: &Ready| match &ready.kind {
            Kind::ValuesAt(points) => ready.names(points.len()),
            _ => ready.names(1),
        };
        self.numbers.iter().filter(|ready| ready.of.is_none()).flat_map(of).collect()
    }
}

impl Ready {
    /// Returns the names of `n` values: an index each if the functional is a list.
    fn names(&self, n: usize) -> Vec<String> {
        match self.kind {
            Kind::ValuesAt(_) => (0..n).map(|i| format!("{}{}[{i}]", self.name, self.index)).collect(),
            _ => vec![format!("{}{}", self.name, self.index)],
        }
    }
}

/// Returns an expression at a time, if there is one.
fn at(exact: &Expression, time: Option<f64>) -> Expression {
    time.map_or_else(|| exact.clone(), |t| exact.at_time(t))
}

/// The values of a functional: one, or one for each of several points; `fluxes` keeps those through all facets.
fn values(
    (kind, time): (&Kind, Option<f64>),
    u: &Component<'_>,
    fluxes: &mut Option<Vec<f64>>,
) -> Result<Vec<f64>, FemError> {
    Ok(vec![match kind {
        Kind::Max => u.max(),
        Kind::Min => u.min(),
        Kind::L2Norm => u.l2_norm()?,
        Kind::Energy => u.energy()?,
        Kind::Integral => u.integral()?,
        Kind::Mean => u.mean()?,
        // Cases with formulas are forms.
        Kind::Formula { .. } => f64::NAN,
        Kind::ValueAt(point) => u.value_at(*point)?,
        Kind::ErrorL2(exact) => u.error_l2(&at(exact, time))?,
        Kind::ErrorH1(exact) => u.error_h1(&at(exact, time))?,
        // A side of facets is of forms alone.
        Kind::Flux { facets, .. } => {
            let all = match fluxes {
                Some(all) => all,
                None => fluxes.insert(u.facet_fluxes()?),
            };
            u.sum_of_facets(all, facets)?
        }
        Kind::ValuesAt(points) => {
            let found = u.values_at(points)?.into_iter().zip(points);
            return found.map(|(value, &point)| value.map_or_else(|| u.value_at(point), Ok)).collect();
        }
    }])
}
