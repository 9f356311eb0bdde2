use std::ops::Range;

use femtile_device::{Buffer, Cpu, Reference, Scalar, parallel};
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::sum::BLOCK;
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sparse::csr::Csr;

use super::RankKernels;
use crate::{Halo, LocalUnknowns, OwnedRows};

/// Values that a thread copies at a time.
const COPIED: usize = 1 << 13;

/// Forwards to a hook the ranges that end before the last rows.
struct BeforeBorder<'a, T: Scalar> {
    hook: &'a dyn Hook<T>,
    end: usize,
}

impl<T: Scalar> Hook<T> for BeforeBorder<'_, T> {
    fn post(&self, rows: Range<usize>, x: &[T], y: &[T]) {
        if rows.end <= self.end {
            self.hook.post(rows, x, y);
        }
    }
}

/// The first row for which the hook is called only once the border is complete. The last of `n` rows, from
/// `first` on, are completed late, and a hook sees blocks of rows whole.
fn first_of_border(first: usize, n: usize) -> usize {
    if first == n { n } else { first / BLOCK * BLOCK }
}

/// Implements [`RankKernels`] for a device on the host.
macro_rules! rank_kernels {
    ($device:ty) => {
        impl<T: Scalar> RankKernels<T> for $device {
            type Link = ();
            type Positions = ();

            fn link(&self, _halo: &Halo) -> Result<(), LinalgError> {
                Ok(())
            }

            fn positions(&self, _unknowns: &LocalUnknowns) -> Result<(), LinalgError> {
                Ok(())
            }

            fn import(
                &self,
                (halo, ()): (&Halo, &()),
                ghosts: &mut Buffer<T, Self>,
                owned: &Buffer<T, Self>,
                meanwhile: &mut dyn FnMut() -> Result<(), LinalgError>,
            ) -> Result<(), LinalgError> {
                let mut done = Ok(());
                halo.import(ghosts.as_mut_slice(), owned.as_slice(), &mut || done = meanwhile())?;
                done
            }

            fn add_to_owners(
                &self,
                (halo, ()): (&Halo, &()),
                owned: &mut Buffer<T, Self>,
                ghosts: &Buffer<T, Self>,
            ) -> Result<(), LinalgError> {
                halo.add_to_owners(owned.as_mut_slice(), ghosts.as_slice())
            }

            /// The hook sees complete rows while they are in cache.
            fn own_product(
                &self,
                a: &dyn LinearOperator<T, Self>,
                y: &mut Buffer<T, Self>,
                x: &Buffer<T, Self>,
                (hook, first): (&dyn Hook<T>, usize),
            ) -> Result<(), LinalgError> {
                let n = y.len();
                hook.pre(0..n);
                a.apply_with(y, x, &BeforeBorder { hook, end: first_of_border(first, n) })
            }

            fn complete(
                &self,
                y: &mut Buffer<T, Self>,
                x: &Buffer<T, Self>,
                sums: &Buffer<T, Self>,
                hook: &dyn Hook<T>,
            ) -> Result<(), LinalgError> {
                let n = y.len();
                need("x", n, x.len())?;
                need("sums", sums.len().min(n), sums.len())?;
                let first = n - sums.len();
                let (y, x) = (y.as_mut_slice(), x.as_slice());
                y[first..].iter_mut().zip(sums.as_slice()).for_each(|(y, &sum)| *y += sum);
                let (y, tail) = (&*y, first_of_border(first, n));
                parallel::for_each((n - tail).div_ceil(BLOCK), 1, |block| {
                    let rows = tail + block * BLOCK..(tail + (block + 1) * BLOCK).min(n);
                    hook.post(rows.clone(), &x[rows.clone()], &y[rows]);
                });
                Ok(())
            }

            fn divide(&self, a: Csr<T, Self>, n_owned: usize) -> Result<OwnedRows<T, Self>, LinalgError> {
                OwnedRows::from_local_rows(self, &a, n_owned)
            }

            fn join(
                &self,
                part: &mut Buffer<T, Self>,
                owned: &Buffer<T, Self>,
                ghosts: &Buffer<T, Self>,
            ) -> Result<(), LinalgError> {
                need("part", owned.len() + ghosts.len(), part.len())?;
                let (own, others) = part.as_mut_slice().split_at_mut(owned.len());
                own.copy_from_slice(owned.as_slice());
                others.copy_from_slice(ghosts.as_slice());
                Ok(())
            }

            fn section(
                &self,
                y: &mut Buffer<T, Self>,
                x: &Buffer<T, Self>,
                first: usize,
            ) -> Result<(), LinalgError> {
                let end = first + y.len();
                need("x", end, x.len().min(end))?;
                y.as_mut_slice().copy_from_slice(&x.as_slice()[first..end]);
                Ok(())
            }

            fn put(
                &self,
                y: &mut Buffer<T, Self>,
                first: usize,
                (x, range): (&Buffer<T, Self>, Range<usize>),
            ) -> Result<(), LinalgError> {
                if range.is_empty() {
                    return Ok(());
                }
                let end = first.saturating_add(range.len());
                need("y", end, y.len().min(end))?;
                need("x", range.end, x.len().min(range.end))?;
                y.as_mut_slice()[first..end].copy_from_slice(&x.as_slice()[range]);
                Ok(())
            }

            fn spread(
                &self,
                (unknowns, ()): (&LocalUnknowns, &()),
                part: &mut Buffer<T, Self>,
                owned: &Buffer<T, Self>,
                ghosts: Option<&Buffer<T, Self>>,
            ) -> Result<(), LinalgError> {
                unknowns.need(part.len(), owned.len(), ghosts.map(Buffer::len))?;
                let (owned, ghosts) = (owned.as_slice(), ghosts.map(Buffer::as_slice));
                let value = |number: usize| match number.checked_sub(owned.len()) {
                    None => owned[number],
                    Some(ghost) => ghosts.map_or(T::ZERO, |ghosts| ghosts[ghost]),
                };
                parallel::for_chunks_mut(part.as_mut_slice(), COPIED, |begin, values| {
                    let positions = &unknowns.positions()[begin..];
                    values.iter_mut().zip(positions).for_each(|(to, &number)| *to = value(number as usize));
                });
                Ok(())
            }

            fn take(
                &self,
                (unknowns, ()): (&LocalUnknowns, &()),
                owned: &mut Buffer<T, Self>,
                part: &Buffer<T, Self>,
                hook: Option<(&dyn Hook<T>, &Buffer<T, Self>)>,
            ) -> Result<(), LinalgError> {
                unknowns.need(part.len(), owned.len(), None)?;
                if let Some((_, x)) = hook {
                    need("x", owned.len(), x.len())?;
                }
                let part = part.as_slice();
                parallel::for_chunks_mut(owned.as_mut_slice(), BLOCK, |begin, y| {
                    let rows = begin..begin + y.len();
                    let places = &unknowns.owned()[rows.clone()];
                    y.iter_mut().zip(places).for_each(|(y, &unknown)| *y = part[unknown as usize]);
                    if let Some((hook, x)) = hook {
                        hook.post(rows.clone(), &x.as_slice()[rows], y);
                    }
                });
                Ok(())
            }
        }
    };
}

rank_kernels!(Cpu);
rank_kernels!(Reference);
