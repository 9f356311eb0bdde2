//! Ctrl-C and SIGTERM; the signal of a file that is too large.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use femtile_case::{CaseError, Stage};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use crate::failure::{Failure, INTERRUPTED};

/// Interval between checks for an interrupt.
const TICK: Duration = Duration::from_millis(50);
/// Grace period of a stage that reacts to an interrupt only at its end.
const PATIENCE: Duration = Duration::from_millis(600);

/// Hears the signal of a file that grows beyond the limit of its size, which else ends the program at once: the write then
/// fails with a message, and what was begun is removed.
pub fn hear_size_limit() -> Result<(), Failure> {
    flag::register(SIGXFSZ, Arc::default())
        .map(drop)
        .map_err(|error| Failure::message(format!("cannot hear the limit of the size of files: {error}")))
}

/// Hears when the user asks for a stop.
///
/// A solve stops by itself at its next iteration and keeps what there is. Every other stage is given a moment; then the
/// program ends, which leaves earlier results as they are, for files take their names only when all are complete.
#[derive(Clone)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    stage: Arc<Mutex<Stage>>,
    /// Whether nothing is said of it: the ranks of a run are also signalled when one of them has failed, which tells why.
    is_silent: bool,
}

impl Interrupt {
    /// Listens from now on; the second signal ends the program at once.
    pub fn listen() -> Result<Self, Failure> {
        Self::listen_as(false)
    }

    /// As [`Interrupt::listen`], and says nothing at the end of the program where it is silent.
    pub fn listen_as(is_silent: bool) -> Result<Self, Failure> {
        let interrupt = Self { raised: Arc::default(), stage: Arc::new(Mutex::new(Stage::Read)), is_silent };
        for signal in [SIGINT, SIGTERM] {
            // In this order: only the second signal finds the flag raised.
            let raised = || interrupt.raised.clone();
            flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), raised())
                .and_then(|_| flag::register(signal, raised()))
                .map_err(|error| Failure::message(format!("cannot listen to Ctrl-C: {error}")))?;
        }
        let watched = interrupt.clone();
        std::thread::Builder::new()
            .spawn(move || watched.end_stages_that_do_not_hear())
            .map_err(|error| Failure::message(format!("cannot start a thread that hears Ctrl-C: {error}")))?;
        Ok(interrupt)
    }

    /// Returns `true` after the user has interrupted the program.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Says what is being done from now on; what follows a stage in which the user asked for a stop counts to it.
    pub fn begin(&self, stage: Stage) {
        if !self.is_raised() {
            *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        }
    }

    fn stage(&self) -> Stage {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_stages_that_do_not_hear(&self) {
        while !self.is_raised() {
            std::thread::sleep(TICK);
        }
        let stage = self.stage();
        if stage != Stage::Solve {
            std::thread::sleep(PATIENCE);
            if !self.is_silent {
                Failure::from(CaseError::Interrupted { stage }).report();
            }
            // Without what is done at an ordinary end: other threads are at work.
            low_level::exit(i32::from(INTERRUPTED));
        }
    }
}
