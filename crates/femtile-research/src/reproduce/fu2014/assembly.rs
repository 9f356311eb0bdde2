//! Table 2: assembly.

use femtile::device::{Cpu, Cuda};
use femtile::fem::{Assembly, Coefficient, DeviceState, Form};
use femtile::linalg::sparse::Csr;
use femtile::mesh::Mesh;
use femtile::mesh::check::BoundaryFacets;

use super::meshes::no_samples;
use super::{Claim, Figure, Quantity, Session, Table, all, figure, names, times};
use crate::patch_assembly::PatchAssembly;
use femtile_bench::BenchError;
use femtile_bench::Samples;
use femtile_bench::problems::kuhn_box;

/// Milliseconds of a mesh.
#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    /// Pattern and values by one thread.
    whole: Option<f64>,
    /// Values on a known pattern by one thread.
    values: Option<f64>,
    /// The same on the GPU.
    gpu: Option<f64>,
    /// The upper half on the GPU, patch by patch with atomic operations, as in the paper.
    patches: Option<f64>,
}

/// Fillings in a row on the GPU, of which the mean counts.
const IN_A_ROW: usize = 10;

fn by_cpu(cpu: &Cpu, mesh: &Mesh, repeats: usize) -> Result<[f64; 2], BenchError> {
    let (one, boundary) = (Coefficient::Constant(1.0), BoundaryFacets::default());
    let form = Form { mesh, boundary: &boundary, sigma: &one, lambda: &one, source: &one, conditions: &[] };
    let mut assembly = Assembly::<f64, Cpu, Csr<f64, Cpu>>::in_format(cpu, mesh, ())?;
    let mut system = assembly.system(&form)?;
    let problem = assembly.prepare(&form)?;
    let (mut whole, mut values) = (Samples::default(), Samples::default());
    for _ in 0..repeats {
        whole.time(|| kuhn_box::system::<f64, _>(cpu, mesh))?;
        values.time(|| assembly.fill(&mut system, &problem, DeviceState::default()))?;
    }
    Ok([1e3 * whole.min(), 1e3 * values.min()])
}

fn by_gpu(device: &Cuda, mesh: &Mesh, repeats: usize) -> Result<[f64; 2], BenchError> {
    let (one, boundary) = (Coefficient::Constant(1.0), BoundaryFacets::default());
    let form = Form { mesh, boundary: &boundary, sigma: &one, lambda: &one, source: &one, conditions: &[] };
    let mut assembly = Assembly::<f64, Cuda, Csr<f64, Cuda>>::in_format(device, mesh, ())?;
    let mut system = assembly.system(&form)?;
    let problem = assembly.prepare(&form)?;
    let mut patches = PatchAssembly::<f64>::new(device, mesh)?;
    let patch_problem = patches.prepare(&form)?;
    let (mut values, mut by_patches) = (Samples::default(), Samples::default());
    for run in 0..=repeats {
        let several =
            || (0..IN_A_ROW).try_for_each(|_| assembly.queue(&mut system, &problem, DeviceState::default()));
        let seconds = device.time(several)?;
        let several = || (0..IN_A_ROW).try_for_each(|_| patches.queue(&patch_problem));
        let seconds_patches = device.time(several)?;
        // The first run loads the kernels.
        if run > 0 {
            values.push(seconds / IN_A_ROW as f64);
            by_patches.push(seconds_patches / IN_A_ROW as f64);
        }
    }
    Ok([1e3 * values.min(), 1e3 * by_patches.min()])
}

pub(super) fn table_2(session: &Session) -> Result<Figure, BenchError> {
    let (cases, one_thread) = (all(session), Cpu::new(1)?);
    let repeats = session.settings.repeats.max(1);
    let mut ours = Vec::new();
    for case in cases {
        let mut filled = Filled::default();
        if let Some(mesh) = case.mesh()? {
            let [whole, values] = by_cpu(&one_thread, mesh, repeats)?;
            (filled.whole, filled.values) = (Some(whole), Some(values));
            if let Some(gpu) = &session.gpu {
                let [values, patches] = by_gpu(&gpu.device, mesh, repeats)?;
                (filled.gpu, filled.patches) = (Some(values), Some(patches));
            }
        }
        ours.push(filled);
    }
    let column = |of: fn(&Filled) -> Option<f64>| ours.iter().map(|filled| of(filled).into()).collect();
    let theirs = |k: usize| {
        cases.iter().map(|case| case.theirs.map(|theirs| 1e3 * theirs.assembly[k]).into()).collect()
    };
    let table = Table::new(names(cases))
        .drawn("GPU", column(|filled| filled.gpu))
        .drawn("GPU, patches", column(|filled| filled.patches))
        .drawn("GPU, theirs", theirs(0))
        .drawn("one thread", column(|filled| filled.values))
        .drawn("one thread, with pattern", column(|filled| filled.whole))
        .drawn("one thread, theirs", theirs(1));
    let first = ours.first().copied().unwrap_or_default();
    let claim = |what: &str, gpu: Option<f64>| Claim {
        what: what.into(),
        place: "Table 2",
        theirs: "36×".into(),
        ours: gpu.zip(first.values).map(|(gpu, cpu)| times(cpu / gpu)),
    };
    let claims = vec![
        claim("Regular, GPU against one thread", first.gpu),
        claim("the same by patches with atomic operations, the upper half", first.patches),
    ];
    let notes = vec!["Values on a known pattern, unless a column says otherwise.".into()];
    let what = ("table-2", "Milliseconds of assembly", Quantity::Milliseconds, "mesh");
    let figure = figure(session, what, table);
    let absent = figure.absent.iter().cloned().chain(no_samples()).collect();
    Ok(Figure { claims, notes, absent, ..figure })
}
