//! The problem on a grid that a case file describes.

use femtile_expression::Expression;
use femtile_solve::{Key, below, expression, overlaps};
use femtile_time::adi::{AdiConfig, AdiProblem, Coefficients, Grid, Scheme, Side};
use femtile_tridiagonal::Algorithm;

use super::formula::{scalar, scalar_in_time};
use super::functional::{Ready, prepare};
use super::placed::placed;
use crate::file::{
    BoundarySection, CoefficientSource, Entries, Generator, OfUnknowns, SchemeName, TimeSection, Value,
};
use crate::{Case, CaseError, overlap};

/// The problem of a case on its grid, with the settings of the run.
pub(super) struct GridProblem {
    pub problem: AdiProblem,
    pub grid: Grid,
    pub config: AdiConfig,
    pub initial: Expression,
    pub functionals: Vec<Ready>,
    /// Warnings about overlapping conditions.
    pub warnings: Vec<String>,
}

impl GridProblem {
    /// Parses the sections of a case.
    pub fn new(case: &Case) -> Result<Self, CaseError> {
        let mut warnings = Vec::new();
        let problem = problem(case, &mut warnings)?;
        let grid = problem.grid().map_err(|error| placed(case, error))?;
        let initial =
            match case.file.equation.initial.as_ref().and_then(OfUnknowns::one).and_then(Entries::first) {
                Some(entry) => scalar(entry, &["equation".into(), "initial".into()])?,
                None => Expression::constant(0.0),
            };
        let functionals = prepare(case, &grid)?;
        Ok(Self { problem, grid, config: config(case)?, initial, functionals, warnings })
    }
}

fn config(case: &Case) -> Result<AdiConfig, CaseError> {
    let Some(time) = &case.file.time else { return Ok(AdiConfig::default()) };
    let TimeSection { start, end, rannacher_steps, .. } = *time;
    let steps = time.steps.unwrap_or(0);
    let algorithm: Algorithm = time.algorithm.parse().map_err(|error: femtile_linalg::LinalgError| {
        case.wrong(&["time".into(), "algorithm".into()], error.to_string())
    })?;
    Ok(AdiConfig {
        scheme: match time.scheme {
            SchemeName::PeacemanRachford => Scheme::PeacemanRachford,
            SchemeName::Douglas => Scheme::Douglas,
            SchemeName::DouglasGunn => Scheme::DouglasGunn,
            SchemeName::CraigSneyd => Scheme::CraigSneyd,
        },
        start,
        end,
        steps,
        rannacher_steps,
        coefficients: match time.coefficients {
            CoefficientSource::Auto => Coefficients::Auto,
            CoefficientSource::OnTheFly => Coefficients::OnTheFly,
            CoefficientSource::Arrays => Coefficients::Arrays,
        },
        algorithm,
    })
}

fn problem(case: &Case, warnings: &mut Vec<String>) -> Result<AdiProblem, CaseError> {
    let Some(Generator::Grid { nodes, lower, upper }) = &case.file.mesh.generate else {
        return Err(case.wrong(&["mesh".into()], "diffusion is solved on a grid"));
    };
    let d = nodes.len();
    let corner = |corner: &Vec<f64>, default: f64| match corner.is_empty() {
        true => vec![default; d],
        false => corner.clone(),
    };
    let mut problem = AdiProblem::heat(nodes, &corner(lower, 0.0), &corner(upper, 1.0));
    let equation = &case.file.equation;
    let path = |key: &str| -> [Key; 2] { ["equation".into(), key.into()] };
    if let Some(value) = &equation.diffusion {
        problem.diffusion = tensor(case, value, d, &path("diffusion"))?;
    }
    if let Some(convection) = &equation.convection {
        if convection.len() != d {
            let message = format!("{} components in {d} dimensions", convection.len());
            return Err(case.wrong(&path("convection"), message));
        }
        for (i, (to, entry)) in problem.convection.iter_mut().zip(convection).enumerate() {
            *to = scalar(entry, &below(&path("convection"), i))?;
        }
    }
    if let Some(entry) = &equation.reaction {
        problem.reaction = scalar(entry, &path("reaction"))?;
    }
    problem.source = scalar_in_time(case, equation.source(), &path("source"))?;
    problem.sides = sides(case, d, warnings)?;
    Ok(problem)
}

fn tensor(case: &Case, value: &Value, d: usize, path: &[Key]) -> Result<[[Expression; 3]; 3], CaseError> {
    let multiple = |value: Expression| {
        let zero = Expression::constant(0.0);
        std::array::from_fn(|i| std::array::from_fn(|j| if i == j { value.clone() } else { zero.clone() }))
    };
    match value {
        Value::Number(number) => Ok(multiple(Expression::constant(*number))),
        Value::Text(text) => Ok(multiple(expression(text, path)?)),
        Value::Tensor(rows) if rows.len() == d => {
            let mut tensor = multiple(Expression::constant(0.0));
            for (i, row) in rows.iter().enumerate() {
                for (j, entry) in row.iter().enumerate() {
                    tensor[i][j] = scalar(entry, &below(&below(path, i), j))?;
                }
            }
            Ok(tensor)
        }
        Value::Tensor(rows) => {
            Err(case.wrong(path, format!("a {0}×{0} tensor in {d} dimensions", rows.len())))
        }
        Value::Components(_) => Err(case.wrong(path, "a tensor is an array of rows")),
        Value::ByTag { .. }
        | Value::Field { .. }
        | Value::Fibres { .. }
        | Value::Sheets { .. }
        | Value::Bidomain { .. } => {
            Err(case
                .wrong(path, "a grid has neither tags nor fields of cells: use an expression or a tensor"))
        }
    }
}

/// Names of the sides, by axis.
const SIDES: [&str; 6] = ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"];

/// Returns the condition on each side: zero flux by default; of several entries the last one applies.
fn sides(case: &Case, d: usize, warnings: &mut Vec<String>) -> Result<Vec<[Side; 2]>, CaseError> {
    let closed = || Side::Neumann(Expression::constant(0.0));
    let mut sides: Vec<[Side; 2]> = (0..d).map(|_| [closed(), closed()]).collect();
    let mut holds: Vec<Vec<u32>> = Vec::new();
    for (i, section) in case.file.boundary.iter().enumerate() {
        let path: [Key; 2] = ["boundary".into(), i.into()];
        let (_, place) = section.place();
        let named = SIDES[..2 * d].iter().position(|name| *name == place);
        let numbers = match (place, named) {
            (_, Some(number)) => number..number + 1,
            ("all", None) => 0..2 * d,
            (other, None) => {
                let names = SIDES[..2 * d].join(", ");
                let message = format!("there is no side `{other}`; the sides are {names}, or \"all\"");
                return Err(case.wrong(&below(&path, "where"), message));
            }
        };
        let side = side(case, section, &path)?;
        holds.push(numbers.clone().map(|number| number as u32).collect());
        for number in numbers {
            sides[number / 2][number % 2] = side.clone();
        }
    }
    let is_all = |entry: usize| case.file.boundary[entry].place() == ("where", "all");
    warnings.extend(overlap::warnings(case, &overlaps(&holds, 2 * d, is_all), "sides"));
    Ok(sides)
}

fn side(case: &Case, section: &BoundarySection, path: &[Key]) -> Result<Side, CaseError> {
    Ok(match (section.dirichlet(), &section.neumann) {
        (Some(value), _) => Side::Dirichlet(scalar_in_time(case, value, &below(path, "dirichlet"))?),
        (None, Some(value)) => Side::Neumann(scalar_in_time(case, value, &below(path, "neumann"))?),
        (None, None) => Side::Periodic,
    })
}
