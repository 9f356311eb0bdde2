//! Fluxes through the boundary of every sample mesh.

use std::path::Path;

use femtile::mesh::CellKind;
use femtile::mesh::check::{CheckConfig, boundary_facets, check};
use femtile::mesh::io;
use femtile::{DeviceChoice, Mesh, Poisson, PreconditionerConfig, SolveError, SolverConfig};
use femtile_conformance::suite::samples;

/// The mesh of a file, if it can be solved on.
fn sound(file: &Path) -> Option<Mesh> {
    let mut mesh = io::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    check(&mut mesh, &CheckConfig::default()).is_ok().then_some(mesh)
}

/// Returns the difference between the fluxes through all sides and reaction minus source, relative to the sum of all
/// of these, fluxes facet by facet.
///
/// u is given on a third of the boundary and exchanged on another; source, reaction and exchange are of one size.
fn imbalance(mesh: &Mesh, degree: usize) -> Result<f64, SolveError> {
    let along = || mesh.points.iter().map(|point| point[0]);
    let left = along().fold(f64::INFINITY, f64::min);
    let width = along().fold(f64::NEG_INFINITY, f64::max) - left;
    // Curved cells reach beyond their corners.
    let slope = move |[x, ..]: [f64; 3]| ((x - left) / width).clamp(0.0, 1.0);
    let n = boundary_facets(mesh).len() as u32;
    let facets = |third: u32| (third * n / 3..(third + 1) * n / 3).collect::<Vec<u32>>();
    let problem = Poisson::new(mesh)
        .degree(degree)
        .sigma(move |x| 1.0 + slope(x))
        .lambda(1.0 / (width * width))
        .source(move |x| (1.0 + slope(x)) / (width * width))
        .robin(facets(2), 1.0 / width, 1.0)?
        .dirichlet(facets(0), slope)?;
    let config = SolverConfig {
        device: DeviceChoice::Cpu,
        threads: 2,
        preconditioner: PreconditionerConfig::Jacobi,
        tolerance: 1e-14,
        max_iterations: 20_000,
        ..SolverConfig::default()
    };
    let solution = problem.solve(&config)?;
    let u = solution.component(0);
    let (source, reaction) = (u.source_integral()?, u.reaction_integral()?);
    let found = solution.flux(0, "all")?;
    let gross: f64 = u.facet_fluxes()?.iter().map(|flux| flux.abs()).sum();
    Ok((found - reaction + source).abs() / (gross + source.abs() + reaction.abs()))
}

#[test]
fn fluxes_through_all_sides_of_every_sample_mesh_balance_source_and_reaction() {
    let files =
        samples::all_meshes("fluxes_through_all_sides_of_every_sample_mesh_balance_source_and_reaction");
    let mut n_solved = 0;
    for file in &files {
        let Some(mesh) = sound(file) else { continue };
        let is_simplex = matches!(mesh.kind, CellKind::Triangle | CellKind::Tetrahedron);
        for degree in if is_simplex { 1..=1 } else { 1..=3 } {
            let found =
                imbalance(&mesh, degree).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(found < 1e-12, "{}, degree {degree}: {found:e}", file.display());
        }
        n_solved += 1;
    }
    assert!(files.is_empty() || n_solved > 20, "{n_solved} of {} meshes were solved on", files.len());
}
