//! Conjugate gradients with algebraic multigrid to 1e-8: set-up and solve, each on its own, ours and those of others.
//!
//! Bytes of an iteration: the product in f64 and ten values a row, as for `cg` without its diagonal; the products of a
//! cycle with all its matrices in f32, and 27 values in f32 a row of each level. Of others nothing is known and nothing is
//! counted.

use femtile::amg::AmgConfig;
use femtile::device::cuda::{gpus, measure};
use femtile::device::{Cpu, Cuda, Device};
use femtile::linalg::sparse::Csr;

use super::between_bandwidths;
use crate::Samples;
use crate::multigrid::{PeerSolves, Peers, Preconditioning, SolveDevice, Solves, TOLERANCE};
use crate::problems::{Elliptic, EllipticSystem};
use crate::{BenchError, Options, Record, Work};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let problem = options.problem.unwrap_or(Elliptic::Box);
    let nodes = options.nodes(problem.default_nodes())?;
    let mut peers = if options.peers { Some(Peers::new()?) } else { None };
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        for system in problem.systems(&cpu, nodes)? {
            records.extend(on_cpu(&cpu, system, peers.as_mut(), options)?);
        }
    }
    for absent in peers.iter().flat_map(|peers| &peers.absent) {
        crate::skipped(format_args!("{}: {}; {}", absent.peer, absent.reason, absent.install));
    }
    if gpus().is_ok_and(|gpus| !gpus.is_empty()) {
        let device = Cuda::new(0)?;
        device.overflow_to_host(usize::MAX);
        for system in problem.systems(&device, nodes)? {
            records.extend(on_gpu(&device, system, options)?);
        }
    }
    records.iter_mut().for_each(|record| record.set("nodes", nodes));
    Ok(records)
}

fn on_cpu(
    cpu: &Cpu,
    system: EllipticSystem<Cpu>,
    mut peers: Option<&mut Peers>,
    options: &Options,
) -> Result<Vec<Record>, BenchError> {
    let EllipticSystem { name, mut a, b } = system;
    let how = Preconditioning::Amg(AmgConfig::default());
    if let Some(peers) = &peers {
        peers.take(&a, &b)?;
    }
    let repeats = options.repeats(9).div_ceil(super::ROUNDS);
    let (mut ours, mut theirs) = (Solves::default(), Vec::new());
    let bandwidth = between_bandwidths(cpu, || {
        ours.run((&mut a, &b), &how, repeats)?;
        if let Some(peers) = &mut peers {
            join(&mut theirs, peers.solve(cpu.threads(), repeats));
        }
        Ok(())
    })?;
    let mut records = records(cpu, &name, &a, &ours, ("read bandwidth", bandwidth.read_gb_per_s));
    if let Some(best) = theirs.iter().min_by(|a, b| a.seconds().total_cmp(&b.seconds())) {
        let seconds = ours.setup.median() + ours.solve.median();
        records[1].set("best_peer", best.name());
        records[1].set("best_peer_seconds_over_ours_median", best.seconds() / seconds);
    }
    records.iter_mut().for_each(|record| record.set("threads", cpu.threads()));
    for peer in &theirs {
        records.extend(records_of_peer(cpu, &name, peer));
    }
    Ok(records)
}

fn on_gpu(device: &Cuda, system: EllipticSystem<Cuda>, options: &Options) -> Result<Vec<Record>, BenchError> {
    let EllipticSystem { name, mut a, b } = system;
    let mut ours = Solves::default();
    ours.run((&mut a, &b), &Preconditioning::Amg(AmgConfig::default()), options.repeats(9))?;
    let bound = ("copy bandwidth", 1e-9 * measure(device)?.copy_bytes_per_second);
    let used = device.memory_use().unwrap_or_default();
    let mut records = records(device, &name, &a, &ours, bound);
    for record in &mut records {
        record.set("gpu_limit_gb", 1e-9 * device.memory_limit() as f64);
        record.set("gpu_peak_gb", 1e-9 * used.device_peak as f64);
        record.set("host_peak_gb", 1e-9 * used.host_peak as f64);
    }
    Ok(records)
}

fn records<D: SolveDevice>(
    device: &D,
    name: &str,
    a: &Csr<f64, D>,
    ours: &Solves,
    bound: (&str, f64),
) -> Vec<Record> {
    let record = |problem: String, samples: &Samples, work: Work| {
        let mut record = Record::against_bandwidth(&problem, device, samples, work, bound);
        record.set("iterations", ours.iterations);
        record.set("tolerance", TOLERANCE);
        record.set("operator_complexity", ours.operator_complexity);
        record
    };
    let n = a.n_rows() as f64;
    let [bytes, flops] = ours.cycle;
    let bytes = a.product_bytes() as f64 + 80.0 * n + bytes;
    let flops = 2.0 * a.n_nonzeros() as f64 + 14.0 * n + flops;
    let n_iterations = ours.iterations as f64;
    let work = Work { bytes: n_iterations * bytes, flops: n_iterations * flops };
    let read_once = Work { bytes: a.product_bytes() as f64, flops: 0.0 };
    vec![
        record(format!("amg set-up, {name}"), &ours.setup, read_once),
        record(format!("amg-cg solve, {name}"), &ours.solve, work),
    ]
}

/// Adds what a further round has measured.
fn join(all: &mut Vec<PeerSolves>, more: Vec<PeerSolves>) {
    for solves in more {
        match all.iter_mut().find(|known| known.name() == solves.name()) {
            Some(known) => {
                known.seconds_setup.extend(solves.seconds_setup);
                known.seconds_solve.extend(solves.seconds_solve);
            }
            None => all.push(solves),
        }
    }
}

fn records_of_peer(cpu: &Cpu, name: &str, peer: &PeerSolves) -> [Record; 2] {
    let record = |problem: String, samples: Samples| {
        let mut record = Record::of_peer(&problem, cpu, &peer.library, &samples);
        record.set("iterations", peer.iterations);
        record.set("tolerance", TOLERANCE);
        record.set("operator_complexity", peer.operator_complexity);
        record
    };
    [
        record(format!("amg set-up, {name}, {}", peer.name()), peer.setup()),
        record(format!("amg-cg solve, {name}, {}", peer.name()), peer.solve()),
    ]
}
