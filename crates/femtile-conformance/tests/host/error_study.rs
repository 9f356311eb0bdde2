//! A solve that says that it has converged is right.

use femtile_conformance::error_study::{BOUND, Findings, Scope, study};

/// Cases of a run; `FEMTILE_STUDY_CASES` asks for another number, of other seeds from `FEMTILE_STUDY_SEED` on.
const N_CASES: u64 = 100;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_converges_is_within_the_bound_of_a_direct_solve() {
    let findings = studied(Scope::Cpu, N_CASES);
    assert!(2 * findings.n_converged > findings.n(), "most cases are solved: {findings:?}");
}

#[test]
fn what_eigenvectors_of_anisotropic_materials_hide_is_found() {
    let findings = studied(Scope::Anisotropic, 2 * N_CASES);
    assert!(2 * findings.n_converged > findings.n(), "most cases are solved: {findings:?}");
    let n_near = findings.estimates.iter().filter(|ratio| (0.5..50.0).contains(*ratio)).count();
    assert!(20 * n_near >= 19 * findings.estimates.len(), "{n_near} of {:?}", findings.estimates);
}

/// Runs cases and checks those that converge.
fn studied(scope: Scope, n: u64) -> Findings {
    let first = variable("FEMTILE_STUDY_SEED").unwrap_or(0);
    let n = variable("FEMTILE_STUDY_CASES").unwrap_or(n);
    let findings = study(first..first + n, scope, &mut |case, progress| femtile_case::run(case, progress));
    let mut estimates = findings.estimates.clone();
    estimates.sort_unstable_by(f64::total_cmp);
    let at =
        |share: f64| estimates.get((share * estimates.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    println!(
        "{n} cases: {} converged, {} did not, {} refused; largest error {:.1} tolerances; estimates over errors: {:.1e} at \
         1 %, {:.1e} at 5 %, {:.1e} at half, {:.1e} at 95 %, {:.1e} at 99 %",
        findings.n_converged,
        findings.n_others,
        findings.n_refused,
        findings.worst,
        at(0.01),
        at(0.05),
        at(0.5),
        at(0.95),
        at(0.99)
    );
    let wrong = findings.wrong.join("\n");
    assert!(findings.wrong.is_empty(), "{} beyond {BOUND} tolerances:\n{wrong}", findings.wrong.len());
    findings
}

/// Hexahedra and quadrilaterals squeezed to 10⁻⁵ and 10⁻⁶, whose only level of algebraic multigrid is singular in single
/// precision.
const FLAT: [u64; 7] = [6270, 7270, 12255, 12822, 13731, 16640, 17314];

#[test]
fn a_single_level_of_multigrid_hides_no_error_of_flat_cells() {
    let mut findings = Findings::default();
    for seed in FLAT {
        findings
            .add(study(seed..seed + 1, Scope::Cpu, &mut |case, progress| femtile_case::run(case, progress)));
    }
    assert!(findings.wrong.is_empty(), "{}", findings.wrong.join("\n"));
    // In one of them recurrences of pipelined conjugate gradients stagnate.
    assert_eq!((findings.n_converged, findings.n_others), (FLAT.len() - 1, 1), "{findings:?}");
}
