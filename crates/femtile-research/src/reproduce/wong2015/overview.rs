//! Table 2 and figure 4: the matrices and the row lengths of the smallest mesh.

use super::{Cell, Claim, Figure, Quantity, Session, Table, all, figure};
use femtile_bench::BenchError;

pub(super) fn table_2(session: &Session) -> Result<Figure, BenchError> {
    let cases = all(session);
    let mut ours = Vec::new();
    for case in cases {
        let a = case.a(session.settings.small)?;
        let lengths = a.row_lengths();
        let extremes =
            [lengths.iter().min(), lengths.iter().max()].map(|length| length.map_or(0, |&l| l as usize));
        ours.push([a.n_nonzeros(), a.n_rows(), extremes[0], extremes[1]]);
    }
    let mut table = Table::new(cases.iter().map(|case| case.matrix.label()).collect());
    let names = ["non-zeros", "rows", "shortest row", "longest row"];
    for (k, name) in names.into_iter().enumerate() {
        let theirs = cases.iter().map(|case| Cell::Count(case.matrix.sizes[k])).collect();
        table = table
            .listed(name, ours.iter().map(|sizes| Cell::Count(sizes[k])).collect())
            .listed(&format!("{name}, theirs"), theirs);
    }
    let mean = |sizes: &[usize; 4]| Cell::Number(sizes[0] as f64 / sizes[1].max(1) as f64);
    let table = table
        .drawn("mean", ours.iter().map(mean).collect())
        .drawn("mean, theirs", cases.iter().map(|case| Cell::Count(case.matrix.sizes[4])).collect());
    let what = ("table-2", "The fifteen matrices", Quantity::Entries, "matrix");
    Ok(Figure { absent: Vec::new(), ..figure(session, what, table) })
}

pub(super) fn figure_4(session: &Session) -> Result<Figure, BenchError> {
    let case = all(session).iter().find(|case| case.matrix.name == "Heart 3K");
    let lengths = match case {
        Some(case) => case.a(session.settings.small)?.row_lengths(),
        None => Vec::new(),
    };
    let (least, most) = (lengths.iter().min().copied(), lengths.iter().max().copied());
    let bins = least.unwrap_or(0)..=most.unwrap_or(0);
    let count = |length: u32| Cell::Count(lengths.iter().filter(|&&other| other == length).count());
    let table = Table::new(bins.clone().map(|length| length.to_string()).collect())
        .drawn("rows of this length", bins.clone().map(count).collect());
    let what = ("figure-4", "Rows by number of entries, smallest mesh", Quantity::Rows, "entries of a row");
    let range = Claim {
        what: "entries of a row of the smallest mesh".into(),
        place: "section 5, Figure 4",
        theirs: "5 to 21".into(),
        ours: Some(format!("{} to {}", bins.start(), bins.end())),
    };
    Ok(Figure { claims: vec![range], absent: Vec::new(), ..figure(session, what, table) })
}
