use std::time::Instant;

use femtile_device::{Buffer, Cuda};
use femtile_linalg::LinalgError;

use crate::{Comm, Halo, RankKernels, threads};

/// Values of the short and the long message.
const SHORT: usize = 16;
const LONG: usize = 1 << 22;
/// Messages that are timed of each, after three that are not.
const TIMES: [usize; 2] = [200, 20];

/// The costs of an exchange between two GPUs as ranks of one process make it, both ways at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkCosts {
    /// Whether each reads the memory of the other; values go through the host otherwise.
    pub has_peers: bool,
    /// Time of a short message, with the kernels that pack and read it.
    pub seconds: f64,
    /// Bytes of a long message each way over its time.
    pub bytes_per_second: f64,
}

/// Measures the exchange between two GPUs, or of one with itself.
///
/// # Errors
/// Errors of the devices.
pub fn measure_link(gpus: [&Cuda; 2]) -> Result<LinkCosts, LinalgError> {
    let of_rank = |comm: Comm| {
        let gpu = gpus[comm.rank()];
        let comm = comm.with_gpu(gpu)?;
        let [seconds, of_long] = [(SHORT, TIMES[0]), (LONG, TIMES[1])].map(|of| message(gpu, &comm, of));
        let bytes = (LONG * size_of::<f64>()) as f64;
        Ok(LinkCosts { has_peers: comm.has_peers(), seconds: seconds?, bytes_per_second: bytes / of_long? })
    };
    threads::run(2, of_rank, |comm| of_rank(comm).map(drop))
}

/// The time of a message of `n` values.
fn message(gpu: &Cuda, comm: &Comm, (n, times): (usize, usize)) -> Result<f64, LinalgError> {
    let other = 1 - comm.rank();
    let places = (0..n as u32).collect();
    let halo = Halo::of_known(comm, n, vec![(other, places)], &[(other, n)])?;
    let link = RankKernels::<f64>::link(gpu, &halo)?;
    let (owned, mut ghosts) = (Buffer::zeros(gpu, n)?, Buffer::zeros(gpu, n)?);
    let mut send = |times: usize| -> Result<(), LinalgError> {
        for _ in 0..times {
            gpu.import((&halo, &link), &mut ghosts, &owned, &mut || Ok(()))?;
        }
        // Both wait for the other: neither frees what is still read.
        comm.all_gather(&[0_u8])?;
        Ok(gpu.synchronize()?)
    };
    send(3)?;
    let begin = Instant::now();
    send(times)?;
    let seconds = begin.elapsed().as_secs_f64() / times as f64;
    comm.all_gather(&[0_u8])?;
    Ok(seconds)
}
