//! Table 1: the meshes.

use super::meshes::no_samples;
use super::{Cell, Figure, Quantity, Session, Table, all, figure, names};
use femtile_bench::BenchError;
use femtile_bench::problems::kuhn_box;

/// Nodes, cells, least and greatest valence, millions of non-zeros.
const COLUMNS: [&str; 5] = ["nodes", "cells", "least valence", "greatest valence", "million non-zeros"];

pub(super) fn table_1(session: &Session) -> Result<Figure, BenchError> {
    let cases = all(session);
    let mut ours = Vec::new();
    for case in cases {
        let Some(mesh) = case.mesh()? else {
            ours.push([const { Cell::Nothing }; COLUMNS.len()]);
            continue;
        };
        let a = kuhn_box::system::<f64, _>(&session.cpu, mesh)?.matrix;
        let lengths = a.row_lengths();
        // A row has an entry for its node and one for each neighbour.
        let valence = |length: Option<&u32>| length.map_or(0, |length| *length as usize - 1);
        ours.push([
            Cell::Count(mesh.n_nodes()),
            Cell::Count(mesh.n_cells()),
            Cell::Count(valence(lengths.iter().min())),
            Cell::Count(valence(lengths.iter().max())),
            Cell::Number(1e-6 * a.n_nonzeros() as f64),
        ]);
    }
    let mut table = Table::new(names(cases));
    for (k, name) in COLUMNS.into_iter().enumerate() {
        let theirs = cases.iter().map(|case| match case.theirs {
            Some(theirs) if k < 4 => Cell::Count(theirs.sizes[k]),
            Some(theirs) => Cell::Number(theirs.million_nonzeros),
            None => Cell::Nothing,
        });
        table = table.with(name, ours.iter().map(|cells| cells[k].clone()).collect(), k == 0).with(
            &format!("{name}, theirs"),
            theirs.collect(),
            k == 0,
        );
    }
    let notes = vec![
        "Regular is cut by Kuhn's six tetrahedra, which valences tell from the paper's six; its 5.1 million \
         non-zeros would be 19 a node."
            .into(),
    ];
    let what = ("table-1", "The meshes", Quantity::Nodes, "mesh");
    Ok(Figure { notes, absent: no_samples().into_iter().collect(), ..figure(session, what, table) })
}
