//! `femtile tridiagonal --check`.

use std::process::ExitCode;

use femtile::device::Scalar;
use femtile::tridiagonal::{BatchLayout, Ends, check};
use serde_json::json;

use super::batch::{Batch, Form, tuple};
use super::input::Input;
use super::memory::Estimate;
use crate::arguments::TridiagonalOptions;
use crate::failure::Failure;
use femtile_terminal::{tell, to_json};

/// Reports how dominant the diagonals are; exit code 1 where rows are not.
pub fn run<T: Scalar>(options: &TridiagonalOptions, ends: Ends, input: Input) -> Result<ExitCode, Failure> {
    let form = Form::new(&input.announced, options.axis)?;
    let axis = form.axis;
    Estimate::new(&form, &input.announced, size_of::<T>()).check()?;
    let batch = Batch::<T>::new(form, input.read()?)?;
    let layout = BatchLayout::with_strides(&batch.shape, &batch.strides)?;
    let [lower, diagonal, upper] = &batch.bands;
    let found = check(&layout, &batch.band_strides, axis, ends, [lower, diagonal, upper])?;
    let warnings = batch.non_finite(axis, ends == Ends::Open);
    let report = json!({
        "precision": T::NAME,
        "shape": batch.shape,
        "axis": axis,
        "is_dominant": found.is_dominant(),
        "n_rows": found.n_rows,
        "n_weak": found.n_weak,
        "least_margin": found.least_margin,
        "weakest": found.weakest,
        "warnings": warnings,
    });
    let mut text = format!("systems   along axis {axis} of {}, {}\n", tuple(&batch.shape), T::NAME);
    text += &format!("dominance {found}\n");
    for warning in warnings {
        text += &format!("warning   {warning}\n");
    }
    tell(options.json.as_deref(), options.quiet, &to_json(&report)?, &text)?;
    Ok(ExitCode::from(u8::from(!found.is_dominant())))
}
