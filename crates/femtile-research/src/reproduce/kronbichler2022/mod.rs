//! `[kronbichler2022]`: what iterations move between memory and a cache (Table 1, Figures 6 and 7), how long ranges of vectors
//! are in use (Figure 5), and how fast products and iterations are (Figures 1, 2 and 8 to 14).

mod breakdown;
mod cache;
mod curves;
mod gpu;
mod liveliness;
mod memory;
mod on_ranks;
mod ranks;
mod throughput;
mod traffic;

use femtile::device::Cpu;
use femtile::matrix_free::{MatrixFree, MetricEvaluation};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{DeformConfig, deform};
use femtile::space::TensorSpace;

use super::session::no_gpu;
use super::{Cell, Claim, Figure, Item, Quantity, Session, Table, UNKNOWNS};
use femtile_bench::BenchError;
use femtile_bench::problems::bake_off::{BakeOff, Shape};
pub(super) use throughput::Shared;

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("table-1", "values that an iteration moves, by a model of a cache", traffic::table_1),
        item("figure-1", "time of the operations of an iteration against size", breakdown::figure_1),
        item("figure-2", "products against size, by metric evaluation", curves::figure_2),
        item(
            "figure-5",
            "number of batches of cells for which ranges of vectors are in use",
            liveliness::figure_5,
        ),
        item(
            "figure-6",
            "values that iterations move against size, by a model of a cache",
            traffic::figure_6,
        ),
        item("figure-7", "values that all methods move, estimated and by the model", traffic::figure_7),
        item("figure-8", "variants of conjugate gradients against size", curves::figure_8),
        item("figure-9", "variants of conjugate gradients on several ranks against size", ranks::figure_9),
        item("figure-10", "the same on all ranks and on half of them", ranks::figure_10),
        item("figure-11", "plain and merged iterations against size, degrees 1 to 9", curves::figure_11),
        item("figure-12", "the same by metric evaluation", curves::figure_12),
        item("figure-13", "the same on bake-off problems 1 to 5", curves::figure_13),
        item("figure-14", "bake-off problem 5 against size, processors and GPU", gpu::figure_14),
    ]
}

/// Degree of the elements in figures with one degree.
const DEGREE: usize = 5;

/// An operator on a cube of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Problem {
    operator: BakeOff,
    degree: usize,
    shape: Shape,
    /// Order of the cells; above 1 all are bent as those of [`Shape::Deformed`], between their corners as well.
    order: usize,
    /// Metric evaluation; none for the cheapest.
    geometry: Option<MetricEvaluation>,
}

/// The base case of the paper, which computes its metrics from 27 points, on straight cells.
const BASE: Problem =
    Problem { operator: BakeOff::Bp4, degree: DEGREE, shape: Shape::Deformed, order: 1, geometry: None };

impl Problem {
    /// The Laplacian with a number of components on cubes, of which only the numbering is examined.
    fn of_components(components: usize) -> Self {
        let operator = if components == 3 { BakeOff::VectorLaplace } else { BakeOff::Laplace };
        Self { operator, shape: Shape::Cartesian, ..BASE }
    }

    /// Returns the cells a side that come closest to `n_unknowns`.
    fn cells(&self, n_unknowns: usize) -> usize {
        let nodes = (n_unknowns as f64 / self.operator.components() as f64).cbrt();
        (((nodes - 1.0) / self.degree as f64).round() as usize).max(1)
    }

    /// Returns the mesh with `cells` cells a side.
    fn mesh(&self, cells: usize) -> Result<Mesh, BenchError> {
        if self.order == 1 {
            return self.shape.mesh(cells);
        }
        let mut mesh = Shape::Cartesian.mesh(cells)?;
        deform(&mut mesh, &DeformConfig { order: self.order, ..DeformConfig::default() })?;
        Ok(mesh)
    }

    /// Examines the operator with `cells` cells a side.
    fn look<R>(
        &self,
        cpu: &Cpu,
        cells: usize,
        look: impl FnOnce(&MatrixFree<f64>) -> R,
    ) -> Result<R, BenchError> {
        let mesh = self.mesh(cells)?;
        let space = cpu.install(|| TensorSpace::new(&mesh, self.degree))?;
        Ok(look(&self.operator.operator(cpu, &space, self.geometry)?))
    }
}

fn figure(
    session: &Session,
    (item, title, quantity, abscissa): (&'static str, &str, Quantity, &'static str),
    table: Table,
) -> Figure {
    Figure {
        paper: "kronbichler2022",
        item,
        title: title.into(),
        quantity,
        abscissa,
        setting: session.machine(),
        rows: Vec::new().into(),
        table: Some(table),
        notes: Vec::new(),
        claims: Vec::new(),
        absent: Vec::new(),
    }
}

/// A factor in words.
fn times(factor: f64) -> String {
    format!("{factor:.2}×")
}
