//! Tables 3 and 7 to 9: which settings are fastest.

use super::matrices::Case;
use super::rivals::rivals;
use super::search::{Best, Searched, searched};
use super::{COUNTS, Cell, Claim, Figure, Quantity, Session, Table, all, count_names, figure, names};
use femtile_bench::BenchError;

fn all_searched(session: &Session) -> Result<Vec<&Searched>, BenchError> {
    all(session).iter().map(|case| searched(session, case)).collect()
}

fn block(session: &Session, best: &Best) -> Cell {
    if session.gpu.is_some() { Cell::Count(best.config.block_threads as usize) } else { Cell::Nothing }
}

fn threshold(best: &Best) -> Cell {
    best.config.threshold.map_or(Cell::Nothing, Cell::Count)
}

fn theirs(session: &Session, of: impl Fn(&Case) -> usize) -> Vec<Cell> {
    all(session).iter().map(|case| Cell::Count(of(case))).collect()
}

fn microseconds(seconds: f64) -> Cell {
    Cell::Number(1e6 * seconds)
}

fn no_blocks(session: &Session) -> Vec<String> {
    let note = "A CPU has no blocks of threads: their sizes have no counterpart here.";
    session.gpu.is_none().then(|| note.into()).into_iter().collect()
}

pub(super) fn table_3(session: &Session) -> Result<Figure, BenchError> {
    let found = all_searched(session)?;
    let ours = |cell: &dyn Fn(&Searched) -> Cell| found.iter().map(|best| cell(best)).collect::<Vec<_>>();
    let table = Table::new(names(all(session)))
        .drawn("K1 block", ours(&|best| block(session, &best.k1[0])))
        .drawn("K1 block, theirs", theirs(session, |case| case.matrix.k1_block))
        .drawn("K2 threshold", ours(&|best| threshold(&best.k2[0])))
        .drawn("K2 threshold, theirs", theirs(session, |case| case.matrix.k2[0][0]))
        .drawn("K2 block", ours(&|best| block(session, &best.k2[0])))
        .drawn("K2 block, theirs", theirs(session, |case| case.matrix.k2[0][1]))
        .listed("MGPU values a thread, theirs", theirs(session, |case| case.matrix.values_per_thread[0]))
        .listed("K1 µs", ours(&|best| microseconds(best.k1[0].seconds)))
        .listed("K2 µs", ours(&|best| microseconds(best.k2[0].seconds)));
    let what = ("table-3", "Fastest settings of K1 and K2, one product", Quantity::Parameter, "matrix");
    Ok(Figure { notes: no_blocks(session), ..figure(session, what, table) })
}

pub(super) fn table_7(session: &Session) -> Result<Figure, BenchError> {
    let mut seconds = Vec::new();
    for case in all(session) {
        seconds.push(rivals(session, case)?.merge);
    }
    let mut table = Table::new(names(all(session)));
    for (k, count) in count_names(session).into_iter().enumerate() {
        let ours = seconds.iter().map(|s| s.map_or(Cell::Nothing, |s| microseconds(s[k]))).collect();
        table = table
            .drawn(&format!("merge, {count}"), ours)
            .listed(THEIR_VALUES[k], theirs(session, |case| case.matrix.values_per_thread[k]));
    }
    let notes = vec![
        "Our segmented sum takes eight values a thread on a GPU, and its tiles on a CPU, whatever the \
         matrix: the parameter that theirs was searched over has no counterpart, so its time stands here \
         instead."
            .into(),
    ];
    let what =
        ("table-7", "Segmented sums: their values a thread, our times", Quantity::Microseconds, "matrix");
    Ok(Figure { notes, ..figure(session, what, table) })
}

const THEIR_VALUES: [&str; COUNTS] =
    ["values a thread, theirs [1]", "values a thread, theirs [50]", "values a thread, theirs [1200]"];

/// Table 8 as it is printed: the sizes for 1, 50 and 1,200 products, without names of matrices.
const UNNAMED: &str = "64 64 64; 64 64 64; 128 128 128; 64 64 64; 64 64 64; 96 96 96; 96 96 96; 96 96 96; \
                       32 32 32; 64 32 64; 64 64 64; 64 96 96; 224 224 224; 32 32 32; 96 96 96";

pub(super) fn table_8(session: &Session) -> Result<Figure, BenchError> {
    let found = all_searched(session)?;
    let mut table = Table::new(names(all(session)));
    for (k, count) in count_names(session).into_iter().enumerate() {
        let blocks = found.iter().map(|best| block(session, &best.k1[k])).collect();
        table = table.drawn(&format!("K1 block, {count}"), blocks);
    }
    let is_gpu = session.gpu.is_some();
    let sizes = theirs(session, |case| case.matrix.k1_block);
    table = table.with("K1 block, theirs [1]", sizes, is_gpu);
    for (k, count) in count_names(session).into_iter().enumerate() {
        let times = found.iter().map(|best| microseconds(best.k1[k].seconds)).collect();
        table = table.with(&format!("µs, {count}"), times, !is_gpu);
    }
    let mut notes = no_blocks(session);
    notes.push(format!(
        "The names of the rows of Table 8 are lost in the copy that was read. Its rows, for 1, 50 and 1,200 \
         products, are {UNNAMED}. The first figures are those of Table 3, which has names and is given here."
    ));
    let same = found.iter().filter(|best| is_same(&best.k1, |best| best.config.block_threads)).count();
    let claim = Claim {
        what: "the size of K1's blocks is the same for all counts of products".into(),
        place: "Table 8, appendix 11.1",
        theirs: "13 of 15 matrices".into(),
        ours: is_gpu.then(|| format!("{same} of {}", found.len())),
    };
    // Without blocks there are times to draw.
    let quantity = if is_gpu { Quantity::Parameter } else { Quantity::Microseconds };
    let what = ("table-8", "Fastest block of K1", quantity, "matrix");
    Ok(Figure { notes, claims: vec![claim], ..figure(session, what, table) })
}

fn is_same<K: PartialEq>(best: &[Best; COUNTS], key: impl Fn(&Best) -> K) -> bool {
    best.iter().all(|other| key(other) == key(&best[0]))
}

pub(super) fn table_9(session: &Session) -> Result<Figure, BenchError> {
    let found = all_searched(session)?;
    let mut table = Table::new(names(all(session)));
    for (k, count) in count_names(session).into_iter().enumerate() {
        let thresholds = found.iter().map(|best| threshold(&best.k2[k])).collect();
        let blocks = found.iter().map(|best| block(session, &best.k2[k])).collect();
        let times = found.iter().map(|best| microseconds(best.k2[k].seconds)).collect();
        table = table
            .drawn(&format!("threshold, {count}"), thresholds)
            .drawn(
                &format!("threshold, theirs {}", THEIR_COUNTS[k]),
                theirs(session, |case| case.matrix.k2[k][0]),
            )
            .listed(&format!("block, {count}"), blocks)
            .listed(
                &format!("block, theirs {}", THEIR_COUNTS[k]),
                theirs(session, |case| case.matrix.k2[k][1]),
            )
            .listed(&format!("µs, {count}"), times);
    }
    let same = found
        .iter()
        .filter(|best| is_same(&best.k2, |b| (b.config.threshold, b.config.block_threads)))
        .count();
    let claim = Claim {
        what: "K2's threshold and block are the same for all counts of products".into(),
        place: "Table 9",
        theirs: "3 of 15 matrices".into(),
        ours: Some(format!("{same} of {}", found.len())),
    };
    let mut notes = no_blocks(session);
    notes.push(
        "Tried are powers of two up to 64 and the longest row; theirs are all lengths from the shortest \
         row to the longest."
            .into(),
    );
    let what = ("table-9", "Fastest threshold and block of K2", Quantity::Parameter, "matrix");
    Ok(Figure { notes, claims: vec![claim], ..figure(session, what, table) })
}

const THEIR_COUNTS: [&str; COUNTS] = ["[1]", "[50]", "[1200]"];
