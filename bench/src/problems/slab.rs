//! The slab of the N-version benchmark of monodomain solvers, `[niederer2011]`: 20 × 7 × 3 mm of ventricular tissue with fibres
//! along x, stimulated in a corner.

use femtile::Mesh;
use femtile::Value;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::solve::Entry;
use femtile_cardiac::ionic::Model;
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, Stimulus};

use crate::BenchError;

/// Lengths of the sides, mm.
pub const SIDES: [f64; 3] = [20.0, 7.0, 3.0];
/// Intra- and extracellular conductivities along and across the fibres, mS/mm (Table 3).
const INTRACELLULAR: [f64; 2] = [0.17, 0.019];
const EXTRACELLULAR: [f64; 2] = [0.62, 0.24];
/// Surface of membranes in a volume, 1/mm, and their capacitance, µF/mm² (Table 3).
const MEMBRANE: [f64; 2] = [140.0, 0.01];

/// The slab in Kuhn tetrahedra with edges of a length along the axes, about.
///
/// # Errors
/// [`BenchError::Mesh`] for a length that is not positive or too small.
pub fn mesh(h_mm: f64) -> Result<Mesh, BenchError> {
    let cells = SIDES.map(|side| (side / h_mm).round().max(1.0) as usize);
    Ok(box_mesh(&BoxConfig { lower: [0.0; 3], upper: SIDES, cells, split: BoxSplit::Kuhn })?)
}

/// The problem with the model of ten Tusscher and Panfilov for epicardial cells; the caller sets times and steps.
///
/// # Errors
/// [`BenchError::Cardiac`] when the model cannot be read.
pub fn problem(mesh: &Mesh) -> Result<Monodomain<'_>, BenchError> {
    let harmonic = |axis: usize| {
        let (intra, extra) = (INTRACELLULAR[axis], EXTRACELLULAR[axis]);
        intra * extra / (intra + extra)
    };
    let [along, across] = [0, 1].map(harmonic);
    let entry = |i: usize, j: usize| match (i == j, i) {
        (false, _) => Entry::Number(0.0),
        (true, 0) => Entry::Number(along),
        (true, _) => Entry::Number(across),
    };
    let rows = (0..3).map(|i| (0..3).map(|j| entry(i, j)).collect()).collect();
    let stimulus = Stimulus {
        place: Place::Box { lower: [0.0; 3], upper: [1.5; 3] },
        strength: 50.0,
        pulses: Pulses::single(0.0, 2.0),
    };
    let [surface_to_volume, capacitance] = MEMBRANE;
    Ok(Monodomain::new(mesh, Model::named("ten-tusscher-panfilov-2006:epi")?)
        .conductivity(Value::Tensor(rows))
        .membrane(surface_to_volume, capacitance)
        .stimulus(stimulus))
}
