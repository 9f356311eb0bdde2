//! Multigrid by plain aggregation, on the processor for vectors of any device.

use femtile_amg::{AggregationAmg, AggregationConfig, AmgError};
use femtile_device::{Buffer, Cpu, Device};
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_sparse::csr::Csr;

use crate::preconditioner::Level;

/// Multigrid of a matrix that is not symmetric, by [`AggregationAmg`].
///
/// Residuals of a GPU are brought to the processor and corrections back: 16 bytes of a row over the bus, beside about 2,000 that
/// the processor moves.
pub(crate) struct HostAggregation {
    amg: AggregationAmg,
    cpu: Cpu,
}

impl HostAggregation {
    pub fn new(matrix: &Csr<f64, Cpu>) -> Result<Self, AmgError> {
        let amg = AggregationAmg::new(matrix, &AggregationConfig::default())?;
        Ok(Self { amg, cpu: matrix.values().device().clone() })
    }

    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    pub fn levels(&self) -> Vec<Level> {
        let level = |shape: &femtile_amg::LevelShape| Level {
            n_rows: shape.n_rows,
            n_nonzeros: Some(shape.n_nonzeros),
            n_patches: None,
            format: None,
        };
        self.amg.shapes().iter().map(level).collect()
    }
}

impl<D: Device> Preconditioner<f64, D> for HostAggregation {
    fn apply(&self, z: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        let r = Buffer::from_host(&self.cpu, &r.host_view()?)?;
        let mut found = Buffer::zeros(&self.cpu, z.len())?;
        self.amg.apply(&mut found, &r)?;
        Ok(z.upload(found.as_slice())?)
    }

    fn is_fixed(&self) -> bool {
        self.amg.is_fixed()
    }
}
