//! Runs of a study side by side: threads take the next run as soon as they have ended one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use femtile_solve::{Progress, Stage};

use super::{Planned, Study, StudyRun};
use crate::{Case, CaseError};

/// The data that runs side by side share.
pub(super) struct Work<'a> {
    /// The folder of the study.
    pub folder: &'a Path,
    pub progress: &'a mut dyn Progress,
    /// Receives each run that has ended, with its number.
    pub add: &'a mut dyn FnMut(usize, StudyRun) -> Result<(), CaseError>,
}

/// Gives a case its share of the threads, at least one, and the CPU where it may choose: runs side by side would meet on one GPU. No
/// result depends on the number of threads. Each rank of a case has a thread at least.
pub(super) fn share(case: &mut Case, n_jobs: usize) {
    let solver = &mut case.file.solver;
    let all = match solver.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        given => given,
    };
    solver.threads = (all / n_jobs).max(1);
    if solver.device == "auto" {
        solver.device = "cpu".into();
    }
}

/// Runs all combinations, `n_jobs` at a time; returns whether the user has stopped them. An error ends all at their next iteration.
pub(super) fn run_all(
    study: &Study,
    planned: Vec<Planned>,
    n_jobs: usize,
    Work { folder, progress, add }: Work<'_>,
) -> Result<bool, CaseError> {
    // Every run hears a stop at its next iteration or stage.
    progress.begin(Stage::Solve);
    let (left, progress) = (Mutex::new(planned.into_iter().enumerate()), Mutex::new(progress));
    let is_over = AtomicBool::new(false);
    let (sender, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        for job in 0..n_jobs {
            let (sender, left, progress, is_over) = (sender.clone(), &left, &progress, &is_over);
            let work = move || {
                while !is_over.load(Ordering::Relaxed) {
                    let Some((number, plan)) = locked(left).next() else { return };
                    let run = study.run_one(plan, folder, &mut Beside { progress, is_over });
                    if !matches!(run, Ok(Some(_))) {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    if sender.send((number, run)).is_err() {
                        return;
                    }
                }
            };
            if let Err(source) = std::thread::Builder::new().spawn_scoped(scope, work) {
                // Those that have begun do the work.
                if job == 0 {
                    return Err(CaseError::Io { path: folder.into(), action: "start a run for", source });
                }
                break;
            }
        }
        drop(sender);
        let mut outcome = Ok(false);
        for (number, run) in ended {
            let kept = run.and_then(|run| run.map_or(Ok(true), |run| add(number, run).map(|()| false)));
            is_over.fetch_or(!matches!(kept, Ok(false)), Ordering::Relaxed);
            // The first error is the cause of what follows.
            outcome = match (outcome, kept) {
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                (Ok(one), Ok(other)) => Ok(one || other),
            };
        }
        outcome
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The progress of a run beside others: it passes on the stop of the user, and the end of the study by an error.
struct Beside<'a, 'b> {
    progress: &'a Mutex<&'b mut dyn Progress>,
    is_over: &'a AtomicBool,
}

impl Progress for Beside<'_, '_> {
    fn is_interrupted(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || locked(self.progress).is_interrupted()
    }
}
