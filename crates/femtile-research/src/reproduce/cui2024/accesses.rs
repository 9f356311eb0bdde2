//! Table 4: values of vectors that kernels read and write, by what they do.

use super::{Cell, Figure, Quantity, Session, Table, figure};
use crate::published_kernels::{Layout, Passes, PatchPass, PublishedKernel};
use femtile_bench::BenchError;

/// The degree whose counts a patch are shown.
const DEGREE: usize = 3;
/// Degrees whose counts an unknown are shown.
const DEGREES: [usize; 3] = [1, 3, 7];

/// The work of a launch on a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// The residual on the whole grid, of the part of it that is a patch's.
    GlobalResidual,
    Residual,
    Solve,
    Fused,
    /// The residual of the surface and the solve.
    Boundary,
    /// Solves that write what is inside cells once.
    Skeleton,
}

/// Values of vectors of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Accesses {
    pub reads: f64,
    pub writes: f64,
}

impl Work {
    /// Of a patch, each value once.
    pub fn accesses(self, degree: usize) -> Accesses {
        let cube = |edge: usize| edge.pow(3) as f64;
        let (inside, all) = (cube(2 * degree - 1), cube(2 * degree + 1));
        let edge = (2 * degree - 1) as f64;
        let (reads, writes) = match self {
            // A colour has a patch for each eight cells.
            Self::GlobalResidual => (2.0 * cube(2 * degree), cube(2 * degree)),
            Self::Residual => (all + inside, inside),
            Self::Solve => (2.0 * inside, inside),
            Self::Fused => (all + inside, inside),
            Self::Boundary => (all, inside),
            // One patch of eight is the last that has its cells; the others write three planes.
            Self::Skeleton => (all, (inside + 7.0 * (3.0 * edge * edge - 3.0 * edge + 1.0)) / 8.0),
        };
        Accesses { reads, writes }
    }
}

/// Kernels with their launches, and vectors read and written as printed.
const ROWS: [(&str, Work, [Option<usize>; 2]); 7] = [
    ("global, residual", Work::GlobalResidual, [Some(3), Some(2)]),
    ("global, solve", Work::Solve, [Some(2), Some(1)]),
    ("separate, residual", Work::Residual, [Some(2), Some(1)]),
    ("separate, solve", Work::Solve, [Some(2), Some(1)]),
    ("fused", Work::Fused, [Some(2), Some(1)]),
    ("boundary, whole", Work::Boundary, [None, None]),
    ("skeleton", Work::Skeleton, [None, None]),
];

pub(super) fn table_4(session: &Session) -> Result<Figure, BenchError> {
    let column = |of: &dyn Fn(Work) -> f64| ROWS.iter().map(|row| Cell::Number(of(row.1))).collect();
    let theirs =
        |which: usize| ROWS.iter().map(|row| row.2[which].map_or(Cell::Nothing, Cell::Count)).collect();
    let mut table = Table::new(ROWS.iter().map(|row| row.0.to_string()).collect())
        .listed("vectors read, theirs", theirs(0))
        .listed("vectors written, theirs", theirs(1))
        .listed(&format!("read a patch, Q{DEGREE}"), column(&|work| work.accesses(DEGREE).reads))
        .listed(&format!("written a patch, Q{DEGREE}"), column(&|work| work.accesses(DEGREE).writes));
    for degree in DEGREES {
        let all = |work: Work| {
            let Accesses { reads, writes } = work.accesses(degree);
            (reads + writes) / degree.pow(3) as f64
        };
        table = table.drawn(&format!("read and written an unknown, Q{degree}"), column(&all));
    }
    let shared = ROWS.iter().map(|row| on_chip(row.1).map_or(Cell::Nothing, Cell::Count)).collect();
    table = table.listed(&format!("bytes on chip of a patch, Q{DEGREE}, f64"), shared);
    let notes = vec![
        "Counted from the algorithms: each value of x, b and r once a launch, an unknown of one step of eight colours. Theirs \
         counts vectors; their residual on the whole grid is two passes, ours one. What is on chip is that of the conflict-free \
         layout with its tables."
            .into(),
    ];
    let title = "Values of global vectors that kernels read and write";
    Ok(Figure {
        notes,
        quantity: Quantity::Values,
        abscissa: "kernel",
        ..figure(session, "table-4", title, Vec::new(), table)
    })
}

/// Returns the shared memory of a patch, for the kernels of the paper.
fn on_chip(work: Work) -> Option<usize> {
    let pass = match work {
        Work::Residual => PatchPass::Residual,
        Work::Solve => PatchPass::Solve,
        Work::Fused | Work::Boundary => PatchPass::Fused,
        Work::GlobalResidual | Work::Skeleton => return None,
    };
    let kernel = PublishedKernel { passes: Passes::Fused, layout: Layout::ConflictFree };
    Some(kernel.shared_bytes::<f64>(DEGREE, pass, 1))
}
