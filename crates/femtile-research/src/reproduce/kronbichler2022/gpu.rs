//! Figure 14: bake-off problem 5 on processors and on a GPU.

use femtile::device::{Buffer, Cuda};
use femtile::matrix_free::{CudaMatrixFree, MetricEvaluation};
use femtile::space::TensorSpace;

use super::throughput::{Curve, MERGED, PLAIN, against_size, at_largest, gain, gdof, sizes};
use super::{BASE, Cell, Claim, Figure, Problem, Quantity, Session, UNKNOWNS, figure, no_gpu, times};
use femtile_bench::BenchError;
use femtile_bench::Samples;
use femtile_bench::benchmarks::bake_off_cuda;
use femtile_bench::problems::bake_off::BakeOff;

const GEOMETRY: MetricEvaluation = MetricEvaluation::Stored;
const PROBLEM: Problem = Problem { operator: BakeOff::Bp5, geometry: Some(GEOMETRY), ..BASE };
const CPU: &str = "CPU";
const GPU: &str = "GPU";

/// Times the iterations of a number of solves.
type Iteration = fn(&CudaMatrixFree<f64>, &Buffer<f64, Cuda>, usize) -> Result<Samples, BenchError>;

/// Methods measured on a GPU.
const ON_A_GPU: [(&str, Iteration); 2] =
    [(PLAIN, bake_off_cuda::plain_iteration), (MERGED, bake_off_cuda::merged_iteration)];

/// Returns millions of unknowns a second of all methods, near `n_unknowns` unknowns.
fn on_gpu(session: &Session, device: &Cuda, n_unknowns: usize) -> Result<Vec<f64>, BenchError> {
    let mesh = PROBLEM.mesh(PROBLEM.cells(n_unknowns))?;
    let space = session.cpu.install(|| TensorSpace::new(&mesh, PROBLEM.degree))?;
    let a = PROBLEM.operator.cuda_operator(device, &space, GEOMETRY)?;
    let n = space.n_dofs();
    let b = Buffer::from_vec(device, (0..n).map(|i| (i % 17) as f64 * 0.1).collect())?;
    let rate = |&(_, iteration): &(&str, Iteration)| {
        let samples = iteration(&a, &b, session.settings.repeats)?;
        Ok(1e-6 * n as f64 / samples.min())
    };
    ON_A_GPU.iter().map(rate).collect()
}

pub(super) fn figure_14(session: &Session) -> Result<Figure, BenchError> {
    let mut table = against_size(session, &Curve::pair(CPU, PROBLEM))?;
    if let Some(gpu) = &session.gpu {
        let mut found = Vec::new();
        for n_unknowns in sizes(session) {
            found.push(on_gpu(session, &gpu.device, n_unknowns)?);
        }
        for (k, (how, _)) in ON_A_GPU.iter().enumerate() {
            let cells = found.iter().map(|rates| Cell::Number(rates[k])).collect();
            table = table.drawn(&format!("{GPU}, {how}"), cells);
        }
    }
    let claim = |what: &str, theirs: &str, ours| Claim {
        what: format!("{what}, largest size"),
        place: "section 6.4.2",
        theirs: theirs.into(),
        ours,
    };
    let claims = vec![
        claim(
            "plain iteration on the GPU",
            "plot only",
            at_largest(&table, &format!("{GPU}, {PLAIN}")).map(gdof),
        ),
        claim(
            "merged iteration on the GPU",
            "2.8 GDoF/s",
            at_largest(&table, &format!("{GPU}, {MERGED}")).map(gdof),
        ),
        claim("merged over plain on the GPU", "1.18×", gain(&table, GPU).map(times)),
        claim("merged over plain on the CPU", "plot only", gain(&table, CPU).map(times)),
    ];
    let notes = vec![
        "BP5, p = 5, bent cells with stored metrics, as theirs on the GPU. An iteration on the GPU is the difference of a long and a \
         short solve. Theirs: a V100 with 16 GB, three kernels beside each other."
            .into(),
    ];
    let what = ("figure-14", "Bake-off problem 5 against size", Quantity::MdofPerS, UNKNOWNS);
    let absent = no_gpu(session).into_iter().collect();
    Ok(Figure { claims, notes, absent, ..figure(session, what, table) })
}
