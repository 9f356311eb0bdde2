use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::Team;

#[test]
fn every_number_is_called_once_a_job() {
    for size in [1, 2, 3, 5] {
        let team = Team::new(size).expect("threads");
        let calls: Vec<_> = (0..size).map(|_| AtomicUsize::new(0)).collect();
        for job in 1..=500 {
            team.run(&|number| {
                calls[number].fetch_add(1, Ordering::Relaxed);
            });
            assert!(calls.iter().all(|n| n.load(Ordering::Relaxed) == job));
            if job % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn a_call_from_inside_a_job_still_calls_every_number() {
    let team = Team::new(3).expect("threads");
    let calls = AtomicUsize::new(0);
    team.run(&|_| {
        team.run(&|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(calls.load(Ordering::Relaxed), 9);
}

#[test]
fn a_panic_of_a_member_reaches_the_caller_and_the_team_lives_on() {
    let team = Team::new(2).expect("threads");
    for number in 0..2 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            team.run(&|i| assert!(i != number, "number {i} fails"));
        }));
        assert!(result.is_err());
        let calls = AtomicUsize::new(0);
        team.run(&|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
