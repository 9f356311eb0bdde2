//! Unknowns a second of products and iterations, each measured once for all figures.

use std::cell::RefCell;
use std::collections::BTreeMap;

use femtile::matrix_free::MatrixFree;

use super::{Cell, Problem, Session, Table};
use femtile_bench::BenchError;
use femtile_bench::iterations::MatrixFreeSystem;
use femtile_bench::problems::bake_off::Method;

/// The timed work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// y = A x.
    Product,
    /// An iteration with Jacobi's preconditioner.
    Iteration(Method),
    /// An iteration with ones in the place of the diagonal.
    Unpreconditioned(Method),
}

/// A measurement: a problem, its cells a side, the work, and millions of unknowns a second.
type Known = (Problem, usize, Work, f64);

/// Measurements shared by several figures.
#[derive(Debug, Default)]
pub(in crate::reproduce) struct Shared {
    known: RefCell<Vec<Known>>,
    /// Seconds of an iteration by ranks, cells a side and method.
    pub on_ranks: RefCell<BTreeMap<(usize, usize, &'static str), f64>>,
}

impl Shared {
    fn of(&self, problem: Problem, cells: usize, work: Work) -> Option<f64> {
        let known = self.known.borrow();
        known.iter().find(|known| (known.0, known.1, known.2) == (problem, cells, work)).map(|known| known.3)
    }
}

/// A column of a figure.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub name: String,
    pub problem: Problem,
    pub work: Work,
}

impl Curve {
    pub fn new(name: impl Into<String>, problem: Problem, work: Work) -> Self {
        Self { name: name.into(), problem, work }
    }

    /// Plain and merged iterations of a problem.
    pub fn pair(name: &str, problem: Problem) -> [Self; 2] {
        [(PLAIN, Method::Pcg), (MERGED, Method::MergedPcg)]
            .map(|(how, method)| Self::new(format!("{name}, {how}"), problem, Work::Iteration(method)))
    }
}

/// Names of the two iterations of a pair.
pub(super) const PLAIN: &str = "plain";
pub(super) const MERGED: &str = "merged";

/// The fewest unknowns of a figure against size, and how many times more the next size has.
const FEWEST: usize = 15_000;
const FACTOR: usize = 4;

/// Returns numbers of unknowns, ascending up to the requested maximum.
pub(super) fn sizes(session: &Session) -> Vec<usize> {
    if session.settings.small {
        return vec![2_000, 8_000];
    }
    let most = session.settings.unknowns;
    let smaller = std::iter::successors(Some(most), |n| Some(n / FACTOR).filter(|&n| n >= FEWEST));
    let mut sizes: Vec<usize> = smaller.collect();
    sizes.reverse();
    sizes
}

/// A column for each curve, a row for each size; curves of one problem side by side are measured in turn.
pub(super) fn against_size(session: &Session, curves: &[Curve]) -> Result<Table, BenchError> {
    let sizes = sizes(session);
    let mut columns = vec![Vec::new(); curves.len()];
    for &n_unknowns in &sizes {
        let mut rates = Vec::new();
        for of_problem in curves.chunk_by(|one, other| one.problem == other.problem) {
            let works: Vec<Work> = of_problem.iter().map(|curve| curve.work).collect();
            rates.extend(measured(session, of_problem[0].problem, n_unknowns, &works)?);
        }
        columns.iter_mut().zip(rates).for_each(|(column, rate)| column.push(Cell::from(rate)));
    }
    let table = Table::new(sizes.iter().map(usize::to_string).collect());
    Ok(curves.iter().zip(columns).fold(table, |table, (curve, column)| table.drawn(&curve.name, column)))
}

/// Returns millions of unknowns a second, near `n_unknowns` unknowns.
fn measured(
    session: &Session,
    problem: Problem,
    n_unknowns: usize,
    works: &[Work],
) -> Result<Vec<Option<f64>>, BenchError> {
    let (shared, cells) = (&session.kronbichler2022, problem.cells(n_unknowns));
    let is_unknown = |work: &Work| shared.of(problem, cells, *work).is_none();
    let unknown: Vec<Work> = works.iter().copied().filter(is_unknown).collect();
    if !unknown.is_empty() {
        let components = problem.operator.components();
        let rates = problem
            .look(&session.cpu, cells, |a| rates(a, components, &unknown, session.settings.repeats))??;
        let found = unknown.into_iter().zip(rates).map(|(work, rate)| (problem, cells, work, rate));
        shared.known.borrow_mut().extend(found);
    }
    Ok(works.iter().map(|&work| shared.of(problem, cells, work)).collect())
}

/// The fastest of several solves, all works in turn; what differs in its preconditioner apart.
fn rates(
    a: &MatrixFree<f64>,
    components: usize,
    works: &[Work],
    repeats: usize,
) -> Result<Vec<f64>, BenchError> {
    let mut seconds = vec![f64::INFINITY; works.len()];
    for has_jacobi in [true, false] {
        let of_kind = |work: &Work| has_jacobi != matches!(work, Work::Unpreconditioned(_));
        if !works.iter().any(of_kind) {
            continue;
        }
        let mut system = MatrixFreeSystem::new(a, components, has_jacobi)?;
        for _ in 0..=repeats {
            for (best, work) in seconds.iter_mut().zip(works).filter(|(_, work)| of_kind(work)) {
                let found = match *work {
                    Work::Product => system.product_seconds()?,
                    Work::Iteration(method) | Work::Unpreconditioned(method) => system.seconds(method)?,
                };
                *best = best.min(found);
            }
        }
    }
    let n_rows = a.cell_loop().n_rows() as f64;
    Ok(seconds.into_iter().map(|seconds| 1e-6 * n_rows / seconds).collect())
}

/// The number of a column at the largest size.
pub(super) fn at_largest(table: &Table, name: &str) -> Option<f64> {
    table.columns.iter().find(|column| column.name == name)?.cells.last()?.number()
}

/// Returns the speed of merged relative to plain iterations of a [`Curve::pair`] at the largest size.
pub(super) fn gain(table: &Table, name: &str) -> Option<f64> {
    let of = |how: &str| at_largest(table, &format!("{name}, {how}"));
    Some(of(MERGED)? / of(PLAIN)?)
}

/// A rate in words, from millions of unknowns a second.
pub(super) fn gdof(rate: f64) -> String {
    format!("{:.3} GDoF/s", 1e-3 * rate)
}
