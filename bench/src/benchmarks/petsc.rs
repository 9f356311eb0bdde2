//! Jacobi-CG on the box to 1e-8, ours and PETSc's in turn, one thread, the same matrix: in the format that a solve chooses
//! for it, whose conversion is not timed, as PETSc's assembly is not.

use std::path::Path;

use femtile::device::{Buffer, Cpu};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::{Csr, MatrixFormat, ProductMatrix};
use serde::Deserialize;

use super::between_bandwidths;
use crate::Samples;
use crate::problems::kuhn_box;
use crate::python::ask;
use crate::system_file::write_system;
use crate::{BenchError, Options, Record, Work};

const SCRIPT: &str = include_str!("../../peers/petsc_jacobi_cg.py");
const TOLERANCE: f64 = 1e-8;
/// Products for which the format is chosen: about as many as a solve takes.
const PRODUCTS: usize = 400;

/// Output of the script.
#[derive(Deserialize)]
struct Peer {
    version: String,
    iterations: usize,
    seconds: Vec<f64>,
}

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let (cpu, nodes) = (Cpu::new(options.threads.unwrap_or(1))?, options.nodes(65)?);
    let a = kuhn_box::matrix::<f64, _>(&cpu, nodes)?;
    let (formatted, _) =
        ProductMatrix::new(kuhn_box::matrix::<f64, _>(&cpu, nodes)?, MatrixFormat::Auto, PRODUCTS, &[])?;
    let folder =
        tempfile::tempdir().map_err(|source| BenchError::File { what: "temporary folder", source })?;
    let file = folder.path().join("box.csr");
    write_system(&a, &kuhn_box::ones(&cpu, nodes)?, &file)?;

    let repeats = options.repeats(9).div_ceil(super::ROUNDS);
    let (mut ours, mut theirs, mut iterations) = (Samples::default(), Samples::default(), 0);
    let (mut version, mut their_iterations) = (String::new(), 0);
    let bandwidth = between_bandwidths(&cpu, || {
        iterations = solve(&cpu, (&a, &formatted), nodes, repeats, &mut ours)?;
        let peer = ask_petsc(&file, repeats)?;
        peer.seconds.iter().for_each(|&seconds| theirs.push(seconds));
        (version, their_iterations) = (peer.version, peer.iterations);
        Ok(())
    })?;
    let bound = ("read bandwidth", bandwidth.read_gb_per_s);
    let record = |problem: &str, samples: &Samples, iterations: usize| {
        let n = a.n_rows() as f64;
        let work = Work {
            bytes: iterations as f64 * (a.product_bytes() as f64 + 80.0 * n),
            flops: iterations as f64 * (2.0 * a.n_nonzeros() as f64 + 14.0 * n),
        };
        let mut record = Record::against_bandwidth(problem, &cpu, samples, work, bound);
        record.set("nodes", nodes);
        record.set("iterations", iterations);
        record.set("tolerance", TOLERANCE);
        record.set("threads", cpu.threads());
        record
    };
    let mut mine = record("jacobi-cg solve, box", &ours, iterations);
    mine.set("format", formatted.format().name());
    mine.set("petsc_seconds_over_ours_min", theirs.min() / ours.min());
    mine.set("petsc_seconds_over_ours_median", theirs.median() / ours.median());
    let mut petsc = record("jacobi-cg solve, box, PETSc", &theirs, their_iterations);
    petsc.device = "cpu (1 threads, PETSc)".into();
    petsc.set("version", version);
    petsc.set("threads", 1);
    Ok(vec![mine, petsc])
}

/// Solves several times from zero; the time of one includes the preconditioner's set-up.
fn solve(
    cpu: &Cpu,
    (rows, a): (&Csr<f64, Cpu>, &ProductMatrix<f64, Cpu>),
    nodes: usize,
    repeats: usize,
    samples: &mut Samples,
) -> Result<usize, BenchError> {
    let b = kuhn_box::ones(cpu, nodes)?;
    let mut x = Buffer::zeros(cpu, b.len())?;
    let cg = ConjugateGradient::new(KrylovConfig { tolerance: TOLERANCE, ..KrylovConfig::default() });
    let mut iterations = 0;
    for _ in 0..repeats {
        x.as_mut_slice().fill(0.0);
        let outcome = samples.time(|| {
            let jacobi = Jacobi::new(rows)?;
            cg.solve(&mut x, a, &jacobi, &b, &SingleRank, &mut ())
        })?;
        if outcome.stop != Stop::Converged {
            return Err(BenchError::Setting {
                field: "nodes",
                message: format!("the solve {}", outcome.stop),
            });
        }
        iterations = outcome.iterations;
    }
    Ok(iterations)
}

fn ask_petsc(file: &Path, repeats: usize) -> Result<Peer, BenchError> {
    let arguments = [file.display().to_string(), repeats.to_string(), TOLERANCE.to_string()];
    ask(SCRIPT, &arguments, &[("OMP_NUM_THREADS", "1".into())])
        .map_err(|reason| BenchError::Peer { peer: "PETSc", reason })
}
