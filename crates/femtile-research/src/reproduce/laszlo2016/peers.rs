//! Other libraries on the same sizes.

use serde::Deserialize;

use super::blocks::Size;
use super::scalar::{Grid, row};
use super::{Absent, Row, Session};
use femtile_bench::python::ask;

/// Output of every script.
#[derive(Debug, Deserialize)]
struct Answer {
    /// Name and version.
    library: String,
    solver: String,
    /// Nanoseconds of an unknown, for each requested size, fastest run.
    ns: Vec<f64>,
}

/// A library and its settings.
struct Library {
    name: &'static str,
    script: &'static str,
    kind: &'static str,
    /// Along which axis it can solve.
    axis: &'static str,
    install: &'static str,
}

const INSTALL_MKL: &str =
    "pip install mkl numpy, into the python3 of the path or the one that FEMTILE_PYTHON names";

const INSTALL_CUSPARSE: &str = "pip install 'cupy-cuda13x[ctk]', or cupy-cuda12x[ctk] with an older driver, on a machine with an NVIDIA GPU";

const LIBRARIES: [Library; 4] = [
    Library {
        name: "MKL ?dtsvb",
        script: include_str!("../../../../../bench/peers/mkl_dtsvb.py"),
        kind: "cpu",
        axis: "x",
        install: INSTALL_MKL,
    },
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
        install: INSTALL_CUSPARSE,
    },
    Library {
        name: "cuSPARSE gtsvInterleavedBatch",
        script: include_str!("../../../peers/cusparse_gtsv.py"),
        kind: "cuda",
        axis: "y",
        install: INSTALL_CUSPARSE,
    },
];

const GBSV: Library = Library {
    name: "MKL ?gbsv",
    script: include_str!("../../../../../bench/peers/mkl_gbsv.py"),
    kind: "cpu",
    axis: "",
    install: INSTALL_MKL,
};

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
        let mut arguments = vec![library.axis.to_string()];
        arguments.extend(counts(session));
        arguments
            .extend(grids.iter().flat_map(|grid| [grid.length(), grid.n_systems()]).map(|n| n.to_string()));
        match answer(library, precision, &arguments, grids.len()) {
            Ok(answer) => rows.extend(grids.iter().zip(&answer.ns).map(|(grid, ns)| {
                let n = grid.sizes.iter().product::<usize>() as f64;
                answer.complete(row(grid, precision, 1e-9 * ns * n), library)
            })),
            Err(reason) => absent.push(library.absent(reason)),
        }
    }
}

/// Measures MKL's banded solver on block systems.
pub(super) fn blocks(
    session: &Session,
    precision: &'static str,
    sizes: &[Size],
    rows: &mut Vec<Row>,
    absent: &mut Vec<Absent>,
) {
    let mut arguments = counts(session).to_vec();
    arguments.extend(sizes.iter().flat_map(|s| [s.block, s.length, s.n_systems]).map(|n| n.to_string()));
    match answer(&GBSV, precision, &arguments, sizes.len()) {
        Ok(answer) => rows.extend(sizes.iter().zip(&answer.ns).map(|(size, ns)| {
            answer.complete(size.row(precision, 1e-9 * ns * size.n_block_rows() as f64), &GBSV)
        })),
        Err(reason) => absent.push(GBSV.absent(reason)),
    }
}

fn counts(session: &Session) -> [String; 2] {
    [session.cpu.threads().to_string(), session.settings.repeats.to_string()]
}

impl Library {
    fn absent(&self, reason: String) -> Absent {
        Absent { peer: self.name, reason, install: self.install }
    }
}

impl Answer {
    fn complete(&self, row: Row, library: &Library) -> Row {
        Row { solver: self.solver.clone(), library: self.library.clone(), kind: library.kind, ..row }
    }
}

fn answer(library: &Library, precision: &str, arguments: &[String], n: usize) -> Result<Answer, String> {
    let arguments = [&[precision.to_string()], arguments].concat();
    let one = |name| (name, "1".to_string());
    let environment = [one("OMP_NUM_THREADS"), one("OPENBLAS_NUM_THREADS"), one("MKL_NUM_THREADS")];
    let answer: Answer = ask(library.script, &arguments, &environment)?;
    if answer.ns.len() != n {
        return Err(format!("{} figures for {n} sizes", answer.ns.len()));
    }
    Ok(answer)
}
