//! Other libraries on the same sizes.

use serde::Deserialize;

use super::scalar::{Grid, row};
use super::{Absent, Row, Session};
use crate::peer::ask;

/// What every script prints.
#[derive(Debug, Deserialize)]
struct Answer {
    /// Name and version.
    library: String,
    solver: String,
    /// Nanoseconds of an unknown, for each size that was asked for, fastest run.
    ns: Vec<f64>,
}

/// A library as it is asked for.
struct Library {
    name: &'static str,
    script: &'static str,
    kind: &'static str,
    /// Along which axis it can solve.
    axis: &'static str,
    install: &'static str,
}

const LIBRARIES: [Library; 3] = [
    Library {
        name: "LAPACK ?gtsv",
        script: include_str!("../../../peers/lapack_gtsv.py"),
        kind: "cpu",
        axis: "x",
        install: "pip install scipy, into the python3 of the path or the one that FEMTILE_PYTHON names",
    },
    Library {
        name: "cuSPARSE gtsv2StridedBatch",
        script: include_str!("../../../peers/cusparse_gtsv.py"),
        kind: "cuda",
        axis: "x",
        install: "on a machine with an NVIDIA GPU: pip install cupy-cuda12x nvidia-cusparse-cu12",
    },
    Library {
        name: "cuSPARSE gtsvInterleavedBatch",
        script: include_str!("../../../peers/cusparse_gtsv.py"),
        kind: "cuda",
        axis: "y",
        install: "on a machine with an NVIDIA GPU: pip install cupy-cuda12x nvidia-cusparse-cu12",
    },
];

/// Measures every library that solves along an axis of these grids.
pub(super) fn scalar(
    session: &Session,
    precision: &'static str,
    grids: &[Grid],
    rows: &mut Vec<Row>,
    absent: &mut Vec<Absent>,
) {
    for library in &LIBRARIES {
        let grids: Vec<&Grid> = grids.iter().filter(|grid| grid.axis == library.axis).collect();
        if grids.is_empty() || (library.kind == "cuda" && session.gpu.is_none()) {
            continue;
        }
        match answer(session, library, precision, &grids) {
            Ok(answer) => rows.extend(grids.iter().zip(&answer.ns).map(|(grid, ns)| {
                let n = grid.sizes.iter().product::<usize>() as f64;
                let mut row = row(grid, precision, 1e-9 * ns * n);
                row.solver.clone_from(&answer.solver);
                row.library.clone_from(&answer.library);
                row.kind = library.kind;
                row
            })),
            Err(reason) => absent.push(Absent { peer: library.name, reason, install: library.install }),
        }
    }
}

/// Arguments of a script: precision, axis, threads, repeats, then length and number of systems of each size.
fn answer(session: &Session, library: &Library, precision: &str, grids: &[&Grid]) -> Result<Answer, String> {
    let (threads, repeats) = (session.cpu.threads().to_string(), session.settings.repeats.to_string());
    let mut arguments = vec![precision.into(), library.axis.into(), threads.clone(), repeats];
    arguments.extend(grids.iter().flat_map(|grid| [grid.length().to_string(), grid.n_systems().to_string()]));
    let one = |name| (name, "1".to_string());
    let environment = [one("OMP_NUM_THREADS"), one("OPENBLAS_NUM_THREADS")];
    let answer: Answer = ask(library.script, &arguments, &environment)?;
    if answer.ns.len() != grids.len() {
        return Err(format!("{} figures for {} sizes", answer.ns.len(), grids.len()));
    }
    Ok(answer)
}
