//! Conduction in a bar whose conductivity grows with temperature: −∇·((1 + u)∇u) = 0, u = 0 at one end and 1 at the
//! other, so that u + u²/2 = 3x/2 along the bar.
//!
//! Each step solves a linear problem with the conductivity of the last one. The pattern of the matrix is found once;
//! each step fills new values into it.
//!
//!     cargo run --release --example nonlinear_conduction

use std::error::Error;

use femtile::device::{Buffer, Cpu};
use femtile::fem::{AssembledSystem, Assembly, BoundaryCondition, Coefficient, Condition, Form};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Jacobi;
use femtile::mesh::check::{BoundaryFacets, boundary_facets};
use femtile::mesh::generate::{BoxConfig, box_mesh};
use femtile::mesh::{Field, Mesh};
use femtile::space::Space;

/// The facets of the boundary in the plane x = `at`.
fn facets_at(mesh: &Mesh, boundary: &BoundaryFacets, at: f64) -> Vec<u32> {
    let lies_there = |&node: &u32| (mesh.points[node as usize][0] - at).abs() < 1e-12;
    let facet = |&facet: &u32| boundary.facet(facet as usize).iter().all(lies_there);
    (0..boundary.len() as u32).filter(facet).collect()
}

/// 1 + u in each cell, u being the mean of its corners.
fn conductivity(mesh: &Mesh, u: &[f64]) -> Coefficient {
    let cells = mesh.cells.chunks_exact(mesh.kind.n_nodes());
    let mean = |cell: &[u32]| cell.iter().map(|&node| u[node as usize]).sum::<f64>() / cell.len() as f64;
    Coefficient::CellField(Field { n_components: 1, values: cells.map(|cell| 1.0 + mean(cell)).collect() })
}

fn solve(device: &Cpu, mesh: &Mesh, system: &AssembledSystem<f64, Cpu>) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut w = Buffer::zeros(device, mesh.n_nodes())?;
    let jacobi = Jacobi::new(&system.matrix)?;
    let cg = ConjugateGradient::new(KrylovConfig { tolerance: 1e-12, ..KrylovConfig::default() });
    let outcome = cg.solve(&mut w, &system.matrix, &jacobi, &system.rhs, &SingleRank, &mut ())?;
    if outcome.stop != Stop::Converged {
        return Err(format!("the linear solve ended as {:?}", outcome.stop).into());
    }
    Ok(system.solution(&Space::new(mesh, 1)?, &w)?)
}

/// Steps until the temperature stays, with cells of size 1/n; gives their number and the largest error at a node.
fn run(n: usize) -> Result<(usize, f64), Box<dyn Error>> {
    let device = Cpu::new(0)?;
    let mesh =
        box_mesh(&BoxConfig { upper: [1.0, 0.25, 0.25], cells: [n, n / 4, n / 4], ..BoxConfig::default() })?;
    let boundary = boundary_facets(&mesh);
    let end = |x: f64| BoundaryCondition {
        facets: facets_at(&mesh, &boundary, x),
        condition: Condition::Dirichlet(x.into()),
    };
    let (conditions, zero) = ([end(0.0), end(1.0)], Coefficient::Constant(0.0));

    let mut assembly = Assembly::new(&device, &mesh)?;
    let mut system: Option<AssembledSystem<f64, Cpu>> = None;
    let mut u = vec![0.0; mesh.n_nodes()];
    for step in 1.. {
        let sigma = conductivity(&mesh, &u);
        let form = Form {
            mesh: &mesh,
            boundary: &boundary,
            sigma: &sigma,
            lambda: &zero,
            source: &zero,
            conditions: &conditions,
        };
        match &mut system {
            None => system = Some(assembly.system(&form)?),
            Some(system) => assembly.refill(system, &form)?,
        }
        let Some(system) = &system else { unreachable!("it has just been made") };
        let next = solve(&device, &mesh, system)?;
        let change = u.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        u = next;
        if change < 1e-10 || step == 100 {
            let exact = |point: &[f64; 3]| (1.0 + 3.0 * point[0]).sqrt() - 1.0;
            let errors = u.iter().zip(&mesh.points).map(|(u, point)| (u - exact(point)).abs());
            return Ok((step, errors.fold(0.0, f64::max)));
        }
    }
    unreachable!("a hundred steps are the most")
}

fn main() -> Result<(), Box<dyn Error>> {
    for n in [8, 16, 32] {
        let (steps, error) = run(n)?;
        println!("cells of 1/{n}: {steps} steps, largest error {error:.2e}");
    }
    Ok(())
}

#[test]
fn errors_fall_as_the_square_of_the_size_of_cells() -> Result<(), Box<dyn Error>> {
    let [(_, coarse), (steps, fine)] = [run(16)?, run(32)?];
    assert!(steps < 30, "{steps}");
    assert!((3.4..4.6).contains(&(coarse / fine)), "{coarse:e}, {fine:e}");
    Ok(())
}
