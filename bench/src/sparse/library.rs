use std::fs;
use std::path::Path;

use femtile::device::HostDevice;
use femtile::linalg::sparse::Csr;
use serde::Deserialize;

use super::{Timed, nominal_bytes, right_vector};
use crate::BenchError;
use crate::python::ask;

/// A vendor library of sparse products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Intel MKL, on a CPU.
    Mkl,
    /// NVIDIA cuSPARSE, on a GPU.
    Cusparse,
}

impl Peer {
    fn script(self) -> &'static str {
        match self {
            Self::Mkl => include_str!("../../peers/mkl_spmv.py"),
            Self::Cusparse => include_str!("../../peers/cusparse_spmv.py"),
        }
    }

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mkl => "MKL",
            Self::Cusparse => "cuSPARSE",
        }
    }

    /// Returns how to install it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Mkl => {
                "pip install mkl numpy, into the python3 of the path or the one that FEMTILE_PYTHON names"
            }
            Self::Cusparse => "pip install 'cupy-cuda13x[ctk]', or cupy-cuda12x[ctk] with an older driver",
        }
    }
}

/// Times of each algorithm of a library, for one matrix; the sums of its results agree with ours.
pub type PeerTimes = Vec<Timed>;

#[derive(Deserialize)]
struct Answer {
    matrices: Vec<Vec<Algorithm>>,
}

#[derive(Deserialize)]
struct Algorithm {
    algorithm: String,
    seconds_min: f64,
    seconds_median: f64,
    seconds_prepare: Option<f64>,
    sum: f64,
    sum_abs: f64,
}

/// Times the products of a library in a Python subprocess; returns the reason where the library cannot run.
///
/// # Errors
/// [`BenchError::Setting`] when the arrays cannot be written, or when the results differ from ours.
pub fn ask_peers<H: HostDevice>(
    peer: Peer,
    a: &Csr<f64, H>,
    threads: usize,
    repeats: usize,
) -> Result<Result<PeerTimes, String>, BenchError> {
    let failed = |error: std::io::Error| BenchError::Setting {
        field: "temporary folder",
        message: format!("{error}; set TMPDIR to a folder with free space"),
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    write_arrays(folder.path(), a).map_err(failed)?;
    let mut arguments = vec!["f64".into(), threads.to_string(), repeats.to_string()];
    arguments.push(folder.path().display().to_string());
    let threads = ("MKL_NUM_THREADS", threads.to_string());
    let answer: Answer = match ask(peer.script(), &arguments, &[threads]) {
        Ok(answer) => answer,
        Err(reason) => return Ok(Err(reason)),
    };
    let (sum, sum_abs) = sums(a);
    let mut times = Vec::new();
    for algorithm in answer.matrices.into_iter().flatten() {
        let error = (algorithm.sum - sum).abs().max((algorithm.sum_abs - sum_abs).abs());
        if error > 1e-9 * sum_abs.max(f64::MIN_POSITIVE) {
            let message = format!("{} gives a different product, with error {error:e}", algorithm.algorithm);
            return Err(BenchError::Setting { field: peer.name(), message });
        }
        times.push(Timed {
            format: format!("{} {}", peer.name(), algorithm.algorithm),
            seconds_median: algorithm.seconds_median,
            seconds_min: algorithm.seconds_min,
            padding: 1.0,
            bytes: nominal_bytes(a),
            seconds_built: algorithm.seconds_prepare.unwrap_or(0.0),
        });
    }
    Ok(Ok(times))
}

fn sums<H: HostDevice>(a: &Csr<f64, H>) -> (f64, f64) {
    let x = right_vector(a.n_cols());
    let y = (0..a.n_rows()).map(|row| a.row(row).map(|(column, value)| value * x[column]).sum::<f64>());
    y.fold((0.0, 0.0), |(sum, sum_abs), y| (sum + y, sum_abs + y.abs()))
}

fn write_arrays<H: HostDevice>(folder: &Path, a: &Csr<f64, H>) -> std::io::Result<()> {
    let offsets: Vec<u8> = a.offsets_as_u64().iter().flat_map(|&o| (o as u32).to_le_bytes()).collect();
    let columns: Vec<u8> = a.columns().as_slice().iter().flat_map(|column| column.to_le_bytes()).collect();
    let bytes_of =
        |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    fs::write(folder.join("offsets.u32"), offsets)?;
    fs::write(folder.join("columns.u32"), columns)?;
    fs::write(folder.join("values.f64"), bytes_of(a.values().as_slice()))?;
    fs::write(folder.join("x.f64"), bytes_of(&right_vector(a.n_cols())))
}
