//! Devices, precisions and kinds of bands give the same.

use femtile_device::{Cpu, Reference};
use femtile_time::adi::{AdiConfig, Coefficients, Scheme};

use super::manufactured::{Kind, Manufactured, advance, solve};

/// Problems that between them use every path of the kernels.
fn problems() -> Vec<(&'static str, Manufactured)> {
    let exact = "cos(t)*sin(2*x + 0.3)*cos(1.5*y - 0.2)*(1 + z)";
    let heat = Manufactured::heat(exact, 3);
    let varying = Manufactured::heat(exact, 3)
        .diffusion(0, 0, "1 + x*y")
        .diffusion(1, 1, "2 + z")
        .diffusion(0, 1, "0.3")
        .diffusion(0, 2, "0.2*y")
        .diffusion(1, 2, "0.1*x + 0.2")
        .convection(["y", "0.5", "x*z"])
        .reaction("-x");
    let ring = Manufactured::heat("sin(2*pi*x)*y*exp(t)", 2)
        .sides(0, Kind::Periodic, Kind::Periodic)
        .sides(1, Kind::Neumann, Kind::Neumann)
        .diffusion(0, 1, "0.2*cos(2*pi*x)");
    let other_ring = Manufactured::heat("sin(2*pi*y)*x", 2)
        .sides(1, Kind::Periodic, Kind::Periodic)
        .diffusion(0, 0, "1 + 0.5*sin(2*pi*y)")
        .diffusion(0, 1, "0.2");
    let plain = Manufactured::heat("0", 2).convection(["1", "0", "0"]).reaction("-1");
    let fluxes =
        varying.clone().sides(0, Kind::Neumann, Kind::Dirichlet).sides(2, Kind::Dirichlet, Kind::Neumann);
    vec![
        ("heat", heat),
        ("varying", varying),
        ("ring", ring),
        ("other ring", other_ring),
        ("plain", plain),
        ("fluxes", fluxes),
    ]
}

fn near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance, "{what}, node {i}: {found} {expected}");
    }
}

#[test]
fn every_device_and_kind_of_bands_agrees_with_the_reference() {
    for (name, manufactured) in problems() {
        for nodes in [[7, 5, 6], [17, 3, 4], [3, 9, 3]] {
            let problem = manufactured.problem(&nodes);
            for scheme in [Scheme::Douglas, Scheme::CraigSneyd] {
                let config =
                    AdiConfig { scheme, end: 0.3, steps: 4, rannacher_steps: 1, ..AdiConfig::default() };
                let initial = &manufactured.exact;
                let expected = advance::<f64, _>(&Reference, &problem, &config, initial);
                for coefficients in [Coefficients::OnTheFly, Coefficients::Arrays] {
                    let config = AdiConfig { coefficients, ..config.clone() };
                    let what = format!("{name}, {nodes:?}, {scheme}, {coefficients:?}");
                    near(&advance::<f64, _>(&Reference, &problem, &config, initial), &expected, 1e-12, &what);
                    for threads in 1..=3 {
                        let cpu = Cpu::new(threads).unwrap();
                        near(&advance::<f64, _>(&cpu, &problem, &config, initial), &expected, 1e-12, &what);
                    }
                    let single = advance::<f32, _>(&Cpu::new(1).unwrap(), &problem, &config, initial);
                    near(&single, &expected, 2e-4, &format!("{what}, f32"));
                }
            }
        }
    }
}

#[test]
fn many_nodes_agree_on_any_number_of_threads_to_the_bit() {
    let problem = Manufactured::heat("sin(3*x)*y*exp(-t)", 2).diffusion(0, 1, "0.3").problem(&[259, 131]);
    let config = AdiConfig { scheme: Scheme::CraigSneyd, steps: 3, ..AdiConfig::default() };
    let initial = femtile_expression::Expression::parse("sin(3*x)*y").unwrap();
    let one = solve(&problem, &config, &initial);
    for threads in [2, 3] {
        let other = advance::<f64, _>(&Cpu::new(threads).unwrap(), &problem, &config, &initial);
        assert!(one.iter().zip(&other).all(|(a, b)| a.to_bits() == b.to_bits()), "{threads} threads");
    }
}

/// $(I - τA_1)(I - τA_2) + Δt(A_1 + A_2) = (I + τA_1)(I + τA_2)$.
#[test]
fn peaceman_rachford_and_douglas_are_one_map_in_two_dimensions() {
    for (name, manufactured) in problems() {
        if manufactured.sides.len() != 2 || name.contains("ring") {
            continue;
        }
        let problem = manufactured.problem(&[12, 9]);
        let with = |scheme| {
            let config = AdiConfig { scheme, steps: 7, ..AdiConfig::default() };
            solve(&problem, &config, &manufactured.exact)
        };
        near(&with(Scheme::PeacemanRachford), &with(Scheme::Douglas), 1e-11, name);
    }
    let moving = Manufactured::heat("exp(-t)*x^2*y^2 + t*x", 2).convection(["y", "1", "0"]);
    let problem = moving.sides(1, Kind::Neumann, Kind::Dirichlet).problem(&[12, 9]);
    let initial = femtile_expression::Expression::parse("x^2*y^2").unwrap();
    let with = |scheme| solve(&problem, &AdiConfig { scheme, steps: 7, ..AdiConfig::default() }, &initial);
    near(&with(Scheme::PeacemanRachford), &with(Scheme::Douglas), 1e-11, "moving sides");
}
