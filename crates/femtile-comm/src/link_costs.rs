use std::time::Instant;

use femtile_device::{Buffer, Cuda};
use femtile_linalg::LinalgError;

use crate::{Comm, Halo, RankKernels, threads};

/// Numbers of values in the short and the long message.
const SHORT: usize = 16;
const LONG: usize = 1 << 22;
/// Numbers of short and long messages that are timed, after three warm-up messages.
const TIMES: [usize; 2] = [200, 20];

/// Latency and bandwidth of a halo exchange, in both directions at once, between two GPUs that are ranks of
/// one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkCosts {
    /// Whether the GPUs have peer access; otherwise values go through the host.
    pub has_peers: bool,
    /// Time of a short message, including the kernels that pack and read it.
    pub seconds: f64,
    /// Bytes of a long message in each direction over its time.
    pub bytes_per_second: f64,
}

/// Measures the exchange between two GPUs, or of one GPU with itself.
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
        // Both ranks wait, so that neither frees a buffer that is still read.
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
