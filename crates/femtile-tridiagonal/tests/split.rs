//! Systems of which ranks have consecutive rows, held to those of one rank.

use std::sync::Mutex;

use femtile_comm::{Comm, threads};
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;
use femtile_tridiagonal::split::SplitTridiagonal;
use femtile_tridiagonal::{
    Bands, BatchLayout, Ends, Stability, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
};

/// Numbers in [-1, 1] that depend on a seed.
fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Lower, diagonal and upper bands and right sides in row-major arrays.
struct System {
    shape: Vec<usize>,
    axis: usize,
    arrays: [Vec<f64>; 4],
}

impl System {
    /// Rows of which the diagonal exceeds the others by `excess`; what is beyond both ends is not a number.
    fn random(shape: &[usize], axis: usize, excess: f64) -> Self {
        let n = shape.iter().product();
        let [mut lower, mut upper, d] = [1, 2, 3].map(|seed| numbers(seed + n as u64, n));
        let diagonal = lower.iter().zip(&upper).map(|(a, c)| a.abs() + c.abs() + excess).collect();
        let inner: usize = shape[axis + 1..].iter().product();
        for at in 0..n {
            let row = at / inner % shape[axis];
            if row == 0 {
                lower[at] = f64::NAN;
            }
            if row + 1 == shape[axis] {
                upper[at] = f64::NAN;
            }
        }
        Self { shape: shape.to_vec(), axis, arrays: [lower, diagonal, upper, d] }
    }

    /// The rows from `begin` to `end` of an array.
    fn rows<T: Scalar>(&self, array: usize, begin: usize, end: usize) -> Vec<T> {
        let inner: usize = self.shape[self.axis + 1..].iter().product();
        let of_row = self.shape[self.axis] * inner;
        let rows = self.arrays[array].chunks_exact(of_row.max(1));
        rows.flat_map(|of_outer| &of_outer[begin * inner..end * inner]).map(|&x| T::from_f64(x)).collect()
    }

    fn layout(&self, n_rows: usize) -> BatchLayout {
        let mut shape = self.shape.clone();
        shape[self.axis] = n_rows;
        BatchLayout::contiguous(&shape).unwrap()
    }

    fn on_one<T: Scalar>(&self, config: TridiagonalConfig) -> Vec<T>
    where
        Cpu: TridiagonalKernels<T>,
    {
        let (cpu, n) = (Cpu::new(1).unwrap(), self.shape[self.axis]);
        let [lower, diagonal, upper, d] =
            [0, 1, 2, 3].map(|array| Buffer::from_vec(&cpu, self.rows::<T>(array, 0, n)).unwrap());
        let mut u = Buffer::zeros(&cpu, d.len()).unwrap();
        let mut solver = Tridiagonal::new(&cpu, &self.layout(n), self.axis, config).unwrap();
        let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
        assert!(solver.solve(&mut u, bands, &d).unwrap().is_solved());
        u.to_host().unwrap()
    }

    /// Solves twice on ranks whose rows end at `cuts`; returns the solution and the lines that failed.
    fn on_ranks<T: Scalar>(&self, cuts: &[usize], config: TridiagonalConfig) -> (Vec<T>, Vec<usize>)
    where
        Cpu: TridiagonalKernels<T>,
    {
        let parts = Mutex::new(vec![Vec::new(); cuts.len()]);
        let work = |comm: Comm| -> Result<Vec<usize>, LinalgError> {
            let rank = comm.rank();
            let (begin, end) = (if rank == 0 { 0 } else { cuts[rank - 1] }, cuts[rank]);
            let cpu = Cpu::new(1)?;
            let part = |array| Buffer::from_vec(&cpu, self.rows::<T>(array, begin, end));
            let bands = [part(0)?, part(1)?, part(2)?];
            let layout = self.layout(end - begin);
            let mut solver = SplitTridiagonal::new((&cpu, comm), &layout, self.axis, config, bands)?;
            let mut failed = Vec::new();
            for _ in 0..2 {
                let mut u = part(3)?;
                failed = solver.solve_in_place(&mut u)?.failed;
                parts.lock().unwrap()[rank] = u.to_host()?;
            }
            Ok(failed)
        };
        let failed = threads::run(cuts.len(), work, |comm| work(comm).map(drop)).unwrap();
        let parts = parts.into_inner().unwrap();
        let inner: usize = self.shape[self.axis + 1..].iter().product();
        let n_outer: usize = self.shape[..self.axis].iter().product();
        let mut joined = Vec::new();
        for outer in 0..n_outer {
            for (rank, part) in parts.iter().enumerate() {
                let n_rows = cuts[rank] - if rank == 0 { 0 } else { cuts[rank - 1] };
                joined.extend_from_slice(&part[outer * n_rows * inner..(outer + 1) * n_rows * inner]);
            }
        }
        (joined, failed)
    }

    fn check<T: Scalar>(&self, cuts: &[usize], config: TridiagonalConfig, tolerance: f64)
    where
        Cpu: TridiagonalKernels<T>,
    {
        let expected = self.on_one::<T>(config);
        let (found, failed) = self.on_ranks::<T>(cuts, config);
        assert_eq!((failed, found.len()), (Vec::new(), expected.len()));
        let size = expected.iter().fold(0.0_f64, |size, x| size.max(x.to_f64().abs()));
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = (found.to_f64() - expected.to_f64()).abs() / size;
            assert!(error <= tolerance, "{:?} cut at {cuts:?}: entry {at} is off by {error:e}", self.shape);
        }
    }
}

#[test]
fn ranks_solve_as_one() {
    let config = TridiagonalConfig::default();
    for (shape, axis) in [
        (vec![17], 0),
        (vec![17, 9, 5], 0),
        (vec![4, 17, 11], 1),
        (vec![3, 13, 17], 2),
        (vec![17, 1], 0),
        (vec![17, 0], 0),
    ] {
        let system = System::random(&shape, axis, 0.1);
        for cuts in [&[17][..], &[8, 17], &[1, 16, 17], &[1, 2, 3, 17], &[5, 6, 11, 12, 17]] {
            system.check::<f64>(cuts, config, 1e-12);
            system.check::<f32>(cuts, config, 1e-4);
        }
    }
}

#[test]
fn long_systems_with_slow_decay_and_with_pivoting() {
    let pivoting =
        TridiagonalConfig { stability: Stability::PartialPivoting, ..TridiagonalConfig::default() };
    for config in [TridiagonalConfig::default(), pivoting] {
        let mut poisson = System::random(&[600, 7], 0, 0.0);
        for (array, value) in [(0, -1.0), (1, 2.0), (2, -1.0)] {
            poisson.arrays[array].fill(value);
        }
        poisson.check::<f64>(&[150, 290, 600], config, 1e-10);
    }
}

#[test]
fn lines_that_cannot_be_solved_are_named_on_all_ranks() {
    let mut system = System::random(&[12, 6], 0, 0.5);
    // Line 4: the first row of the second rank has no pivot.
    system.arrays[1][5 * 6 + 4] = 0.0;
    system.arrays[3][9 * 6 + 2] = f64::INFINITY;
    let (found, failed) = system.on_ranks::<f64>(&[5, 12], TridiagonalConfig::default());
    assert_eq!(failed, [2, 4]);
    let is_nan = |at: usize| matches!(at % 6, 2 | 4);
    assert!(found.iter().enumerate().all(|(at, u)| u.is_nan() == is_nan(at)), "other lines are solved");
}

#[test]
fn what_does_not_fit_is_an_error_on_all_ranks() {
    let refused = |shape: fn(usize) -> [usize; 2], ends| {
        let work = |comm: Comm| {
            let (cpu, config) = (Cpu::new(1)?, TridiagonalConfig { ends, ..TridiagonalConfig::default() });
            let layout = BatchLayout::contiguous(&shape(comm.rank()))?;
            let band = || Buffer::<f64, Cpu>::zeros(&cpu, layout.n_entries());
            let bands = [band()?, band()?, band()?];
            SplitTridiagonal::new((&cpu, comm), &layout, 0, config, bands).map(drop)
        };
        threads::run(2, work, work).unwrap_err().to_string()
    };
    let said = refused(|rank| [4, 3 + rank], Ends::Open);
    assert!(said.contains("as many lines as the others"), "{said}");
    let said = refused(|rank| [rank, 3], Ends::Open);
    assert!(said.contains("one row or more"), "{said}");
    let said = refused(|_| [4, 3], Ends::Periodic);
    assert!(said.contains("open ends"), "{said}");
}
