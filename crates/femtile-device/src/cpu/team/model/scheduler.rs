//! One thread at a time runs its next step; which thread is a choice, and all choices are tried.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Steps of a run, at most: those of a protocol that ends are far fewer.
const MOST_STEPS: usize = 10_000;

/// The condition that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    /// Until another thread has made a step.
    GivesWay,
    /// Until somebody wakes it.
    Parked,
    /// Until that thread has ended.
    Joins(usize),
    Ended,
}

/// A choice between threads: their number and the one chosen.
#[derive(Debug, Clone, Copy)]
struct Choice {
    taken: usize,
    of: usize,
}

#[derive(Debug, Default)]
struct Run {
    states: Vec<State>,
    /// Who was woken before it parked.
    tokens: Vec<bool>,
    active: usize,
    choices: Vec<Choice>,
    n_chosen: usize,
    preemptions_left: usize,
}

/// The threads of one run.
#[derive(Debug)]
pub struct Scheduler {
    run: Mutex<Run>,
    changed: Condvar,
}

thread_local! {
    static CURRENT: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

/// The scheduler of this thread, and its number.
pub fn current() -> (Arc<Scheduler>, usize) {
    CURRENT.with_borrow(|current| current.clone()).expect("a thread of a model")
}

/// Before a step: others may continue first.
pub fn step() {
    let (scheduler, me) = current();
    scheduler.wait(me, State::Ready);
}

impl Scheduler {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues when it is this thread's turn again.
    pub fn wait(&self, me: usize, state: State) {
        let mut run = self.run();
        run.states[me] = state;
        run.choose(me);
        self.changed.notify_all();
        self.until_active(run, me);
    }

    fn until_active(&self, mut run: MutexGuard<'_, Run>, me: usize) {
        while run.active != me {
            run = self.changed.wait(run).unwrap_or_else(PoisonError::into_inner);
        }
        run.states[me] = State::Ready;
    }

    /// Sleeps unless somebody has woken this thread before.
    pub fn park(&self, me: usize) {
        if !std::mem::take(&mut self.run().tokens[me]) {
            self.wait(me, State::Parked);
            self.run().tokens[me] = false;
        }
    }

    pub fn unpark(&self, thread: usize) {
        let mut run = self.run();
        run.tokens[thread] = true;
        if run.states[thread] == State::Parked {
            run.states[thread] = State::Ready;
        }
    }

    /// Starts a thread; it may continue from the next step of any other.
    pub fn spawn(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) -> usize {
        let mut run = self.run();
        let number = run.states.len();
        run.states.push(State::Ready);
        run.tokens.push(false);
        drop(run);
        let scheduler = self.clone();
        std::thread::spawn(move || {
            CURRENT.set(Some((scheduler.clone(), number)));
            scheduler.until_active(scheduler.run(), number);
            work();
            let mut run = scheduler.run();
            run.states[number] = State::Ended;
            run.choose(number);
            scheduler.changed.notify_all();
        });
        number
    }
}

impl Run {
    /// Chooses which thread continues after a step of `me`.
    fn choose(&mut self, me: usize) {
        let is_ready = |(thread, state): (usize, &State)| match state {
            State::Ready => Some(thread),
            State::Joins(other) => (self.states[*other] == State::Ended).then_some(thread),
            _ => None,
        };
        let mut ready: Vec<usize> = self.states.iter().enumerate().filter_map(is_ready).collect();
        if ready.is_empty() {
            ready = self.given_way(me);
        }
        if ready.contains(&me) {
            // To continue without a change comes first, and is all there is once no preemption is left.
            ready.retain(|&thread| thread != me && self.preemptions_left > 0);
            ready.insert(0, me);
        }
        let taken = self.decide(ready.len());
        self.active = ready[taken];
        if self.active != me {
            self.preemptions_left -= usize::from(ready[0] == me);
            let given_way = self.states.iter_mut().filter(|state| **state == State::GivesWay);
            given_way.for_each(|state| *state = State::Ready);
        }
    }

    /// Returns threads that yielded, if no other can run. A wake-up is lost if this is `me` alone, or no
    /// thread.
    fn given_way(&self, me: usize) -> Vec<usize> {
        let gives_way = |thread: &usize| *thread != me && self.states[*thread] == State::GivesWay;
        let found: Vec<usize> = (0..self.states.len()).filter(gives_way).collect();
        if found.is_empty() && self.states.iter().any(|state| *state != State::Ended) {
            eprintln!("nobody can go on: {:?} after {:?}", self.states, self.choices);
            std::process::abort();
        }
        if found.is_empty() { vec![me] } else { found }
    }

    fn decide(&mut self, of: usize) -> usize {
        if self.n_chosen == MOST_STEPS {
            eprintln!("threads wait for each other without an end: {:?}", self.states);
            std::process::abort();
        }
        if self.n_chosen == self.choices.len() {
            self.choices.push(Choice { taken: 0, of });
        }
        let choice = self.choices[self.n_chosen];
        assert_eq!(choice.of, of, "a run is the same for the same choices");
        self.n_chosen += 1;
        choice.taken
    }
}

/// Runs `work` in every order of the steps of its threads with a bounded number of preemptions; returns the number of orders.
pub fn for_all_orders(n_preemptions: usize, work: impl Fn()) -> usize {
    let (mut choices, mut n_orders) = (Vec::new(), 0);
    loop {
        let run = Run {
            states: vec![State::Ready],
            tokens: vec![false],
            choices: std::mem::take(&mut choices),
            preemptions_left: n_preemptions,
            ..Run::default()
        };
        let scheduler = Arc::new(Scheduler { run: Mutex::new(run), changed: Condvar::new() });
        CURRENT.set(Some((scheduler.clone(), 0)));
        work();
        CURRENT.set(None);
        n_orders += 1;
        choices = std::mem::take(&mut scheduler.run().choices);
        while choices.last().is_some_and(|choice| choice.taken + 1 == choice.of) {
            choices.pop();
        }
        match choices.last_mut() {
            Some(choice) => choice.taken += 1,
            None => return n_orders,
        }
    }
}
