//! The protocol under a scheduler that tries every order of its steps, up to a number of preemptions.
//!
//! The file of the protocol is compiled a second time, with `sync` of this folder instead of that of the
//! standard library: every operation on what threads share is a step before which another thread may
//! continue. Memory is sequentially consistent here.

// The file of the protocol itself, compiled with the synchronization of the model.
#[allow(clippy::duplicate_mod)]
#[path = "../protocol.rs"]
mod protocol;
mod scheduler;
mod sync;

use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::Team;
use scheduler::for_all_orders;

/// Jobs of teams of `size`, each of which must call every number once before it is over.
fn jobs_are_complete(size: usize, n_jobs: usize) {
    let team = Team::new(size).expect("threads");
    let calls: Vec<_> = (0..size).map(|_| AtomicUsize::new(0)).collect();
    for job in 1..=n_jobs {
        team.run(&|number| {
            calls[number].fetch_add(1, Ordering::Relaxed);
        });
        assert!(calls.iter().all(|n| n.load(Ordering::Relaxed) == job), "job {job} returned before its end");
    }
}

#[test]
fn no_order_of_steps_loses_a_wake_up_or_ends_a_job_early() {
    let of_two = for_all_orders(3, || jobs_are_complete(2, 2));
    let of_three = for_all_orders(1, || jobs_are_complete(3, 2));
    assert!(of_two > 1000 && of_three > 100, "{of_two} and {of_three} orders");
}

#[test]
fn a_job_from_inside_a_job_is_complete_in_every_order() {
    let n_orders = for_all_orders(3, || {
        let team = Team::new(2).expect("threads");
        let calls = AtomicUsize::new(0);
        team.run(&|_| {
            team.run(&|_| {
                calls.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(calls.load(Ordering::Relaxed), 4);
    });
    assert!(n_orders > 100, "{n_orders} orders");
}
