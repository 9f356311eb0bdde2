//! Kernels with `unsafe` on the scalar path, for Miri: `cargo +nightly miri test -p femtile-cardiac --test scalar_paths`.
#![forbid(unsafe_code)]

use femtile::device::cpu::SimdLevel;
use femtile::device::{Buffer, Cpu, Reference};
use femtile_cardiac::CardiacError;
use femtile_cardiac::implicit::{ImplicitKernels, LocalStates};
use femtile_cardiac::ionic::{GatePrecision, Ionic, IonicKernels, LocalScheme, Model, Points};

const MODEL: &str = "
name = 'small'
[voltage]
name = 'V'
initial = 0.5
current = 'h*V - q'
[gates.h]
initial = 0.5
steady = 'V'
time_constant = '2'
[states.q]
initial = 0
rate = 'V - q*q'
";

/// Points of a block and a part of a second one, which two threads share.
const N_NODES: usize = 304;

/// Voltages after a step at all nodes but each seventh, and the currents of an implicit step.
fn voltages<D: IonicKernels + ImplicitKernels>(device: &D) -> Result<Vec<f64>, CardiacError> {
    let model = Model::from_toml(MODEL)?;
    let list: Vec<u32> = (0..N_NODES as u32).rev().filter(|node| node % 7 != 0).collect();
    let voltages: Vec<f64> = (0..N_NODES).map(|node| 0.001 * node as f64).collect();
    let mut v = Buffer::from_vec(device, voltages)?;
    let stimulus = Buffer::from_vec(device, vec![0.25; N_NODES])?;
    let scheme = LocalScheme::RushLarsen;
    let points = Points::listed(device, N_NODES, &list)?;
    let mut cells = Ionic::with_gates(device, &model, scheme, GatePrecision::Single, points)?;
    cells.advance(&mut v, Some(&stimulus), 0.1)?;
    // Newton's method takes many evaluations of a point.
    let few = Buffer::from_host(device, &v.to_host()?[..20])?;
    let mut cells = LocalStates::new(device, &model, 20, false)?;
    let (mut current, mut tangent) = (Buffer::zeros(device, 20)?, Buffer::zeros(device, 20)?);
    assert_eq!(cells.solve(&few, [&mut current, &mut tangent], 0.1)?, 0);
    Ok([v.to_host()?, current.to_host()?, tangent.to_host()?].concat())
}

#[test]
fn membranes_are_those_of_the_reference() -> Result<(), CardiacError> {
    let cpu = Cpu::with_simd(2, SimdLevel::Scalar)?;
    assert_eq!(voltages(&cpu)?, voltages(&Reference)?);
    Ok(())
}
