//! Tables 3, 5 and 6: set-up, solves and iterations on all meshes.

use std::sync::Arc;

use femtile::amg::{AmgConfig, Graph, PatchFormat, Smoother};
use femtile::device::Buffer;
use femtile::mesh::Mesh;

use super::meshes::{Case, no_samples};
use super::peers::{self, methods};
use super::theirs::{METHODS, Theirs};
use super::{Cell, Claim, Figure, Quantity, Session, Table, all, figure, names, once, times};
use femtile_bench::BenchError;
use femtile_bench::multigrid::{PeerSolves, Preconditioning, SolveDevice, Solves};
use femtile_bench::problems::{EllipticSystem, kuhn_box};

/// Inner iterations of the paper's smoother, section 6.2.3.
pub(super) const INNER: usize = 3;

/// Measurements on one mesh; empty for a missing mesh.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub cpu: Option<OnDevice>,
    pub gpu: Option<OnDevice>,
    pub peers: Vec<PeerSolves>,
}

impl Measured {
    fn on(&self, device: &str) -> Option<&OnDevice> {
        if device == "GPU" { self.gpu.as_ref() } else { self.cpu.as_ref() }
    }
}

/// Conjugate gradients with multigrid by our defaults, by the paper's smoother, and by that with its aggregates, which follow
/// the mesh; and without anything.
#[derive(Debug)]
pub(super) struct OnDevice {
    pub amg: Solves,
    pub patch: Solves,
    pub on_mesh: Solves,
    pub cg: Solves,
}

/// Columns of ours, and which solves they show.
type Column = (&'static str, fn(&OnDevice) -> &Solves);

/// Columns of tables 3, 5 and 6 for each device.
const COLUMNS: [Column; 3] = [
    ("", |found| &found.amg),
    ("patches, ", |found| &found.patch),
    ("patches on the mesh, ", |found| &found.on_mesh),
];

/// The system of a mesh: −Δu + u, every entry of b one.
pub(super) fn system<D: SolveDevice>(device: &D, mesh: &Mesh) -> Result<EllipticSystem<D>, BenchError> {
    let a = kuhn_box::system(device, mesh)?.matrix;
    let b = Buffer::from_vec(device, vec![1.0; mesh.n_nodes()])?;
    Ok(EllipticSystem { name: String::new(), a, b })
}

/// Solves in one way.
pub(super) fn solved<D: SolveDevice>(
    system: &mut EllipticSystem<D>,
    how: &Preconditioning,
    repeats: usize,
) -> Result<Solves, BenchError> {
    let mut solves = Solves::default();
    solves.run((&mut system.a, &system.b), how, repeats)?;
    Ok(solves)
}

/// With the defaults.
pub(super) fn amg() -> Preconditioning {
    Preconditioning::Amg(AmgConfig::default())
}

/// Returns multigrid with the smoother of the paper: blocks of patches, each solved by `inner` Jacobi iterations.
pub(super) fn patches(inner: usize) -> Preconditioning {
    let smoother = Smoother::Patch { inner, format: PatchFormat::FullRowEll };
    Preconditioning::Amg(AmgConfig { smoother, ..AmgConfig::default() })
}

/// With the smoother of the paper, and aggregates around nodes of a mesh: `graph = "mesh"`.
pub(super) fn patches_on_mesh(inner: usize, mesh: &Mesh) -> Result<Preconditioning, BenchError> {
    let graph = Graph::from_cells(mesh.n_nodes(), mesh.kind.n_nodes(), &mesh.cells);
    let graph = graph.map_err(|error| BenchError::Setting { field: "mesh", message: error.to_string() })?;
    let smoother = Smoother::Patch { inner, format: PatchFormat::FullRowEll };
    Ok(Preconditioning::AmgOnGraph(AmgConfig { smoother, ..AmgConfig::default() }, Arc::new(graph)))
}

fn on_device<D: SolveDevice>(
    system: &mut EllipticSystem<D>,
    mesh: &Mesh,
    repeats: usize,
) -> Result<OnDevice, BenchError> {
    Ok(OnDevice {
        amg: solved(system, &amg(), repeats)?,
        patch: solved(system, &patches(INNER), repeats)?,
        on_mesh: solved(system, &patches_on_mesh(INNER, mesh)?, repeats)?,
        cg: solved(system, &Preconditioning::None, 1)?,
    })
}

fn measured<'a>(session: &Session, case: &'a Case) -> Result<&'a Measured, BenchError> {
    once(&case.measured, || {
        let Some(mesh) = case.mesh()? else { return Ok(Measured::default()) };
        let repeats = session.settings.repeats.max(1);
        let mut on_cpu = system(&session.cpu, mesh)?;
        let on_gpu = session.gpu.as_ref();
        let on_gpu = on_gpu.map(|gpu| on_device(&mut system(&gpu.device, mesh)?, mesh, repeats));
        Ok(Measured {
            cpu: Some(on_device(&mut on_cpu, mesh, repeats)?),
            gpu: on_gpu.transpose()?,
            peers: peers::solve(session, &on_cpu, repeats)?,
        })
    })
}

/// All meshes, with a table under construction.
struct Filling<'a> {
    cases: &'a [Case],
    measured: Vec<&'a Measured>,
    table: Table,
}

impl<'a> Filling<'a> {
    fn new(session: &'a Session) -> Result<Self, BenchError> {
        let cases = all(session);
        let measured = cases.iter().map(|case| measured(session, case)).collect::<Result<_, _>>()?;
        Ok(Self { cases, measured, table: Table::new(names(cases)) })
    }

    fn ours(&mut self, name: &str, of: impl Fn(&Measured) -> Option<f64>) {
        let cells = self.measured.iter().map(|measured| of(measured).into()).collect();
        self.add(name, cells, true);
    }

    fn counts(&mut self, name: &str, of: impl Fn(usize) -> Option<usize>) {
        let cells = (0..self.cases.len()).map(|k| of(k).map_or(Cell::Nothing, Cell::Count)).collect();
        self.add(name, cells, false);
    }

    fn theirs(&mut self, name: &str, of: impl Fn(&Theirs) -> f64) {
        let cells = self.cases.iter().map(|case| case.theirs.map(&of).into()).collect();
        self.add(name, cells, true);
    }

    fn add(&mut self, name: &str, cells: Vec<Cell>, is_drawn: bool) {
        let table = std::mem::replace(&mut self.table, Table::new(Vec::new()));
        self.table = table.with(name, cells, is_drawn);
    }

    /// A column for each method of other libraries.
    fn peers(&mut self, of: impl Fn(&PeerSolves) -> f64) {
        for name in methods(self.measured.iter().flat_map(|measured| &measured.peers)) {
            self.ours(&name, |measured| measured.peers.iter().find(|peer| peer.name() == name).map(&of));
        }
    }

    fn finish(self, session: &Session, (item, title): (&'static str, &str), claims: Vec<Claim>) -> Figure {
        let figure = figure(session, (item, title, Quantity::Milliseconds, "mesh"), self.table);
        let absent = figure.absent.iter().cloned().chain(peers::absent(session)).chain(no_samples());
        let notes = vec![
            "Boxes stand in for meshes that are not published; samples are scaled to a longest side of 4.".into(),
            "CPU and GPU: levels smoothed by Chebyshev polynomials, our default. Patches: the paper's smoother, 3 inner \
             iterations; on the mesh: with its aggregates as well, which follow the graph of the mesh (graph = \"mesh\"). That \
             graph is given, as in the paper."
                .into(),
        ];
        Figure { absent: absent.collect(), claims, notes, ..figure }
    }
}

/// The first mesh is Regular; on the GPU if there is one.
fn of_regular(filling: &Filling<'_>, of: impl Fn(&OnDevice) -> f64) -> Option<f64> {
    let regular = filling.measured.first()?;
    regular.gpu.as_ref().or(regular.cpu.as_ref()).map(of)
}

pub(super) fn table_3(session: &Session) -> Result<Figure, BenchError> {
    let mut filling = Filling::new(session)?;
    for device in ["CPU", "GPU"] {
        for (kind, of) in COLUMNS {
            filling.ours(&format!("{kind}{device}"), |measured| {
                Some(1e3 * of(measured.on(device)?).setup.min())
            });
        }
    }
    filling.peers(|peer| 1e3 * peer.setup().min());
    for (k, name) in METHODS.into_iter().enumerate() {
        filling.theirs(&format!("{name}, theirs"), |theirs| 1e3 * theirs.setup[k]);
    }
    let over_solve = of_regular(&filling, |found| found.amg.setup.min() / found.amg.solve.min());
    let claims = vec![Claim {
        what: "Regular, set-up over solve".into(),
        place: "Tables 3 and 5",
        theirs: times(0.519 / 0.139),
        ours: over_solve.map(times),
    }];
    Ok(filling.finish(session, ("table-3", "Milliseconds of setting multigrid up"), claims))
}

pub(super) fn table_5(session: &Session) -> Result<Figure, BenchError> {
    let mut filling = Filling::new(session)?;
    let measured = filling.measured.clone();
    for device in ["CPU", "GPU"] {
        for (kind, of) in COLUMNS {
            filling.ours(&format!("{kind}{device}"), |measured| {
                Some(1e3 * of(measured.on(device)?).solve.min())
            });
            filling.counts(&format!("{kind}{device}, iterations"), |k| {
                Some(of(measured[k].on(device)?).iterations)
            });
        }
        filling.ours(&format!("CG, {device}"), |measured| Some(1e3 * measured.on(device)?.cg.solve.min()));
        filling.counts(&format!("CG, {device}, iterations"), |k| Some(measured[k].on(device)?.cg.iterations));
    }
    filling.peers(|peer| 1e3 * peer.solve().min());
    for name in methods(measured.iter().flat_map(|measured| &measured.peers)) {
        let iterations =
            |k: usize| Some(measured[k].peers.iter().find(|peer| peer.name() == name)?.iterations);
        filling.counts(&format!("{name}, iterations"), iterations);
    }
    let cases = filling.cases;
    for (k, name) in METHODS.into_iter().chain(["CG"]).enumerate() {
        filling.theirs(&format!("{name}, theirs"), |theirs| 1e3 * theirs.solves[k].0);
        filling.counts(&format!("{name}, theirs, iterations"), |case| Some(cases[case].theirs?.solves[k].1));
    }
    let ratio = of_regular(&filling, |found| found.cg.solve.min() / found.amg.solve.min());
    let claims = vec![Claim {
        what: "Regular, multigrid against CG, time of the solve".into(),
        place: "Table 5",
        theirs: times(0.680 / 0.139),
        ours: ratio.map(times),
    }];
    Ok(filling.finish(session, ("table-5", "Milliseconds of solves to 1e-8, and iterations"), claims))
}

pub(super) fn table_6(session: &Session) -> Result<Figure, BenchError> {
    let of_one = |solves: &Solves| 1e3 * solves.solve.min() / solves.iterations.max(1) as f64;
    let mut filling = Filling::new(session)?;
    for device in ["CPU", "GPU"] {
        for (kind, of) in COLUMNS {
            filling.ours(&format!("{kind}{device}"), |measured| Some(of_one(of(measured.on(device)?))));
        }
    }
    filling.peers(|peer| 1e3 * peer.solve().min() / peer.iterations.max(1) as f64);
    for (k, name) in METHODS.into_iter().enumerate() {
        filling.theirs(&format!("{name}, theirs"), |theirs| theirs.iteration_ms[k]);
    }
    let over_cg = of_regular(&filling, |found| of_one(&found.amg) / of_one(&found.cg));
    let claims = vec![Claim {
        what: "Regular, an iteration with multigrid over one of CG".into(),
        place: "Tables 5 and 6",
        theirs: times(7.31 * 329.0 / 680.0),
        ours: over_cg.map(times),
    }];
    Ok(filling.finish(session, ("table-6", "Milliseconds of an iteration"), claims))
}
