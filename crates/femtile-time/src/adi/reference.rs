//! Reference kernels: plain loops over nodes that evaluate the formulas.

use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::need;

use super::{AdiKernels, Arrays, ExplicitStage, Operator};
use crate::TimeError;

impl<T: Scalar> AdiKernels<T> for Reference {
    fn adi_explicit(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        _: &Arrays<T, Self>,
        stage: ExplicitStage,
    ) -> Result<(), TimeError> {
        Arrays::none(0.0).check(operator, w, u)?;
        let grid = operator.grid();
        let source = operator.source.formula.at_time(stage.time);
        let u = |i: usize| u.as_slice()[i].to_f64();
        for node in grid.all() {
            let here = grid.index(node);
            let mut value = 0.0;
            if !operator.is_dirichlet(node) {
                let axes = stage.axis.map_or(0..grid.dimension(), |axis| axis..axis + 1);
                let mut sum = source.eval(grid.point(node));
                for axis in axes {
                    let [l, w] = operator.couplings_at(axis, node);
                    let [before, behind] = operator.neighbours(axis, node).map(|node| grid.index(node));
                    sum += l * (u(before) - u(here)) + w * (u(behind) - u(here));
                    sum += operator.reaction_share(node) * u(here);
                }
                if stage.axis.is_none() {
                    sum += operator.mixed_at(node, &u);
                }
                value = stage.scale * sum + if stage.axis.is_some() { u(here) } else { 0.0 };
            }
            w.as_mut_slice()[here] = T::from_f64(value);
        }
        Ok(())
    }

    fn adi_mixed(
        &self,
        w: &mut Buffer<T, Self>,
        u: &Buffer<T, Self>,
        operator: &Operator,
        _: &Arrays<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError> {
        Arrays::none(0.0).check(operator, w, u)?;
        let u = |i: usize| u.as_slice()[i].to_f64();
        for node in operator.grid().all().filter(|&node| !operator.is_dirichlet(node)) {
            let added = scale * operator.mixed_at(node, &u);
            w.as_mut_slice()[operator.grid().index(node)] += T::from_f64(added);
        }
        Ok(())
    }

    fn adi_set(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
    ) -> Result<(), TimeError> {
        need("values", nodes.len(), values.len())?;
        for (&node, &value) in nodes.as_slice().iter().zip(values.as_slice()) {
            if let Some(w) = w.as_mut_slice().get_mut(node as usize) {
                *w = value;
            }
        }
        Ok(())
    }

    fn adi_add(
        &self,
        w: &mut Buffer<T, Self>,
        nodes: &Buffer<u64, Self>,
        values: &Buffer<T, Self>,
        scale: f64,
    ) -> Result<(), TimeError> {
        need("values", nodes.len(), values.len())?;
        for (&node, &value) in nodes.as_slice().iter().zip(values.as_slice()) {
            if let Some(w) = w.as_mut_slice().get_mut(node as usize) {
                *w += T::from_f64(scale) * value;
            }
        }
        Ok(())
    }
}
