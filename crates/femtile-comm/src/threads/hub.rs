//! State shared by the ranks of a run: reductions, gathered messages, mailboxes, and the first failure.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use femtile_linalg::LinalgError;

/// How long a rank spins before it sleeps: most others arrive within the time of a wake-up.
const SPIN: Duration = Duration::from_micros(20);

pub(super) struct Hub {
    /// Whether there is a core for each rank, so that it may spin.
    has_cores: bool,
    meeting: Mutex<Meeting>,
    met: Condvar,
    /// Number of completed gathers, for ranks that spin.
    n_met: AtomicU64,
    boxes: Vec<LetterBox>,
    failure: OnceLock<(usize, String)>,
}

/// A gather: messages of all ranks for all ranks.
struct Meeting {
    number: u64,
    n_arrived: usize,
    messages: Vec<Vec<u8>>,
    /// The messages of the last completed gather.
    complete: Vec<Vec<u8>>,
}

/// The mailbox of one rank, by sender.
struct LetterBox {
    letters: Mutex<Vec<VecDeque<Vec<u8>>>>,
    arrived: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub fn new(n_ranks: usize) -> Self {
        let empty =
            || LetterBox { letters: Mutex::new(vec![VecDeque::new(); n_ranks]), arrived: Condvar::new() };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let messages = vec![Vec::new(); n_ranks];
        Self {
            has_cores: n_ranks <= cores,
            meeting: Mutex::new(Meeting { number: 0, n_arrived: 0, complete: messages.clone(), messages }),
            met: Condvar::new(),
            n_met: AtomicU64::new(0),
            boxes: (0..n_ranks).map(|_| empty()).collect(),
            failure: OnceLock::new(),
        }
    }

    pub fn n_ranks(&self) -> usize {
        self.boxes.len()
    }

    /// Records the failure of a rank, unless another one failed before, and wakes all waiting ranks.
    pub fn fail(&self, rank: usize, message: &str) {
        if self.failure.set((rank, message.into())).is_err() {
            return;
        }
        drop(lock(&self.meeting));
        self.met.notify_all();
        for letter_box in &self.boxes {
            drop(lock(&letter_box.letters));
            letter_box.arrived.notify_all();
        }
    }

    /// The rank that failed first, if one has.
    pub fn failed(&self) -> Option<usize> {
        self.failure.get().map(|(rank, _)| *rank)
    }

    fn check(&self) -> Result<(), LinalgError> {
        match self.failure.get() {
            Some((rank, message)) => Err(LinalgError::Rank { rank: *rank, message: message.clone() }),
            None => Ok(()),
        }
    }

    /// Posts a message; once those of all ranks have arrived, passes them to `take`.
    fn meet<R>(
        &self,
        rank: usize,
        message: &[u8],
        take: impl FnOnce(&[Vec<u8>]) -> R,
    ) -> Result<R, LinalgError> {
        self.check()?;
        let mut meeting = lock(&self.meeting);
        let number = meeting.number;
        meeting.messages[rank].clear();
        meeting.messages[rank].extend_from_slice(message);
        meeting.n_arrived += 1;
        if meeting.n_arrived == self.n_ranks() {
            let Meeting { messages, complete, .. } = &mut *meeting;
            std::mem::swap(messages, complete);
            (meeting.n_arrived, meeting.number) = (0, number + 1);
            self.n_met.store(number + 1, Ordering::Release);
            self.met.notify_all();
            return Ok(take(&meeting.complete));
        }
        if self.has_cores {
            drop(meeting);
            let begun = Instant::now();
            while self.n_met.load(Ordering::Acquire) == number && begun.elapsed() < SPIN {
                std::hint::spin_loop();
            }
            meeting = lock(&self.meeting);
        }
        while meeting.number == number {
            self.check()?;
            meeting = self.met.wait(meeting).unwrap_or_else(PoisonError::into_inner);
        }
        // The next gather cannot complete before this rank has arrived there.
        Ok(take(&meeting.complete))
    }

    /// Adds the values of all ranks, in the order of ranks.
    pub fn sum(&self, rank: usize, values: &mut [f64]) -> Result<(), LinalgError> {
        let add = |messages: &[Vec<u8>], sums: &mut [f64]| {
            sums.fill(0.0);
            for (rank, message) in messages.iter().enumerate() {
                if message.len() != size_of_val(sums) {
                    return Err(odd(rank, size_of_val(sums), message.len()));
                }
                for (sum, bytes) in sums.iter_mut().zip(message.chunks_exact(size_of::<f64>())) {
                    *sum += bytemuck::pod_read_unaligned::<f64>(bytes);
                }
            }
            Ok(())
        };
        let message = bytemuck::cast_slice(values).to_vec();
        self.meet(rank, &message, |messages| add(messages, values))?
    }

    pub fn all_gather(&self, rank: usize, message: &[u8]) -> Result<Vec<Vec<u8>>, LinalgError> {
        self.meet(rank, message, <[Vec<u8>]>::to_vec)
    }

    pub fn send(&self, from: usize, to: usize, bytes: &[u8]) {
        let letter_box = &self.boxes[to];
        lock(&letter_box.letters)[from].push_back(bytes.to_vec());
        letter_box.arrived.notify_all();
    }

    pub fn receive(&self, from: usize, to: usize, room: &mut [u8]) -> Result<(), LinalgError> {
        let letter_box = &self.boxes[to];
        let begun = Instant::now();
        let mut letters = lock(&letter_box.letters);
        let letter = loop {
            if let Some(letter) = letters[from].pop_front() {
                break letter;
            }
            self.check()?;
            if self.has_cores && begun.elapsed() < SPIN {
                drop(letters);
                std::hint::spin_loop();
                letters = lock(&letter_box.letters);
            } else {
                letters = letter_box.arrived.wait(letters).unwrap_or_else(PoisonError::into_inner);
            }
        };
        drop(letters);
        if letter.len() != room.len() {
            return Err(odd(from, room.len(), letter.len()));
        }
        room.copy_from_slice(&letter);
        Ok(())
    }
}

/// The error about a message of unexpected length.
fn odd(rank: usize, expected: usize, found: usize) -> LinalgError {
    LinalgError::Rank { rank, message: format!("sent {found} bytes where {expected} are needed") }
}
