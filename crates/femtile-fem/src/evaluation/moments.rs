//! Integrals of a given function against all shape functions.

use femtile_expression::TapeScratch;
use femtile_space::Group;
use femtile_space::geometry::{AtPoints, CellMapBatch, LANES};
use rayon::prelude::*;

use super::{TensorBasis, of_groups};
use crate::FemError;
use crate::forms::{Compiled, Points};

/// Groups computed while stored contributions of earlier ones are added.
const GROUPS: usize = 64;

/// Workspace for [`LANES`] cells.
#[derive(Default)]
struct Batch {
    maps: CellMapBatch,
    points: Points,
    tape: TapeScratch,
    /// The function at the points of one cell after another.
    given: Vec<f64>,
    /// Weighted values at points, then moments: `[(p + 1)^d][LANES]`.
    function: AtPoints,
}

impl TensorBasis<'_> {
    /// Adds $\int f\varphi_i$ at a time to a vector, cell after cell, with the bits of a sum of [`TensorBasis::moments`].
    ///
    /// Cells are evaluated [`LANES`] at a time. Groups of cells add directly to degrees of freedom that no
    /// other group has before them. Other contributions are stored and added while threads work on later
    /// groups.
    pub fn add_moments(&self, out: &mut [f64], f: &Compiled<'_>, time: f64) -> Result<(), FemError> {
        let of_group = |batch: &mut Batch, (group, own): (&Group, &mut [f64])| {
            let (mut aside, mut dofs) = (Vec::new(), vec![0; self.space.dofs_per_cell()]);
            for first in group.cells.clone().step_by(LANES) {
                let positions = std::array::from_fn(|lane| (first + lane).min(group.cells.end - 1));
                batch.points.time = time;
                self.moments_of_cells(batch, &positions, f)?;
                let moments = batch.function.values.as_chunks::<LANES>().0;
                for lane in 0..LANES.min(group.cells.end - first) {
                    self.space.cell_dofs(positions[lane], &mut dofs);
                    for (&dof, moments) in dofs.iter().zip(moments) {
                        match (dof as usize).checked_sub(group.dofs.start) {
                            Some(at) => own[at] += moments[lane],
                            None => aside.push((dof, moments[lane])),
                        }
                    }
                }
            }
            Ok(aside)
        };
        let mut ready = Vec::new();
        for groups in self.space.groups().chunks(GROUPS) {
            let begin = groups[0].dofs.start;
            let (before, own) = out.split_at_mut(begin);
            let parts = groups.iter().zip(of_groups(groups, own)).collect::<Vec<_>>();
            let work = || parts.into_par_iter().map_init(Default::default, of_group).collect::<Vec<_>>();
            let (found, ()) = rayon::join(work, || add(before, ready));
            ready = found.into_iter().collect::<Result<Vec<_>, FemError>>()?;
        }
        add(out, ready);
        Ok(())
    }

    /// Computes the moments of some cells.
    fn moments_of_cells(
        &self,
        batch: &mut Batch,
        positions: &[usize; LANES],
        f: &Compiled<'_>,
    ) -> Result<(), FemError> {
        let Batch { maps, points, tape, given, function } = batch;
        self.maps.of_sound_cells(positions, maps)?;
        let n_points = self.weights.len();
        points.clear();
        for (lane, &position) in positions.iter().enumerate() {
            let along = |axis: usize| maps.points()[axis..].iter().step_by(3).map(move |x| x[lane]);
            points.extend_with(self.space.order()[position], along);
        }
        given.resize(LANES * n_points, 0.0);
        f.eval_scalar(given, points, tape)?;
        function.values.resize(LANES * n_points, 0.0);
        let to = function.values.as_chunks_mut::<LANES>().0.iter_mut();
        let volumes = self.weights.iter().zip(&maps.determinants);
        for (q, (to, (weight, determinants))) in to.zip(volumes).enumerate() {
            for lane in 0..LANES {
                to[lane] = given[lane * n_points + q] * (weight * determinants[lane].abs());
            }
        }
        function.along_all(&self.moments, self.space.dimension(), LANES);
        Ok(())
    }
}

/// Adds stored contributions of groups, in order.
fn add(out: &mut [f64], aside: Vec<Vec<(u32, f64)>>) {
    aside.into_iter().flatten().for_each(|(dof, moment)| out[dof as usize] += moment);
}

#[cfg(test)]
#[path = "../../../femtile-space/src/tensor_space/test_meshes.rs"]
mod test_meshes;

#[cfg(test)]
mod tests {
    use super::test_meshes::{ring, squares};
    use femtile_expression::Expression;
    use femtile_mesh::Mesh;

    use super::super::{CellPoints, Evaluation, Found};
    use super::*;
    use crate::forms::Coefficient;
    use femtile_space::SpaceError;
    use femtile_space::TensorSpace;
    use femtile_space::geometry::CellRule;

    /// Sums cell after cell.
    fn expected(mesh: &Mesh, degree: usize, f: &Compiled<'_>) -> (Vec<f64>, Vec<f64>) {
        let space = TensorSpace::new(mesh, degree).unwrap();
        let rule = CellRule::Gauss { extra: 1 };
        let (evaluation, basis) = (Evaluation::on_tensor_cells(&space, rule), TensorBasis::new(&space, rule));
        let (mut sum, mut found) = (vec![0.0; space.n_dofs()], vec![0.0; space.n_dofs()]);
        let of_cell = |found: &mut Found, points: &CellPoints| {
            points.eval(found, f)?;
            Ok((points.dofs.clone(), basis.moments(found, points).to_vec()))
        };
        for (dofs, moments) in evaluation.map(of_cell).unwrap() {
            dofs.iter().zip(moments).for_each(|(&dof, moment)| sum[dof as usize] += moment);
        }
        basis.add_moments(&mut found, f, f64::NAN).unwrap();
        (found, sum)
    }

    #[test]
    fn moments_have_the_bits_of_a_sum_cell_after_cell() {
        let source = Coefficient::from(Expression::parse("sin(3*x) + y*z - 0.1").unwrap());
        for (mesh, degree) in [(squares(83, 67), 10), (squares(1, 1), 2), (ring(13, 1), 3), (ring(7, 2), 1)] {
            let f = Compiled::scalar("source", &source, &mesh).unwrap();
            let (found, expected) = expected(&mesh, degree, &f);
            assert!(found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()), "degree {degree}");
        }
        let mesh = squares(83, 67);
        assert!(TensorSpace::new(&mesh, 10).unwrap().groups().len() > GROUPS);
    }

    #[test]
    fn a_folded_cell_is_named() {
        let mut mesh = squares(5, 3);
        let nodes = mesh.cell(7).to_vec();
        mesh.points.swap(nodes[0] as usize, nodes[2] as usize);
        let source = Coefficient::Constant(1.0);
        let f = Compiled::scalar("source", &source, &mesh).unwrap();
        let space = TensorSpace::new(&mesh, 2).unwrap();
        let basis = TensorBasis::new(&space, CellRule::default());
        let mut sum = vec![0.0; space.n_dofs()];
        let error = basis.add_moments(&mut sum, &f, f64::NAN).unwrap_err();
        assert!(matches!(error, FemError::Space(SpaceError::Inverted { .. })), "{error}");
    }
}
