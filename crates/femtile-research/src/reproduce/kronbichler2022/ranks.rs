//! Figures 9 and 10: variants of conjugate gradients on several ranks, by size and by the time of an iteration.

use super::on_ranks::{Variant, seconds};
use super::throughput::{at_largest, sizes};
use super::{Cell, Claim, DEGREE, Figure, Quantity, Session, Table, UNKNOWNS, figure, times};
use femtile::{Method, PreconditionerConfig};
use femtile_bench::BenchError;

/// The methods by name.
const VARIANTS: [Variant; 6] = [
    Variant { name: "CG", method: Method::Cg, preconditioner: PreconditionerConfig::None },
    Variant { name: "pipelined CG", method: Method::PipelinedCg, preconditioner: PreconditionerConfig::None },
    Variant {
        name: S_STEP,
        method: Method::SStepCg { steps: 3 },
        preconditioner: PreconditionerConfig::None,
    },
    Variant { name: "merged CG", method: Method::MergedCg, preconditioner: PreconditionerConfig::None },
    Variant { name: "PCG", method: Method::Cg, preconditioner: PreconditionerConfig::Jacobi },
    Variant { name: MERGED, method: Method::MergedCg, preconditioner: PreconditionerConfig::Jacobi },
];
const S_STEP: &str = "s-step CG";
const MERGED: &str = "merged PCG";

/// The smallest time of an iteration in the figures, whose axes the text reads so.
const LEAST_TIME: &str = "about 1.3·10⁻⁴ s on 512 nodes with at most one reduction an iteration";

/// Returns the number of ranks of the figures.
fn n_ranks(session: &Session) -> usize {
    match session.settings.ranks {
        0 => session.cpu.threads().max(2),
        n => n,
    }
}

/// Returns the cells a side with which each of the ranks has about `n_unknowns`.
fn cells(n_unknowns: usize, n_ranks: usize) -> usize {
    let nodes = ((n_unknowns * n_ranks) as f64).cbrt();
    (((nodes - 1.0) / DEGREE as f64).round() as usize).max(1)
}

/// Columns of unknowns a second for each rank, in millions, and, not drawn, of microseconds of an iteration.
fn columns(
    session: &Session,
    table: Table,
    (n_ranks, suffix): (usize, &str),
    rows: &[usize],
    variants: &[Variant],
) -> Result<Table, BenchError> {
    let [mut rates, mut microseconds] = [(); 2].map(|()| vec![Vec::new(); variants.len()]);
    for &n_unknowns in rows {
        let cells = cells(n_unknowns, n_ranks);
        let n_nodes = (cells * DEGREE + 1).pow(3) as f64;
        for (at, variant) in variants.iter().enumerate() {
            let seconds = seconds(session, n_ranks, (DEGREE, cells), variant)?;
            rates[at].push(Cell::Number(1e-6 * n_nodes / seconds / n_ranks as f64));
            microseconds[at].push(Cell::Number(1e6 * seconds));
        }
    }
    let named = |table: Table, (variant, (rate, time)): (&Variant, (Vec<Cell>, Vec<Cell>))| {
        let name = format!("{}{suffix}", variant.name);
        table.drawn(&name, rate).listed(&format!("{name}, µs"), time)
    };
    Ok(variants.iter().zip(rates.into_iter().zip(microseconds)).fold(table, named))
}

fn made(
    session: &Session,
    (item, title): (&'static str, String),
    table: Table,
    claims: Vec<Claim>,
) -> Figure {
    let how = match &session.settings.launcher {
        Some(launcher) => format!("processes of MPI (`{launcher}`), each with one thread"),
        None => "threads of one process; --launcher runs processes of MPI".into(),
    };
    let notes = vec![
        format!(
            "−Δu + u = f, one component, p = {DEGREE}, equal cubes, without a matrix; the figures of the paper have three \
             components on bent cells. Ranks are {how}."
        ),
        "Rows are the unknowns of a rank aimed at. Rates are of unknowns for each rank; an iteration is the mean over the \
         later ones of a solve. Columns in µs give throughput over the time of an iteration, the lower panels."
            .into(),
    ];
    let what = (item, title.as_str(), Quantity::MdofPerS, UNKNOWNS);
    Figure { claims, notes, ..figure(session, what, table) }
}

/// The least number of a column.
fn least(table: &Table, name: &str) -> Option<f64> {
    let column = table.columns.iter().find(|column| column.name == name)?;
    column.cells.iter().filter_map(Cell::number).reduce(f64::min)
}

/// Returns the unknowns of a rank, ascending.
fn sizes_of_rank(session: &Session, n_ranks: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = sizes(session).into_iter().map(|n| n / n_ranks).collect();
    rows.dedup();
    rows
}

pub(super) fn figure_9(session: &Session) -> Result<Figure, BenchError> {
    let n_ranks = n_ranks(session);
    let rows = sizes_of_rank(session, n_ranks);
    let table = Table::new(rows.iter().map(usize::to_string).collect());
    let table = columns(session, table, (n_ranks, ""), &rows, &VARIANTS)?;
    let time =
        |name: &str| least(&table, &format!("{name}, µs")).map(|time| format!("{:.1e} s", 1e-6 * time));
    let place = "section 6.2";
    let claims: Vec<Claim> = ["merged CG", "pipelined CG", S_STEP]
        .into_iter()
        .map(|name| Claim {
            what: format!("{name}, smallest time of an iteration"),
            place,
            theirs: LEAST_TIME.into(),
            ours: time(name),
        })
        .collect();
    let title = format!("Variants of conjugate gradients on {n_ranks} ranks");
    Ok(made(session, ("figure-9", title), table, claims))
}

pub(super) fn figure_10(session: &Session) -> Result<Figure, BenchError> {
    let most = n_ranks(session);
    let fewer = (most / 2).max(1);
    let rows = sizes_of_rank(session, most);
    let of = [&VARIANTS[2], &VARIANTS[4], &VARIANTS[5]].map(Variant::clone);
    let table = Table::new(rows.iter().map(usize::to_string).collect());
    let table = columns(session, table, (most, ""), &rows, &of)?;
    let suffix = format!(", {fewer} ranks");
    let table = columns(session, table, (fewer, &suffix), &rows, &of)?;
    let over = |one: &str, other: &str| Some(at_largest(&table, one)? / at_largest(&table, other)?);
    let fewer_merged = format!("{MERGED}{suffix}");
    let claim = |what: String, theirs: &str, ours: Option<f64>| Claim {
        what,
        place: "section 6.2",
        theirs: theirs.into(),
        ours: ours.map(times),
    };
    let time = |name: &str| least(&table, &format!("{name}, µs"));
    let growth = time(MERGED).zip(time(&fewer_merged)).map(|(one, other)| one / other);
    let claims = vec![
        claim(format!("{MERGED} over s-step CG, largest size"), "1.35 to 1.40×, s = 6", over(MERGED, S_STEP)),
        claim(
            format!("{MERGED} of a rank over that on {fewer}, largest size"),
            "a slight loss from 512 to 3,072 nodes",
            over(MERGED, &fewer_merged),
        ),
        claim(
            format!("{MERGED}, smallest time of an iteration over that on {fewer}"),
            "larger by sums over more ranks",
            growth,
        ),
    ];
    let title = format!("Variants of conjugate gradients on {most} and {fewer} ranks");
    Ok(made(session, ("figure-10", title), table, claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_a_rank() {
        assert_eq!(cells(216, 1), 1);
        // 41³ nodes.
        assert_eq!(cells(41 * 41 * 41 / 4, 4), 8);
    }
}
