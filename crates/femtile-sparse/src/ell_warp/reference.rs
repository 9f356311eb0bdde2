use femtile_device::{Buffer, HostDevice, Reference, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::{Hook, hook_rows};

use super::refill::Refill;
use super::slices::Slices;
use super::{EllWarp, EllWarpConfig, EllWarpKernels};
use crate::Csr;

impl<T: Scalar, V: Scalar> EllWarpKernels<T, V> for Reference {
    const LANES: &'static [usize] = &[2, 4, 8, 16, 32, 64];

    fn ell_warp_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let slices = a.layout.to_slices(a.config.lanes)?;
        let columns = a.columns.to_numbers(&slices)?;
        hook_rows(hook, y, x, |y| {
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

    fn ell_warp_convert(
        &self,
        csr: &Csr<V, Self>,
        config: &EllWarpConfig,
    ) -> Result<EllWarp<T, Self, V>, LinalgError> {
        EllWarp::from_csr(self, csr, config)
    }

    fn ell_warp_stored(&self, csr: &Csr<V, Self>, config: &EllWarpConfig) -> Result<usize, LinalgError> {
        Ok(Slices::new(&csr.row_lengths(), config)?.n_stored())
    }

    fn ell_warp_refill(&self, a: &mut EllWarp<T, Self, V>, csr: &Csr<V, Self>) -> Result<(), LinalgError> {
        a.need_pattern_of(csr)?;
        let (refill, values) = Refill::new(a, csr);
        refill.fill(0..refill.starts().len() - 1, values);
        Ok(())
    }

    fn ell_warp_sort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError> {
        sort_on_host(to, from, a)
    }

    fn ell_warp_unsort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError> {
        unsort_on_host(to, from, a)
    }
}

pub(super) fn sort_on_host<T: Scalar, D: HostDevice, V: Scalar>(
    to: &mut Buffer<T, D>,
    from: &Buffer<T, D>,
    a: &EllWarp<T, D, V>,
) -> Result<(), LinalgError> {
    a.need_rows(to, from)?;
    let (to, from) = (to.as_mut_slice(), from.as_slice());
    match a.numbering() {
        Some(rows) => to.iter_mut().zip(rows.as_slice()).for_each(|(to, &row)| *to = from[row as usize]),
        None => to.copy_from_slice(from),
    }
    Ok(())
}

pub(super) fn unsort_on_host<T: Scalar, D: HostDevice, V: Scalar>(
    to: &mut Buffer<T, D>,
    from: &Buffer<T, D>,
    a: &EllWarp<T, D, V>,
) -> Result<(), LinalgError> {
    a.need_rows(to, from)?;
    let (to, from) = (to.as_mut_slice(), from.as_slice());
    match a.numbering() {
        Some(rows) => from.iter().zip(rows.as_slice()).for_each(|(&from, &row)| to[row as usize] = from),
        None => to.copy_from_slice(from),
    }
    Ok(())
}
