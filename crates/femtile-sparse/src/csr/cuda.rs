use std::sync::Arc;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::{need, need_product};

use super::{Csr, CsrKernels, Offsets};

static CSR: Program = Program { name: "csr", source: include_str!("csr.cu"), headers: &[] };
/// Rows of a block of threads, as the kernel has it.
const ROWS: u32 = 512;
/// Lanes of a row where rows are few, as the kernel has it, and up to how many for a multiprocessor that is.
const LANES: usize = 8;
const FEW: usize = 256;

type Apply<T, O> = (Write<T>, Read<O>, Read<u32>, Read<T>, Read<T>, u64, Structure);
type InverseDiagonal<T, O> = (Write<T>, Write<u64>, Read<O>, Read<u32>, Read<T>, u64);

fn program<T: Scalar, O: Element>(hook: &CudaHook<'_>) -> Specialisation {
    CSR.of::<T>().define("FEMTILE_OFFSET", O::C_NAME).header("hook.cuh", hook.source())
}

/// Returns the program of products with this hook, and of the diagonal, for fewer than 2³² non-zeros.
pub fn narrow_program<T: Scalar>(hook: &CudaHook<'_>) -> Specialisation {
    program::<T, u32>(hook)
}

/// The programs of this folder with a hook, for checks that compile all of them.
pub fn specialisations(hook: &CudaHook<'_>) -> Vec<Specialisation> {
    vec![
        program::<f32, u32>(hook),
        program::<f32, u64>(hook),
        program::<f64, u32>(hook),
        program::<f64, u64>(hook),
    ]
}

fn apply<T: Scalar, O: Element>(
    y: &mut Buffer<T, Cuda>,
    a: &Csr<T, Cuda>,
    offsets: &Buffer<O, Cuda>,
    x: &Buffer<T, Cuda>,
    hook: CudaHook<'_>,
) -> Result<(), LinalgError> {
    let program = program::<T, O>(&hook);
    let arguments = (
        y.write(),
        offsets.read(),
        a.columns.read(),
        a.values.read(),
        x.read(),
        a.n_rows as u64,
        hook.fields(),
    );
    let few = FEW * y.device().properties().n_multiprocessors;
    let (name, threads) =
        if a.n_rows <= few { ("csr_apply_few", LANES * a.n_rows) } else { ("csr_apply", a.n_rows) };
    let kernel = Kernel::<Apply<T, O>>::new(name);
    let launch = Launch::over(threads, ROWS);
    // SAFETY: the structure of the matrix was checked when it was made, and the lengths of x and y by the caller;
    // what the hook touches is its maker's promise, who knows the number of rows.
    Ok(unsafe { y.device().clone().launch(&program, &kernel, launch, arguments) }?)
}

fn inverse_diagonal<T: Scalar, O: Element>(
    d: &mut Buffer<T, Cuda>,
    bad: &mut Buffer<u64, Cuda>,
    a: &Csr<T, Cuda>,
    offsets: &Buffer<O, Cuda>,
) -> Result<(), LinalgError> {
    let program = program::<T, O>(&CudaHook::none());
    let arguments =
        (d.write(), bad.write(), offsets.read(), a.columns.read(), a.values.read(), a.n_rows as u64);
    let kernel = Kernel::<InverseDiagonal<T, O>>::new("csr_inverse_diagonal");
    let launch = Launch::over(a.n_rows, ROWS);
    // SAFETY: the structure of the matrix was checked when it was made, and d has an entry for each row.
    Ok(unsafe { d.device().clone().launch(&program, &kernel, launch, arguments) }?)
}

impl<T: Scalar> CsrKernels<T> for Cuda {
    fn csr_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Csr<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let hook = CudaHook::of(hook, [a.n_rows, a.n_cols])?;
        match a.offsets() {
            Offsets::Narrow(offsets) => apply(y, a, offsets, x, hook),
            Offsets::Wide(offsets) => apply(y, a, offsets, x, hook),
        }
    }

    fn csr_inverse_diagonal(&self, d: &mut Buffer<T, Self>, a: &Csr<T, Self>) -> Result<(), LinalgError> {
        need("d", a.n_rows, d.len())?;
        let mut bad = Buffer::from_host(self, &[u64::MAX])?;
        match a.offsets() {
            Offsets::Narrow(offsets) => inverse_diagonal(d, &mut bad, a, offsets)?,
            Offsets::Wide(offsets) => inverse_diagonal(d, &mut bad, a, offsets)?,
        }
        match usize::try_from(bad.to_host()?[0]) {
            Ok(row) if row < a.n_rows => {
                Err(LinalgError::Diagonal { row, value: d.to_host()?[row].to_f64() })
            }
            _ => Ok(()),
        }
    }
}

impl<T: Scalar> Csr<T, Cuda> {
    /// A matrix from arrays that kernels made; nothing is looked at but their lengths.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when the columns and values differ in number, or there is no offset.
    ///
    /// # Safety
    /// The offsets begin with 0, do not descend, and end with the number of values; columns are below `n_cols` and
    /// ascend strictly in a row.
    pub unsafe fn from_kernels(
        n_cols: usize,
        offsets: Buffer<u32, Cuda>,
        columns: Buffer<u32, Cuda>,
        values: Buffer<T, Cuda>,
    ) -> Result<Self, LinalgError> {
        need("values", columns.len(), values.len())?;
        need("offsets", 1, offsets.len().min(1))?;
        Ok(Self {
            n_rows: offsets.len() - 1,
            n_cols,
            offsets: Arc::new(Offsets::Narrow(offsets)),
            columns: Arc::new(columns),
            values,
        })
    }

    /// The same pattern's offsets with other columns and values, which kernels made.
    ///
    /// # Errors
    /// As [`Csr::from_kernels`].
    ///
    /// # Safety
    /// Columns are below the number of columns, and ascend strictly in a row.
    pub unsafe fn with_entries(
        self,
        columns: Buffer<u32, Cuda>,
        values: Buffer<T, Cuda>,
    ) -> Result<Self, LinalgError> {
        need("columns", self.columns.len(), columns.len())?;
        need("values", columns.len(), values.len())?;
        Ok(Self { columns: Arc::new(columns), values, ..self })
    }
}
