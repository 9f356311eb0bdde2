//! `[kronbichler2022]`: what iterations move between memory and a cache (Table 1), and how long ranges of vectors are in use
//! (Figure 5).

mod cache;
mod liveliness;
mod traffic;

use femtile::fem::Coefficient;
use femtile::fem::dofs::TensorSpace;
use femtile::fem::matrix_free::{MatrixFree, MatrixFreeConfig, Terms};

use super::{Cell, Claim, Figure, Item, Quantity, Session, Table};
use crate::BenchError;
use crate::problems::bake_off::Shape;

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("table-1", "values that an iteration moves, by a model of a cache", traffic::table_1),
        item("figure-5", "for how many batches of cells ranges of vectors are in use", liveliness::figure_5),
    ]
}

/// Degree of the elements in both.
const DEGREE: usize = 5;

/// Looks at the Laplacian of so many components on a cube of cubes.
fn with_laplacian<R>(
    session: &Session,
    cells: usize,
    components: usize,
    look: impl FnOnce(&MatrixFree<f64>) -> R,
) -> Result<R, BenchError> {
    let mesh = Shape::Cartesian.mesh(cells)?;
    let space = TensorSpace::new(&mesh, DEGREE)?;
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: None };
    let config = MatrixFreeConfig { components, ..MatrixFreeConfig::default() };
    Ok(look(&MatrixFree::new(&session.cpu, &space, terms, config)?))
}

fn figure(
    session: &Session,
    (item, title, quantity): (&'static str, String, Quantity),
    table: Table,
    claims: Vec<Claim>,
    notes: Vec<String>,
) -> Figure {
    Figure {
        paper: "kronbichler2022",
        item,
        title,
        quantity,
        abscissa: "method",
        setting: session.machine(),
        rows: Vec::new(),
        table: Some(table),
        notes,
        claims,
        absent: Vec::new(),
    }
}
