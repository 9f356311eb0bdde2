use femtile_case::Progress;

/// Asks for a stop once a time is reached.
pub struct StopAt(f64, bool);

impl StopAt {
    pub fn new(time: f64) -> Self {
        Self(time, false)
    }
}

impl Progress for StopAt {
    fn time(&mut self, time: f64, _: f64) {
        self.1 |= time >= self.0;
    }

    fn is_interrupted(&self) -> bool {
        self.1
    }
}
