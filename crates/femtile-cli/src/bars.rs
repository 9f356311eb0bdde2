//! Progress on a terminal: a bar for every stage that takes longer than a second.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use femtile_case::{Progress, Stage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt::Interrupt;

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval between redraws.
const TICK: Duration = Duration::from_millis(100);
const STEPS: u64 = 1000;

/// Shows how work goes on, also while it says nothing, and hears Ctrl-C.
pub struct Bars {
    shown: Option<Arc<Mutex<Shown>>>,
    interrupt: Interrupt,
    first_residual: f64,
}

/// State drawn by a separate thread, so that progress shows during long stages.
struct Shown {
    label: &'static str,
    begun: Instant,
    fraction: Option<f64>,
    message: String,
    bar: Option<ProgressBar>,
    over: bool,
}

impl Bars {
    /// Bars on standard error if that is a terminal and `quiet` is not asked for.
    pub fn new(quiet: bool, interrupt: Interrupt) -> Self {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        // Without a thread that draws them there are no bars, which nothing else depends on.
        let shown = if is_shown { draw_in_the_background().ok() } else { None };
        Self { shown, interrupt, first_residual: 1.0 }
    }

    /// Shows `label` from now on, once it has taken longer than a second.
    pub fn label(&mut self, label: &'static str) {
        self.change(|shown| {
            shown.clear();
            (shown.label, shown.begun, shown.fraction) = (label, Instant::now(), None);
            shown.message.clear();
        });
    }

    fn change(&self, change: impl FnOnce(&mut Shown)) {
        if let Some(shown) = &self.shown {
            change(&mut shown.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.change(|shown| {
            shown.clear();
            shown.over = true;
        });
    }
}

fn draw_in_the_background() -> std::io::Result<Arc<Mutex<Shown>>> {
    let (begun, message) = (Instant::now(), String::new());
    let shown = Shown { label: "", begun, fraction: None, message, bar: None, over: false };
    let shown = Arc::new(Mutex::new(shown));
    let drawn = shown.clone();
    std::thread::Builder::new().spawn(move || {
        loop {
            std::thread::sleep(TICK);
            let mut shown = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            if shown.over {
                return;
            }
            shown.draw();
        }
    })?;
    Ok(shown)
}

impl Shown {
    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn draw(&mut self) {
        if self.label.is_empty() || self.begun.elapsed() < PATIENCE {
            return;
        }
        let (label, measured) = (self.label, self.fraction.is_some());
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
            let template = if measured {
                "{prefix:>20} [{bar:32}] {elapsed} {msg}"
            } else {
                "{prefix:>20} {spinner} {elapsed} {msg}"
            };
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.with_style(style.progress_chars("=> ")).with_prefix(label)
        });
        if let Some(fraction) = self.fraction {
            bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
        bar.set_message(self.message.clone());
        bar.tick();
    }
}

impl Progress for Bars {
    fn begin(&mut self, stage: Stage) {
        self.interrupt.begin(stage);
        self.label(stage.label());
    }

    fn fraction(&mut self, fraction: f64) {
        self.change(|shown| {
            // A bar replaces the spinner once the fraction is available.
            if shown.fraction.is_none() {
                shown.clear();
            }
            shown.fraction = Some(fraction);
        });
    }

    fn iteration(&mut self, iteration: usize, relative_residual: f64, tolerance: f64) {
        if iteration == 0 {
            self.first_residual = relative_residual;
        }
        // On a logarithmic scale a method that converges evenly moves the bar evenly.
        let all = (self.first_residual / tolerance).ln();
        let done = (self.first_residual / relative_residual).ln();
        self.fraction(done / all);
        self.change(|shown| {
            shown.message = format!("iteration {iteration}, residual {relative_residual:.1e}")
        });
    }

    fn time(&mut self, time: f64, end: f64) {
        self.change(|shown| {
            let fraction = shown.fraction.unwrap_or(0.0).max(1e-6);
            let left = shown.begun.elapsed().as_secs_f64() * (1.0 - fraction) / fraction;
            shown.message = format!("t = {time:.4} of {end}, {left:.0} s left");
        });
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_raised()
    }
}
