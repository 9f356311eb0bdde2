//! Difference of the algorithms from Thomas', as in the paper's validation of its hybrid.

use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::{
    Algorithm, Bands, BatchLayout, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
};

use super::scalar::{Grid, row};
use super::{Claim, Figure, KEY, Quantity, Row, Session, no_gpu};
use crate::reproduce::timing::Timed;
use femtile_bench::BenchError;
use femtile_bench::problems::tridiagonal::{BatchArray, entries, plain_thomas};

pub(super) fn run(session: &Session) -> Result<Figure, BenchError> {
    let lengths: &[usize] = if session.settings.small { &[13, 64] } else { &[64, 127, 256, 509, 1024] };
    let systems = if session.settings.small { 16 } else { 32 };
    let mut rows = Vec::new();
    for &length in lengths {
        let grid = Grid { sizes: [length, systems, systems], axis: "x" };
        compare::<f32, _>(&session.cpu, &grid, &mut rows)?;
        compare::<f64, _>(&session.cpu, &grid, &mut rows)?;
        if let Some(gpu) = &session.gpu {
            compare::<f32, _>(&gpu.device, &grid, &mut rows)?;
            compare::<f64, _>(&gpu.device, &grid, &mut rows)?;
        }
    }
    Ok(Figure {
        paper: KEY,
        item: "agreement",
        title: "Mean square difference from Thomas' algorithm".into(),
        quantity: Quantity::MeanSquare,
        abscissa: "length",
        setting: session.machine(),
        claims: claims(&rows),
        rows: rows.into(),
        absent: no_gpu(session).into_iter().collect(),
        table: None,
        notes: Vec::new(),
    })
}

fn compare<T: Scalar, D: TridiagonalKernels<T> + Timed>(
    device: &D,
    grid: &Grid,
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    let [x, y, z] = grid.sizes;
    let [a, b, c, d] = BatchArray::ALL.map(|part| entries::<T>(part, x * y * z));
    let mut expected = d.clone();
    plain_thomas(&mut expected, [&a, &b, &c], x, &mut vec![T::ZERO; x]);
    let lower = Buffer::from_vec(device, a)?;
    let diagonal = Buffer::from_vec(device, b)?;
    let upper = Buffer::from_vec(device, c)?;
    let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
    let layout = BatchLayout::contiguous(&[z, y, x])?;
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Auto) {
        let config = TridiagonalConfig { algorithm, ..TridiagonalConfig::default() };
        let mut solver = match Tridiagonal::new(device, &layout, 2, config) {
            // Not every device has every algorithm for every length.
            Err(LinalgError::Setting { .. }) => continue,
            other => other?,
        };
        let mut u = Buffer::from_host(device, &d)?;
        let mut outcome = None;
        let seconds = device.seconds(&mut || {
            outcome = Some(solver.solve_in_place(&mut u, bands)?);
            Ok(())
        })?;
        if let Some(outcome) = outcome.filter(|outcome| !outcome.is_solved()) {
            return Err(BenchError::Setting { field: "systems", message: outcome.to_string() });
        }
        let found = u.to_host()?;
        let squares = found.iter().zip(&expected).map(|(&f, &e)| (f.to_f64() - e.to_f64()).powi(2));
        let mut row = row(grid, T::NAME, seconds);
        row.solver = algorithm.name().into();
        row.kind = D::KIND;
        row.device = device.description();
        row.mean_square = Some(squares.sum::<f64>() / found.len().max(1) as f64);
        rows.push(row);
    }
    Ok(())
}

fn claims(rows: &[Row]) -> Vec<Claim> {
    let worst = |precision: &str| {
        let squares = rows.iter().filter(|row| row.precision == precision).filter_map(|row| row.mean_square);
        squares.reduce(f64::max).map(|worst| format!("{worst:.1e} at most, of all algorithms"))
    };
    let claim = |what: &str, theirs: &str, precision| Claim {
        what: what.into(),
        place: "section 2.3",
        theirs: theirs.into(),
        ours: worst(precision),
    };
    vec![
        claim(
            "mean square difference of the hybrid from Thomas, single precision",
            "in the order of 1e-9",
            "f32",
        ),
        claim("the same, double precision", "in the order of 1e-18", "f64"),
    ]
}
