use femtile_device::{Buffer, Cpu};
use femtile_linalg::comm::Communicator;

use super::*;

/// Runs the same on all ranks; returns what each returns.
fn on_all<R: Send>(n: usize, work: impl Fn(Comm) -> Result<R, LinalgError> + Sync) -> Vec<R> {
    let results = std::sync::Mutex::new((0..n).map(|_| None).collect::<Vec<Option<R>>>());
    let keep = |comm: Comm| {
        let rank = comm.rank();
        let result = work(comm)?;
        results.lock().unwrap()[rank] = Some(result);
        Ok::<(), LinalgError>(())
    };
    run(n, keep, keep).unwrap();
    results.into_inner().unwrap().into_iter().map(Option::unwrap).collect()
}

#[test]
fn sums_have_the_same_bits_on_all_ranks() {
    for n in [1, 2, 3, 7] {
        let sums = on_all(n, |comm| {
            let mut all = Vec::new();
            for round in 0..200 {
                let mut values = [0.1 * (comm.rank() * 7 + round) as f64, 1.0];
                comm.sum_values(&mut values)?;
                all.push(values.map(f64::to_bits));
            }
            Ok(all)
        });
        assert!(sums.iter().all(|of_rank| *of_rank == sums[0]));
        assert_eq!(f64::from_bits(sums[0][5][1]), n as f64);
    }
}

#[test]
fn messages_go_while_a_sum_does() {
    for n in [1, 2, 5] {
        on_all(n, |comm| {
            let cpu = Cpu::new(1)?;
            for round in 0..50 {
                let mut values = Buffer::from_vec(&cpu, vec![comm.rank() as f64, f64::from(round)])?;
                let mut heard = Vec::new();
                Communicator::sum_during(&comm, &mut values, &mut || {
                    heard = comm.all_to_all(&vec![vec![comm.rank() as u64]; n])?;
                    Ok(())
                })?;
                assert_eq!(values.as_slice(), [(n * (n - 1) / 2) as f64, (n as f64) * f64::from(round)]);
                assert_eq!(heard, (0..n as u64).map(|rank| vec![rank]).collect::<Vec<_>>());
            }
            Ok(())
        });
    }
}

#[test]
fn messages_arrive_in_order_beside_work() {
    let n = 5;
    on_all(n, |comm| {
        let rank = comm.rank() as u8;
        for round in 0..100u8 {
            let letters: Vec<Vec<u8>> = (0..n as u8)
                .map(|to| vec![rank ^ round, to, round][..1 + to as usize % 3].to_vec())
                .collect();
            let to = |to: usize| Outgoing { to, bytes: &letters[to] };
            let sends: Vec<Outgoing<'_>> = (0..n).filter(|&to| to != comm.rank()).map(to).collect();
            let mut rooms = vec![vec![0xffu8; 1 + comm.rank() % 3]; n];
            let mut incoming: Vec<Incoming<'_>> = rooms
                .iter_mut()
                .enumerate()
                .filter(|(from, _)| *from != comm.rank())
                .map(|(from, bytes)| Incoming { from, bytes })
                .collect();
            let mut n_times = 0;
            comm.exchange(&sends, &mut incoming, &mut || n_times += 1)?;
            assert_eq!(n_times, 1);
            for (from, room) in rooms.iter().enumerate().filter(|(from, _)| *from != comm.rank()) {
                assert_eq!(room[..], [from as u8 ^ round, rank, round][..room.len()]);
            }
        }
        Ok(())
    });
}

#[test]
fn each_rank_gets_what_is_meant_for_it() {
    for n in [1, 2, 4] {
        on_all(n, |comm| {
            let rank = comm.rank();
            let sends: Vec<Vec<u32>> =
                (0..n).map(|to| vec![(10 * rank + to) as u32; (rank + to) % 3]).collect();
            for (from, found) in comm.all_to_all(&sends)?.into_iter().enumerate() {
                assert_eq!(found, vec![(10 * from + rank) as u32; (rank + from) % 3]);
            }
            Ok(())
        });
    }
}

#[test]
fn the_first_rank_gets_what_all_have() {
    for n in [1, 2, 5] {
        let of = |rank: usize| vec![rank as f64; rank % 3];
        let found = on_all(n, |comm| comm.gather(&of(comm.rank())));
        assert_eq!(found[0], (0..n).map(of).collect::<Vec<_>>());
        assert!(found[1..].iter().all(Vec::is_empty));
    }
}

#[test]
fn a_rank_that_fails_ends_the_others() {
    let failing = |comm: Comm| -> Result<(), LinalgError> {
        if comm.rank() == 2 {
            return Err(LinalgError::Setting { field: "test", message: "rank 2 gives up".into() });
        }
        loop {
            comm.sum_values(&mut [1.0])?;
        }
    };
    let error = run(3, failing, failing).unwrap_err();
    assert_eq!(error.to_string(), "test: rank 2 gives up");
    let waits_for_a_message = |comm: Comm| -> Result<(), LinalgError> {
        if comm.rank() == 0 {
            return Err(LinalgError::Setting { field: "test", message: "rank 0 gives up".into() });
        }
        let mut room = [0; 8];
        comm.exchange(&[], &mut [Incoming { from: 0, bytes: &mut room }], &mut || ())
    };
    let error = run(2, waits_for_a_message, waits_for_a_message).unwrap_err();
    assert_eq!(error.to_string(), "test: rank 0 gives up");
}

#[test]
fn a_rank_that_panics_ends_the_others_and_is_passed_on() {
    let work = |comm: Comm| -> Result<(), LinalgError> {
        assert!(comm.rank() != 1, "rank 1 panics");
        comm.sum_values(&mut [1.0])
    };
    let caught = std::panic::catch_unwind(|| run(3, work, work));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"rank 1 panics"));
}

#[test]
fn a_message_of_another_length_is_an_error_that_names_the_sender() {
    let work = |comm: Comm| -> Result<(), LinalgError> {
        let mut room = [0; 4];
        match comm.rank() {
            0 => comm.exchange(&[], &mut [Incoming { from: 1, bytes: &mut room }], &mut || ()),
            _ => comm.exchange(&[Outgoing { to: 0, bytes: &[1, 2, 3] }], &mut [], &mut || ()),
        }
    };
    let error = run(2, work, work).unwrap_err();
    assert_eq!(error.to_string(), "rank 1: sent 3 bytes where 4 are needed");
}

/// Threads with stacks that no memory holds are refused as those beyond a limit are; the standard library reads the size once,
/// so the test runs itself as a program of its own.
#[test]
fn a_thread_that_the_system_refuses_is_an_error_that_names_its_rank() {
    const SIZE: (&str, &str) = ("RUST_MIN_STACK", "1000000000000000");
    if std::env::var(SIZE.0).as_deref() != Ok(SIZE.1) {
        let name = "threads::tests::a_thread_that_the_system_refuses_is_an_error_that_names_its_rank";
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let output = program.args([name, "--exact"]).env(SIZE.0, SIZE.1).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let work = |comm: Comm| -> Result<(), LinalgError> { comm.sum_values(&mut [1.0]) };
    let error = run(3, work, work).unwrap_err().to_string();
    assert!(error.starts_with("rank 1: its thread cannot be started"), "{error}");
}
