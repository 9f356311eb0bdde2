//! A matrix in the format that suits the number of its products.
//!
//! Solves and multigrid levels use `ProductMatrix`: rows or slices in the numbering of the mesh. The format is
//! chosen from sizes (`choice/sizes.rs`) or from a search (`choice/remembered.rs`).

use femtile_device::{Buffer, BufferMut, Device, HostDevice, MemorySpace, Scalar};
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::{Convert, VectorKernels};
use femtile_linalg::{LinalgError, LinearOperator};

use super::choice::{Described, Machine, Remembered, Sizes, remembered};
use super::csr::{Csr, CsrKernels, HostOffsets};
use super::ell_warp::{EllWarp, EllWarpConfig, EllWarpKernels, IndexKind};
use super::entry_positions::sealed::Sealed;
use super::entry_positions::{EntryPositions, StoredMatrix};
use super::format::Format;

/// Stored entries for each non-zero up to which slices are taken.
const PADDING: f64 = 1.12;
/// Rows of a window where rows are sorted by length.
const WINDOW: usize = 256;
/// Rows from which slices are considered, on a GPU and on a CPU: smaller matrices stay in the cache whatever their format.
pub const LEAST_SLICED_ROWS: [usize; 2] = [20_000, 200_000];
/// Lanes of a slice on a GPU, and on a CPU, where they are the same for all SIMD levels, as the choice of the format shows
/// in the bits of products.
const LANES: [usize; 2] = [64, 8];

/// The reason for a format that was remembered.
const BY_SEARCH: &str = "found by a search";

/// The format of a matrix in products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatrixFormat {
    /// ELL-WARP where it is expected to be faster, else compressed sparse rows.
    #[default]
    Auto,
    /// Compressed sparse rows.
    Csr,
    /// Slices of rows, `[wong2015]`.
    EllWarp,
}

/// A sparse matrix in one of the formats that solves multiply by, which keep the order of rows.
#[derive(Debug)]
pub enum ProductMatrix<T: Scalar, D: Device> {
    /// Compressed sparse rows.
    Rows(Csr<T, D>),
    /// ELL-WARP.
    Slices(EllWarp<T, D>),
}

impl<T: Scalar, D: CsrKernels<T> + EllWarpKernels<T, T> + Described> ProductMatrix<T, D> {
    /// Puts a matrix into a format where it lies; with [`MatrixFormat::Auto`] into the one that a search has found, else into
    /// the one in which `n_products` products, with the conversion, are expected to be faster. The reason comes second.
    ///
    /// # Cost
    /// A conversion takes about three products on a GPU, 45 on a CPU, and has both matrices in memory; counting the entries
    /// of slices before reads the offsets twice.
    /// # Errors
    /// Errors of the device.
    pub fn new(
        matrix: Csr<T, D>,
        format: MatrixFormat,
        n_products: usize,
        known: &[Remembered],
    ) -> Result<(Self, String), LinalgError> {
        let (config, reason) = match (format, remembered(known, &matrix)?) {
            (MatrixFormat::Csr, _) => (None, "asked for".into()),
            (MatrixFormat::EllWarp, _) => (Some(fullest(&matrix)?.0), "asked for".into()),
            (MatrixFormat::Auto, Some(Format::Csr)) => (None, BY_SEARCH.into()),
            (MatrixFormat::Auto, Some(Format::EllWarp(config))) => (Some(config), BY_SEARCH.into()),
            (MatrixFormat::Auto, None) => expected_fastest(&matrix, n_products)?,
        };
        Ok((Self::in_slices(matrix, config.as_ref())?, reason))
    }

    /// Puts a matrix into slices, or leaves it in rows where `config` is none.
    ///
    /// # Errors
    /// As [`EllWarp::convert`].
    pub fn in_slices(matrix: Csr<T, D>, config: Option<&EllWarpConfig>) -> Result<Self, LinalgError> {
        Ok(match config {
            None => Self::Rows(matrix),
            Some(config) => Self::Slices(EllWarp::convert(&matrix, config)?),
        })
    }

    /// Copies the matrix `a` of the host to `device` in a format.
    ///
    /// # Errors
    /// As [`EllWarp::from_csr`].
    pub fn from_csr(device: &D, a: &Csr<T, impl HostDevice>, format: Format) -> Result<Self, LinalgError> {
        Ok(match format {
            Format::Csr => Self::Rows(a.copy_to(device)?),
            Format::EllWarp(config) => Self::Slices(EllWarp::from_csr(device, a, &config)?),
        })
    }

    /// Returns a matrix in slices with its values rounded to 32 bits, none for rows.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn rounded(&self) -> Result<Option<EllWarp<T, D, f32>>, LinalgError>
    where
        D: Convert<T, f32>,
    {
        match self {
            Self::Rows(_) => Ok(None),
            Self::Slices(slices) => slices.rounded().map(Some),
        }
    }

    /// Returns the number of stored entries.
    pub fn n_stored(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.n_nonzeros(),
            Self::Slices(slices) => slices.n_stored(),
        }
    }

    /// Returns the values as they are stored, padding included.
    pub fn values(&self) -> &Buffer<T, D> {
        match self {
            Self::Rows(rows) => rows.values(),
            Self::Slices(slices) => slices.values(),
        }
    }

    /// Returns the bytes that one product must move.
    pub fn product_bytes(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.product_bytes(),
            Self::Slices(slices) => slices.product_bytes(),
        }
    }

    /// Returns the format.
    pub fn format(&self) -> Format {
        match self {
            Self::Rows(_) => Format::Csr,
            Self::Slices(slices) => Format::EllWarp(*slices.config()),
        }
    }

    /// Moves a matrix in rows to other memory of the device, as far as there is room; returns whether it is there then.
    /// Slices stay.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn move_to(&mut self, place: MemorySpace) -> Result<bool, LinalgError> {
        match self {
            Self::Rows(rows) => rows.move_to(place),
            Self::Slices(_) => Ok(true),
        }
    }

    /// Returns the matrix as an operator.
    fn operator(&self) -> &dyn LinearOperator<T, D> {
        match self {
            Self::Rows(rows) => rows,
            Self::Slices(slices) => slices,
        }
    }
}

/// Returns the layout of unsorted rows, or of sorted ones where padding would be too much, with its stored entries.
fn fullest<T: Scalar, D>(matrix: &Csr<T, D>) -> Result<(EllWarpConfig, usize), LinalgError>
where
    D: EllWarpKernels<T, T> + Described,
{
    let lanes = of_machine(&matrix.values().device().machine(), LANES);
    let unsorted = EllWarpConfig { indices: IndexKind::Delta, ..EllWarpConfig::new(lanes) };
    let n_stored = EllWarp::<T, D>::stored(matrix, &unsorted)?;
    if is_full(matrix, n_stored) {
        return Ok((unsorted, n_stored));
    }
    let sorted = EllWarpConfig { window: WINDOW, ..unsorted };
    Ok((sorted, EllWarp::<T, D>::stored(matrix, &sorted)?))
}

/// Returns the layout in slices that is expected to be faster than rows, or none, with the reason.
fn expected_fastest<T: Scalar, D>(
    matrix: &Csr<T, D>,
    n_products: usize,
) -> Result<(Option<EllWarpConfig>, String), LinalgError>
where
    D: EllWarpKernels<T, T> + Described,
{
    let device = matrix.values().device();
    let machine = device.machine();
    let least = of_machine(&machine, LEAST_SLICED_ROWS);
    if matrix.n_rows() < least {
        return Ok((None, format!("fewer than {least} rows")));
    }
    let value_bytes = size_of::<T>();
    let sizes = Sizes {
        n_rows: matrix.n_rows(),
        n_cols: matrix.n_cols(),
        n_nonzeros: matrix.n_nonzeros(),
        value_bytes,
    };
    let of_rows = sizes.of_rows(&machine);
    if !sizes.pays(&machine, [of_rows, 0.0], n_products) {
        return Ok((None, format!("{n_products} products do not make up for a conversion")));
    }
    let (config, n_stored) = match fullest(matrix) {
        Err(LinalgError::Setting { message, .. }) => return Ok((None, message)),
        found => found?,
    };
    if !is_full(matrix, n_stored) {
        return Ok((None, "rows of slices would differ much in length".into()));
    }
    if device
        .available_bytes()
        .is_some_and(|workspace| workspace < n_stored * (value_bytes + size_of::<u32>()))
    {
        return Ok((None, "there is no room for a conversion".into()));
    }
    let of_slices = sizes.of_slices(&machine, &config, n_stored);
    let pays = sizes.pays(&machine, [of_rows, of_slices], n_products);
    let [of_rows, of_slices] = [of_rows, of_slices].map(|seconds| 1e6 * seconds);
    let expected = format!("{of_slices:.1} µs a product expected, {of_rows:.1} µs in CSR");
    if pays {
        return Ok((Some(config), expected));
    }
    Ok((None, format!("in slices {expected}: {n_products} products do not make up for a conversion")))
}

fn is_full<T: Scalar, D: Device>(matrix: &Csr<T, D>, n_stored: usize) -> bool {
    n_stored as f64 <= PADDING * matrix.n_nonzeros() as f64
}

fn of_machine(machine: &Machine, [of_gpu, of_cpu]: [usize; 2]) -> usize {
    match machine {
        Machine::Gpu { .. } => of_gpu,
        Machine::Cpu { .. } => of_cpu,
    }
}

impl<T: Scalar, D: Device> Sealed for ProductMatrix<T, D> {}

impl<T: Scalar, D: CsrKernels<T> + EllWarpKernels<T, T>> StoredMatrix<D> for ProductMatrix<T, D> {
    type Value = T;
    type Config = Format;

    fn zeros(
        device: &D,
        offsets: &HostOffsets,
        columns: &[u32],
        config: &Format,
    ) -> Result<Self, LinalgError> {
        Ok(match config {
            Format::Csr => Self::Rows(Csr::zeros(device, offsets, columns, &())?),
            Format::EllWarp(config) => Self::Slices(EllWarp::zeros(device, offsets, columns, config)?),
        })
    }

    fn entry_positions(&self) -> Result<EntryPositions, LinalgError> {
        match self {
            Self::Rows(rows) => rows.entry_positions(),
            Self::Slices(slices) => slices.entry_positions(),
        }
    }

    fn values_mut(&mut self) -> BufferMut<'_, T, D> {
        match self {
            Self::Rows(rows) => rows.values_mut(),
            Self::Slices(slices) => slices.values_mut(),
        }
    }

    fn combine_values(&mut self, alpha: T, x: &Buffer<T, D>, beta: T) -> Result<(), LinalgError>
    where
        D: VectorKernels<T>,
    {
        match self {
            Self::Rows(rows) => rows.combine_values(alpha, x, beta),
            Self::Slices(slices) => slices.combine_values(alpha, x, beta),
        }
    }
}

impl<T: Scalar, D: CsrKernels<T> + EllWarpKernels<T, T> + Described> LinearOperator<T, D>
    for ProductMatrix<T, D>
{
    fn n_rows(&self) -> usize {
        self.operator().n_rows()
    }

    fn n_cols(&self) -> usize {
        self.operator().n_cols()
    }

    fn device(&self) -> &D {
        self.operator().device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        self.operator().apply_with(y, x, hook)
    }

    fn inverse_diagonal(&self) -> Result<Option<Buffer<T, D>>, LinalgError> {
        self.operator().inverse_diagonal()
    }
}

#[cfg(test)]
mod tests {
    use femtile_device::Cpu;

    use super::*;
    use crate::choice::{candidates, fingerprint};
    use crate::csr::HostOffsets;

    /// Rows of these lengths.
    fn matrix(cpu: &Cpu, lengths: &[usize]) -> Csr<f64, Cpu> {
        let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
        let columns: Vec<u32> = lengths.iter().flat_map(|&length| 0..length as u32).collect();
        let values = vec![1.0; columns.len()];
        Csr::from_parts(cpu, lengths.len(), offsets, columns, values).unwrap()
    }

    #[test]
    fn a_format_that_was_found_is_taken_for_its_matrix_on_its_device_alone() {
        let cpu = Cpu::new(1).unwrap();
        let (own, other) = ([1, 2, 3, 4], [1, 3, 2, 4]);
        let is_slices = |format: &Format| matches!(format, Format::EllWarp(_));
        let slices = candidates(&cpu.machine()).into_iter().find(is_slices).unwrap();
        let known = |format: &str, device: &str| Remembered {
            matrix: fingerprint(&matrix(&cpu, &own)),
            device: device.into(),
            format: format.into(),
        };
        let sliced = &slices.name();
        let here = cpu.description();
        let chosen = |lengths: &[usize], format, known| {
            ProductMatrix::new(matrix(&cpu, lengths), format, 10, &[known]).unwrap()
        };
        let (found, reason) = chosen(&own, MatrixFormat::Auto, known(sliced, &here));
        assert_eq!((found.format(), reason.as_str()), (slices, BY_SEARCH));
        assert_eq!(chosen(&own, MatrixFormat::Auto, known("CSR", &here)).1, BY_SEARCH);
        for (lengths, format, known) in [
            (own, MatrixFormat::Csr, known(sliced, &here)),
            (own, MatrixFormat::Auto, known(sliced, "another device")),
            (own, MatrixFormat::Auto, known("merge", &here)),
            (other, MatrixFormat::Auto, known(sliced, &here)),
        ] {
            let (found, reason) = chosen(&lengths, format, known);
            assert!(found.format() == Format::Csr && reason != BY_SEARCH, "{reason}");
        }
    }
}
