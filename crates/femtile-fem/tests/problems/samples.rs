//! Every sample mesh against values of an independent assembly.

use crate::common;
use crate::recovery::largest_excess;

use std::path::{Path, PathBuf};

use common::{Problem, constant, entries};
use femtile_device::Cpu;
use femtile_fem::functionals::{energy, l2_norm, max};
use femtile_fem::{AssembledSystem, Condition};
use femtile_mesh::Mesh;
use femtile_mesh::check::{CheckConfig, check};
use serde_json::Value;

/// Returns the folder of samples, if it exists.
fn samples() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from);
    folder.join("reference/p1_invariants.json").is_file().then_some(folder)
}

fn close(name: &str, what: &str, found: f64, expected: &Value, tolerance: f64) {
    let expected = expected.as_f64().unwrap_or_else(|| panic!("{name}: no {what} in the reference"));
    let error = (found - expected).abs() / expected.abs();
    assert!(error <= tolerance, "{name}: {what} is {found}, not {expected}: off by {error:e}");
}

/// Compares K and M of a mesh with the reference.
fn compare_matrices(name: &str, mesh: &Mesh, reference: &Value, device: &Cpu) {
    let mut problem = Problem::new(mesh.clone());
    problem.source = constant(0.0);
    let k: AssembledSystem<f64, Cpu> = problem.assemble(device);
    // A conductivity that vanishes beside any mass leaves only M, without the cancellation of (K + M) − K.
    (problem.sigma, problem.lambda) = (constant(1e-100), constant(1.0));
    let m: AssembledSystem<f64, Cpu> = problem.assemble(device);
    let (k, m) = (entries(&k.matrix), entries(&m.matrix));

    assert_eq!(k.len() as u64, reference["nnz_structural"].as_u64().unwrap(), "{name}: non-zeros");
    let lengths: Vec<usize> = k.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect();
    let row_len = &reference["row_len"];
    assert_eq!(*lengths.iter().min().unwrap() as u64, row_len[0].as_u64().unwrap(), "{name}: shortest row");
    assert_eq!(*lengths.iter().max().unwrap() as u64, row_len[2].as_u64().unwrap(), "{name}: longest row");
    close(name, "mean length of a row", k.len() as f64 / lengths.len() as f64, &row_len[1], 1e-10);

    let trace = |a: &[(usize, usize, f64)]| a.iter().filter(|e| e.0 == e.1).map(|e| e.2).sum::<f64>();
    close(name, "trace of K", trace(&k), &reference["trace_K"], 1e-10);
    let frobenius = k.iter().map(|e| e.2 * e.2).sum::<f64>().sqrt();
    close(name, "Frobenius norm of K", frobenius, &reference["fro_K"], 1e-10);
    close(name, "sum of M", m.iter().map(|e| e.2).sum(), &reference["sum_M"], 1e-10);
    close(name, "trace of M", trace(&m), &reference["trace_M"], 1e-10);
    for axis in 0..3 {
        let x = |node: usize| mesh.points[node][axis];
        let form = k.iter().map(|&(i, j, a)| x(i) * a * x(j)).sum();
        close(name, "xᵀKx of a coordinate", form, &reference["xKx"][axis], 1e-10);
    }
    let mut sums = vec![0.0; lengths.len()];
    k.iter().for_each(|&(i, _, a)| sums[i] += a);
    let largest = sums.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    assert!(largest <= 1e-12 * frobenius, "{name}: a row of K sums to {largest:e}");
}

/// Compares the solution of −Δu = 1 with u = 0 on the whole boundary with the reference.
fn compare_solution(name: &str, mesh: &Mesh, reference: &Value, device: &Cpu) {
    let mut problem = Problem::new(mesh.clone());
    problem.on(|_| true, Condition::Dirichlet(constant(0.0)));
    let u = problem.solve(device);
    close(name, "u_max", max(&u), &reference["u_max"], 1e-8);
    close(name, "uᵀKu", energy(&problem.space(), &problem.form(), &u).unwrap(), &reference["uKu"], 1e-8);
    close(name, "uᵀMu", l2_norm(&problem.space(), &u).unwrap().powi(2), &reference["uMu"], 1e-8);
    let excess = largest_excess(&problem.form(), &u);
    assert!(
        excess <= 1.5,
        "{name}: a recovered flux is {excess} times as large as those of the cells around"
    );
}

#[test]
fn matrices_and_solutions_on_sample_meshes_are_those_of_an_independent_assembly() {
    let Some(folder) = samples() else {
        eprintln!(
            "SKIPPED: matrices_and_solutions_on_sample_meshes_are_those_of_an_independent_assembly: \
             no samples (set FEMTILE_SAMPLES)"
        );
        return;
    };
    let text = std::fs::read_to_string(folder.join("reference/p1_invariants.json")).unwrap();
    let references: Value = serde_json::from_str(&text).unwrap();
    let device = Cpu::new(2).unwrap();
    let mut n_solved = 0;
    for (name, reference) in references.as_object().unwrap() {
        let mut mesh = femtile_mesh::io::read(&folder.join(name)).unwrap();
        let is_conforming = check(&mut mesh, &CheckConfig::default()).is_ok();
        compare_matrices(name, &mesh, reference, &device);
        if is_conforming {
            compare_solution(name, &mesh, &reference["poisson_f1_dirichlet0"], &device);
            n_solved += 1;
        }
    }
    assert_eq!(n_solved, 14, "all but the mesh with clashing diagonals are solved on");
}
