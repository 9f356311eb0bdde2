//! Boxes of which each rank makes its part, solved on a GPU that ranks share.

use femtile::comm::{Comm, threads};
use femtile::device::{Cpu, Cuda};
use femtile::mesh::generate::{BoxConfig, BoxPartition, BoxSplit, box_mesh, part_of_box};
use femtile::solve::{Method, Ranks, Silent, SolveError, Stages};
use femtile::{
    AmgOptions, DeviceChoice, GmgOptions, PmgOptions, Poisson, PreconditionerConfig, SolverConfig,
};

use super::Scope;

/// States the problem that is solved.
fn stated(begun: Poisson<'_>, degree: usize) -> Poisson<'_> {
    let of = begun.degree(degree).lambda(0.5).source("sin(3*x) + y").dirichlet("xmin", "y*y").unwrap();
    of.dirichlet("xmax", 1.0).unwrap()
}

/// Functionals of all ranks are those of one on a processor.
pub fn parts_of_boxes_solve_as_one(device: &Cuda, scope: &Scope) {
    let cells = if scope.has_every_kind { [16, 16, 32] } else { [4, 4, 8] };
    for (split, degree, method, preconditioner) in [
        (BoxSplit::Kuhn, 1, Method::Cg, PreconditionerConfig::Amg(AmgOptions::default())),
        (BoxSplit::Hexahedron, 2, Method::Cg, PreconditionerConfig::Pmg(PmgOptions::default())),
        (BoxSplit::Hexahedron, 2, Method::Cg, PreconditionerConfig::Gmg(GmgOptions::default())),
        (BoxSplit::Hexahedron, 3, Method::MergedCg, PreconditionerConfig::Jacobi),
    ] {
        let name = format!("{split:?}, {}", preconditioner.name());
        let of = BoxConfig { cells, split, ..BoxConfig::default() };
        let config = |ranks: Ranks, device| SolverConfig {
            ranks,
            device,
            method,
            preconditioner: preconditioner.clone(),
            tolerance: 1e-12,
            threads: 1,
            ..SolverConfig::default()
        };
        let whole = box_mesh(&of).unwrap();
        let alone = config(Ranks::One, DeviceChoice::Cpu);
        let alone = stated(Poisson::new(&whole), degree).solve(&alone).unwrap();
        let u = alone.component(0);
        let expected = [u.integral().unwrap(), u.energy().unwrap(), u.max(), alone.flux(0, "xmin").unwrap()];
        let parts = BoxPartition::layers(cells, 2, 2).unwrap();
        let work = |comm: Comm| -> Result<[f64; 4], SolveError> {
            let mesh = part_of_box(&of, None, (&parts, comm.rank()), None)?;
            let config = config(Ranks::Of(comm.clone()), DeviceChoice::Cuda(0));
            let (cpu, mut silent) = (Cpu::new(1).unwrap(), Silent);
            let problem = stated(Poisson::distributed(&mesh, &comm)?, degree).discretize()?;
            let opened = Some(device.clone().into());
            let found = problem.solve(&cpu, &config, opened, &mut Stages::new(&mut silent))?;
            assert!(found.has_converged() && found.kernel_launches() > 0, "{name}");
            let u = found.component(0);
            Ok([u.integral()?, u.energy()?, u.max(), found.flux(0, "xmin")?])
        };
        let found = threads::run(2, work, |comm| work(comm).map(drop)).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-9, "{name}: {found} and {expected}");
        }
    }
}
