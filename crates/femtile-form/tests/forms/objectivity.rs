//! Rotations of energies: solids of finite strain are told from those of small strain, and from what is no solid.

use femtile_form::{Equation, Input, Objectivity};

const OBJECTIVE: Option<Objectivity> = Some(Objectivity { changed_by: None, is_stressed_at_rest: false });

/// The effect of rotations on an energy of `u` with as many components as there are axes.
fn found(dimension: usize, energy: &str) -> Option<Objectivity> {
    let text = format!(
        "unknown = {{ u = {{ components = \"dimension\" }} }}\n\
         define = \"F = identity + grad(u); J = det(F); C = F'*F; E = (C - identity)/2; eps = sym(grad(u))\"\n\
         cells = {{ energy = \"{energy}\" }}\n"
    );
    let form = Equation::from_toml("solid", &text).unwrap().form(dimension).build().unwrap();
    form.integrals()[0].integrand.objectivity(&|input| match input {
        Input::Coordinate(axis) => 0.3 + axis as f64,
        _ => 0.0,
    })
}

#[test]
fn energies_of_the_right_strain_are_objective() {
    for energy in [
        "2*(tr(C) - n) - 4*log(J) + 5*log(J)^2",
        "2*E:E + tr(E)^2",
        "1e6 + 2*E:E + 3*tr(E)^2",
        "2*E:E + 1e5*(J - 1)^2",
        "2*(tr(C)/J^(2/3) - n) + 50*(J^2 - 1 - 2*log(J))",
        // Fibres along x, whose direction rotations of the deformed body do not change, and a material that differs from place to place.
        "2*E:E + 10*exp(E[0, 0]^2) + x*E[0, 1]^2",
        // Values for small strains alone.
        "-log(1 - 20*E:E)",
    ] {
        for d in [2, 3] {
            // In the plane the third power of J keeps no rest free of stress.
            if d == 2 && energy.contains("2/3") {
                continue;
            }
            assert_eq!(found(d, &energy.replace("- n", &format!("- {d}"))), OBJECTIVE, "{energy} in {d}");
        }
    }
}

#[test]
fn small_strains_in_a_nonlinear_energy_are_told() {
    for energy in [
        "(eps:eps)^2",
        "eps:eps + tr(eps)^2 + 10*(eps:eps)^2",
        "2*exp(eps:eps)",
        "eps:eps + if(tr(eps) > 0, tr(eps)^2, 0)",
    ] {
        for d in [2, 3] {
            let found = found(d, energy).unwrap_or_else(|| panic!("{energy} is no solid"));
            assert!(
                found.changed_by.is_some_and(|angle| (28.0..173.0).contains(&angle)),
                "{energy}: {found:?}"
            );
            assert!(!found.is_stressed_at_rest, "{energy}");
        }
    }
}

#[test]
fn what_is_linear_or_no_solid_is_left_alone() {
    for energy in [
        // Linear elasticity, also with stress at rest.
        "2*eps:eps + tr(eps)^2",
        "2e9*eps:eps + 1e14*tr(eps)^2 - 7*tr(eps)",
        // Rotations are felt at first order: diffusion, reactions, directors of liquid crystals, minimal graphs.
        "grad(u):grad(u)*(1 + grad(u):grad(u))",
        "sqrt(1 + grad(u):grad(u))",
        "grad(u):grad(u)/2 + (1 - u.u)^2",
        "(grad(u):grad(u))^2",
        "eps:eps + 0.2*(grad(u) - grad(u)'):(grad(u) - grad(u)') + (eps:eps)^2",
        // The unknown is the place of a point, not its displacement.
        "(grad(u)'*grad(u) - identity):(grad(u)'*grad(u) - identity)",
        // No value at rest.
        "log(det(grad(u)))^2",
        "u.u + u[0]^4",
    ] {
        for d in [2, 3] {
            assert_eq!(found(d, energy), None, "{energy} in {d}");
        }
    }
    // Other numbers of components than axes are no displacements.
    let text = "unknown = { u = {} }\ncells = { energy = \"sqrt(1 + grad(u).grad(u))\" }\n";
    let form = Equation::from_toml("film", text).unwrap().form(2).build().unwrap();
    assert_eq!(form.integrals()[0].integrand.objectivity(&|_| 0.0), None);
}

#[test]
fn a_missing_term_leaves_stresses_at_rest() {
    for (energy, is_stressed) in [
        ("2*(tr(C) - 3) - 4*log(J) + log(J)^2", false),
        ("2*(tr(C) - 3) + log(J)^2", true),
        ("2*(tr(C) - 3) - 4.1*log(J) + log(J)^2", true),
    ] {
        let found = found(3, energy).unwrap();
        assert_eq!((found.is_stressed_at_rest, found.changed_by), (is_stressed, None), "{energy}");
    }
}
