//! Progress on a terminal: a bar for every stage that takes longer than a second.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use femtile::case::{Progress, Stage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const STEPS: u64 = 1000;

/// Shows how a case goes on, and hears Ctrl-C.
pub struct Bars {
    shown: bool,
    interrupted: Arc<AtomicBool>,
    stage: Option<Stage>,
    begun: Instant,
    bar: Option<ProgressBar>,
    first_residual: f64,
}

impl Bars {
    /// Bars on standard error if that is a terminal and `quiet` is not asked for.
    pub fn new(quiet: bool, interrupted: Arc<AtomicBool>) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        Self { shown, interrupted, stage: None, begun: Instant::now(), bar: None, first_residual: 1.0 }
    }

    /// Removes what is shown.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn show(&mut self, fraction: f64, message: impl FnOnce() -> String) {
        if !self.shown || self.begun.elapsed() < PATIENCE {
            return;
        }
        let label = self.stage.map_or("", Stage::label);
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(10));
            let template = "{prefix:>20} [{bar:32}] {elapsed} {msg}";
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.with_style(style.progress_chars("=> ")).with_prefix(label)
        });
        bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        bar.set_message(message());
    }
}

impl Progress for Bars {
    fn begin(&mut self, stage: Stage) {
        self.clear();
        self.stage = Some(stage);
        self.begun = Instant::now();
    }

    fn fraction(&mut self, fraction: f64) {
        self.show(fraction, String::new);
    }

    fn iteration(&mut self, iteration: usize, relative_residual: f64, tolerance: f64) {
        if iteration == 0 {
            self.first_residual = relative_residual;
        }
        // On a logarithmic scale a method that converges evenly moves the bar evenly.
        let all = (self.first_residual / tolerance).ln();
        let done = (self.first_residual / relative_residual).ln();
        self.show(done / all, || format!("iteration {iteration}, residual {relative_residual:.1e}"));
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
