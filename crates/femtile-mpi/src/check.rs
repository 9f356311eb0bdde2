//! Whether ranks reach each other, and how fast.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use femtile_cli::Failure;
use femtile_comm::{Comm, Incoming, Outgoing};
use femtile_linalg::LinalgError;
use femtile_terminal::{check_target, tell};
use serde_json::json;

/// Bytes of the messages that are timed.
const SIZES: [usize; 3] = [8, 1 << 13, 1 << 20];
/// Rounds of a measurement.
const ROUNDS: usize = 200;

/// Checks sums and messages between all pairs, and measures both; the first rank tells the result.
pub fn run(comm: &Comm, json: Option<&Path>) -> Result<ExitCode, Failure> {
    if let Some(path) = json.filter(|_| comm.rank() == 0) {
        check_target("--json", path)?;
    }
    sums(comm)?;
    pairs(comm)?;
    let sum = seconds_of_sum(comm)?;
    let sizes = if comm.n_ranks() > 1 { &SIZES[..] } else { &[] };
    let messages = sizes.iter().map(|&n| Ok::<_, LinalgError>((n, seconds_of_message(comm, n)?)));
    let messages = messages.collect::<Result<Vec<_>, _>>()?;
    if comm.rank() > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "ranks     {}\nsum       {:.1} µs for one of 7 numbers over all ranks\n",
        comm.n_ranks(),
        1e6 * sum
    );
    for (n, seconds) in &messages {
        text += &format!(
            "message   {:.1} µs for {n} bytes to the next rank and from the last, {:.2} GB/s\n",
            1e6 * seconds,
            1e-9 * *n as f64 / seconds
        );
    }
    let of_message = |(n, seconds): &(usize, f64)| json!({ "bytes": n, "seconds": seconds });
    let record = json!({
        "ranks": comm.n_ranks(),
        "seconds_of_a_sum": sum,
        "messages": messages.iter().map(of_message).collect::<Vec<_>>(),
    });
    tell(json, false, &format!("{record:#}"), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// A rank that received something else than was sent.
fn wrong(rank: usize, what: &str) -> LinalgError {
    LinalgError::Rank { rank, message: format!("{what} did not arrive as it was sent") }
}

fn sums(comm: &Comm) -> Result<(), LinalgError> {
    let n = comm.n_ranks() as f64;
    let mut values = [1.0, comm.rank() as f64];
    comm.sum_values(&mut values)?;
    let gathered = comm.all_gather(&vec![comm.rank() as u64; comm.rank() % 3])?;
    let is_right = |(rank, found): (usize, &Vec<u64>)| *found == vec![rank as u64; rank % 3];
    if values != [n, 0.5 * n * (n - 1.0)] || !gathered.iter().enumerate().all(is_right) {
        return Err(wrong(comm.rank(), "a sum"));
    }
    Ok(())
}

/// Every rank sends a message of another length to every other.
fn pairs(comm: &Comm) -> Result<(), LinalgError> {
    let letter = |from: usize, to: usize| -> Vec<u32> {
        (0..(3 * from + to) as u32 % 1000)
            .map(|i| i.wrapping_mul(2_654_435_761) ^ (from * 65_536 + to) as u32)
            .collect()
    };
    let sends: Vec<Vec<u32>> = (0..comm.n_ranks()).map(|to| letter(comm.rank(), to)).collect();
    for (from, found) in comm.all_to_all(&sends)?.into_iter().enumerate() {
        if found != letter(from, comm.rank()) {
            return Err(wrong(from, "a message"));
        }
    }
    Ok(())
}

fn seconds_of_sum(comm: &Comm) -> Result<f64, LinalgError> {
    let mut values = [1.0; 7];
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        values.fill(1.0);
        comm.sum_values(&mut values)?;
    }
    Ok(begun.elapsed().as_secs_f64() / ROUNDS as f64)
}

/// Every rank sends to the next one at the same time.
fn seconds_of_message(comm: &Comm, n: usize) -> Result<f64, LinalgError> {
    let (rank, n_ranks) = (comm.rank(), comm.n_ranks());
    let (letter, mut room) = (vec![rank as u8; n], vec![0; n]);
    let (to, from) = ((rank + 1) % n_ranks, (rank + n_ranks - 1) % n_ranks);
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let mut incoming = [Incoming { from, bytes: &mut room }];
        comm.exchange(&[Outgoing { to, bytes: &letter }], &mut incoming, &mut || ())?;
    }
    Ok(begun.elapsed().as_secs_f64() / ROUNDS as f64)
}
