use std::cell::OnceCell;

use femtile::device::cuda::{gpus, measure};
use femtile::device::{Cpu, Cuda, Device};

use super::{
    Absent, Figure, Quantity, Row, Settings, Table, fu2014, kronbichler2022, niederer2011, wong2015,
};
use femtile_bench::BenchError;

/// The devices of this machine, and what is measured once for several figures.
#[derive(Debug)]
pub struct Session {
    /// The settings.
    pub settings: Settings,
    pub(super) cpu: Cpu,
    pub(super) triad_gb_per_s: f64,
    pub(super) gpu: Option<Gpu>,
    pub(super) blocks: OnceCell<(Vec<Row>, Vec<Absent>)>,
    pub(super) wong2015: wong2015::Shared,
    pub(super) fu2014: fu2014::Shared,
    pub(super) kronbichler2022: kronbichler2022::Shared,
    pub(super) niederer2011: niederer2011::Shared,
}

/// A GPU and the rate at which it copies.
#[derive(Debug)]
pub(super) struct Gpu {
    pub device: Cuda,
    pub copy_gb_per_s: f64,
}

impl Session {
    /// Opens the devices and measures their bandwidth.
    ///
    /// # Errors
    /// When the threads cannot be started, or an existing GPU does not work.
    pub fn new(settings: Settings) -> Result<Self, BenchError> {
        let cpu = Cpu::new(settings.threads)?;
        let vector_bytes = if settings.small { 1 << 20 } else { 256 << 20 };
        let rates: Vec<_> = (0..3).map(|_| cpu.measure_bandwidth(vector_bytes)).collect::<Result<_, _>>()?;
        let triad_gb_per_s = rates.iter().map(|rate| rate.triad_gb_per_s).fold(0.0, f64::max);
        let found = settings.gpu && gpus().is_ok_and(|gpus| !gpus.is_empty());
        let gpu = if found {
            let device = Cuda::new(0)?;
            let copy_gb_per_s = 1e-9 * measure(&device)?.copy_bytes_per_second;
            Some(Gpu { device, copy_gb_per_s })
        } else {
            None
        };
        let (wong2015, fu2014) = (wong2015::Shared::default(), fu2014::Shared::default());
        let (blocks, kronbichler2022) = (OnceCell::new(), kronbichler2022::Shared::default());
        let niederer2011 = niederer2011::Shared::default();
        Ok(Self {
            settings,
            cpu,
            triad_gb_per_s,
            gpu,
            blocks,
            wong2015,
            fu2014,
            kronbichler2022,
            niederer2011,
        })
    }

    /// Returns a figure that is a table, without notes and claims.
    pub(super) fn figure(
        &self,
        paper: &'static str,
        (item, title, quantity, abscissa): (&'static str, &str, Quantity, &'static str),
        setting: String,
        table: Table,
    ) -> Figure {
        Figure {
            paper,
            item,
            title: title.into(),
            quantity,
            abscissa,
            setting,
            rows: Vec::new().into(),
            table: Some(table),
            notes: Vec::new(),
            claims: Vec::new(),
            absent: no_gpu(self).into_iter().collect(),
        }
    }

    /// The machine in one line.
    pub(super) fn machine(&self) -> String {
        let mut text = format!(
            "{} ({} threads, triad {:.1} GB/s)",
            femtile_terminal::processor(),
            self.cpu.threads(),
            self.triad_gb_per_s
        );
        if let Some(gpu) = &self.gpu {
            text += &format!("; {} (copy {:.0} GB/s)", gpu.device.description(), gpu.copy_gb_per_s);
        }
        text
    }
}

/// Returns the message for a missing GPU.
pub(super) fn no_gpu(session: &Session) -> Option<Absent> {
    session.gpu.is_none().then(|| Absent {
        peer: "GPU",
        reason: "there is none, or it was left out".into(),
        install: "run the command on a machine with an NVIDIA GPU",
    })
}

/// Returns the value of a cell, computed on first use.
pub(super) fn once<T>(
    cell: &OnceCell<T>,
    make: impl FnOnce() -> Result<T, BenchError>,
) -> Result<&T, BenchError> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}
