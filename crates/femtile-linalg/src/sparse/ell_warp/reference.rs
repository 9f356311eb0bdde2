use femtile_device::{Buffer, HostDevice, Reference, Scalar};

use super::pack::PADDING;
use super::{EllWarp, EllWarpKernels};
use crate::LinalgError;
use crate::hooks::Hook;
use crate::sparse::rows::offset;
use crate::sparse::{Csr, HookKernels};

impl<T: Scalar, V: Scalar> EllWarpKernels<T, V> for Reference {
    fn ell_warp_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let slices = a.layout.to_slices(a.config.lanes)?;
        let columns = a.columns.to_numbers(&slices)?;
        self.hook_rows(y, x, hook, |y| {
            let (x, y) = (x.as_slice(), y.as_mut_slice());
            for slice in 0..slices.len() {
                let lanes_of_row = slices.lanes_of_row(slice);
                for (i, place) in slices.places(slice, a.n_rows).enumerate() {
                    let lanes = i * lanes_of_row..(i + 1) * lanes_of_row;
                    let (slices, columns) = (&slices, &columns);
                    let entries =
                        slices.columns(slice).flat_map(|j| lanes.clone().map(move |lane| slices.at(j, lane)));
                    let value = |at: usize| T::from_f64(a.values.as_slice()[at].to_f64());
                    let row = if a.scatters().is_some() { slices.row(place) } else { place };
                    y[row] = entries.map(|at| value(at) * x[columns[at] as usize]).sum();
                }
            }
            Ok(())
        })
    }

    fn ell_warp_refill(&self, a: &mut EllWarp<T, Self, V>, csr: &Csr<V, Self>) -> Result<(), LinalgError> {
        refill_on_host(a, csr)
    }

    fn ell_warp_sort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        rows: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        sort_on_host(to, from, rows);
        Ok(())
    }

    fn ell_warp_unsort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        rows: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        unsort_on_host(to, from, rows);
        Ok(())
    }
}

/// New values, slice by slice.
pub(super) fn refill_on_host<T: Scalar, V: Scalar, D: HostDevice>(
    a: &mut EllWarp<T, D, V>,
    csr: &Csr<V, D>,
) -> Result<(), LinalgError> {
    let slices = a.layout.to_slices(a.config.lanes)?;
    let (entries, stored) = (a.entries.as_ref(), a.values.as_mut_slice());
    for slice in 0..slices.len() {
        let lanes_of_row = slices.lanes_of_row(slice);
        for (i, place) in slices.places(slice, a.n_rows).enumerate() {
            let row = slices.row(place);
            let ends = offset(csr.offsets(), row)..offset(csr.offsets(), row + 1);
            let row = &csr.values().as_slice()[ends];
            for (j, column) in slices.columns(slice).enumerate() {
                for lane in 0..lanes_of_row {
                    let at = slices.at(column, i * lanes_of_row + lane);
                    let k = match entries {
                        Some(entries) => entries.as_slice()[at],
                        None => (j * lanes_of_row + lane) as u32,
                    };
                    debug_assert!(k == PADDING || (k as usize) < row.len() || entries.is_none());
                    stored[at] = row.get(k as usize).copied().unwrap_or(V::ZERO);
                }
            }
        }
    }
    Ok(())
}

pub(super) fn sort_on_host<T: Scalar, D: HostDevice>(
    to: &mut Buffer<T, D>,
    from: &Buffer<T, D>,
    rows: &Buffer<u32, D>,
) {
    let from = from.as_slice();
    to.as_mut_slice().iter_mut().zip(rows.as_slice()).for_each(|(to, &row)| *to = from[row as usize]);
}

pub(super) fn unsort_on_host<T: Scalar, D: HostDevice>(
    to: &mut Buffer<T, D>,
    from: &Buffer<T, D>,
    rows: &Buffer<u32, D>,
) {
    let to = to.as_mut_slice();
    from.as_slice().iter().zip(rows.as_slice()).for_each(|(&from, &row)| to[row as usize] = from);
}
