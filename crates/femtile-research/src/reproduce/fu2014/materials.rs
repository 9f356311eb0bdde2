//! Table 4: iterations with different materials inside and outside blobs.

use femtile::device::Buffer;
use femtile::mesh::Mesh;

use super::peers::{self, methods};
use super::solves::{INNER, amg, patches, patches_on_mesh, solved};
use super::theirs::MATERIALS;
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure, times};
use femtile_bench::BenchError;
use femtile_bench::multigrid::{PeerSolves, Preconditioning, SolveDevice};
use femtile_bench::problems::{EllipticSystem, blobs, kuhn_box, regular};

fn system<D: SolveDevice>(device: &D, mesh: &Mesh, inside: f64) -> Result<EllipticSystem<D>, BenchError> {
    let a = blobs::system(device, mesh, inside)?.matrix;
    let b = Buffer::from_vec(device, vec![1.0; mesh.n_nodes()])?;
    Ok(EllipticSystem { name: String::new(), a, b })
}

/// Iterations of the three materials with one way of preconditioning.
fn iterations<D: SolveDevice>(
    device: &D,
    mesh: &Mesh,
    how: &Preconditioning,
) -> Result<Vec<usize>, BenchError> {
    let of = |inside: &f64| Ok(solved(&mut system(device, mesh, *inside)?, how, 1)?.iterations);
    blobs::INSIDE.iter().map(of).collect()
}

fn cells(counts: &[usize]) -> Vec<Cell> {
    counts.iter().map(|&count| Cell::Count(count)).collect()
}

/// Returns the ratio of the iterations of the last material to those of the first.
fn growth(counts: &[usize]) -> Option<f64> {
    Some(*counts.last()? as f64 / *counts.first()? as f64)
}

/// Iterations of ours by method.
type Counts = Vec<(&'static str, Vec<usize>)>;

fn ours(session: &Session, mesh: &Mesh, regular: &Mesh) -> Result<Counts, BenchError> {
    let cpu = &session.cpu;
    let mut counts = vec![
        ("multigrid", iterations(cpu, mesh, &amg())?),
        ("multigrid, Regular", iterations(cpu, regular, &amg())?),
        ("patches", iterations(cpu, mesh, &patches(INNER))?),
        ("patches, Regular", iterations(cpu, regular, &patches(INNER))?),
        ("patches on the mesh", iterations(cpu, mesh, &patches_on_mesh(INNER, mesh)?)?),
        ("patches on the mesh, Regular", iterations(cpu, regular, &patches_on_mesh(INNER, regular)?)?),
    ];
    if let Some(gpu) = &session.gpu {
        counts.push(("multigrid, GPU", iterations(&gpu.device, mesh, &amg())?));
        counts.push(("patches, GPU", iterations(&gpu.device, mesh, &patches(INNER))?));
        let on_mesh = patches_on_mesh(INNER, mesh)?;
        counts.push(("patches on the mesh, GPU", iterations(&gpu.device, mesh, &on_mesh)?));
    }
    counts.push(("Jacobi-CG", iterations(cpu, mesh, &Preconditioning::Jacobi)?));
    counts.push(("CG", iterations(cpu, mesh, &Preconditioning::None)?));
    Ok(counts)
}

fn claims(ours: &Counts) -> Vec<Claim> {
    let claim = |what: &str, theirs: &[usize], name: &str| {
        let counts = ours.iter().find(|(known, _)| *known == name).map(|(_, counts)| counts.as_slice());
        Claim {
            what: format!("{what}, 1 and 100 over one material"),
            place: "Table 4",
            theirs: growth(theirs).map(times).unwrap_or_default(),
            ours: counts.and_then(growth).map(times),
        }
    };
    vec![
        claim("multigrid", &MATERIALS[0].1, "multigrid"),
        claim("multigrid with the paper's patches", &MATERIALS[0].1, "patches"),
        claim("multigrid on the Regular mesh", &MATERIALS[0].1, "multigrid, Regular"),
        claim("CG", &MATERIALS[3].1, "CG"),
    ]
}

pub(super) fn table_4(session: &Session) -> Result<Figure, BenchError> {
    let (nodes, refinements) = if session.settings.small { (17, 1) } else { (65, 3) };
    let (mesh, regular) = (kuhn_box::mesh(nodes)?, regular::mesh(refinements)?);
    let ours = ours(session, &mesh, &regular)?;
    let mut others: Vec<Vec<PeerSolves>> = Vec::new();
    for inside in blobs::INSIDE {
        others.push(peers::solve(session, &system(&session.cpu, &mesh, inside)?, 1)?);
    }
    let mut table = Table::new(blobs::INSIDE.map(|inside| format!("1 and {inside}")).to_vec());
    for (name, counts) in &ours {
        table = table.drawn(name, cells(counts));
    }
    for name in methods(others.iter().flatten()) {
        let of = |solves: &Vec<PeerSolves>| {
            let found = solves.iter().find(|peer| peer.name() == name);
            found.map_or(Cell::Nothing, |peer| Cell::Count(peer.iterations))
        };
        table = table.drawn(&name, others.iter().map(of).collect());
    }
    for (name, counts) in MATERIALS {
        table = table.drawn(&format!("{name}, theirs"), cells(&counts));
    }
    let notes = vec![format!(
        "Nine spheres in a box of {nodes} nodes a side, a fifth of its volume, stand in for Blobs; cells do not \
         follow them."
    )];
    let what = ("table-4", "Iterations with two materials", Quantity::Iterations, "σ");
    let figure = figure(session, what, table);
    let absent = figure.absent.iter().cloned().chain(peers::absent(session)).collect();
    Ok(Figure { notes, claims: claims(&ours), absent, ..figure })
}
