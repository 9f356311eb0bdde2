//! A paced cell.

use femtile::device::{Buffer, Cpu};
use femtile_cardiac::ionic::{GatePrecision, Ionic, LocalScheme, Model, Points};

/// How a cell is paced.
#[derive(Debug, Clone, Copy)]
pub struct Pacing {
    pub scheme: LocalScheme,
    pub gates: GatePrecision,
    pub dt: f64,
    /// Rate of the voltage during the stimulus.
    pub stimulus: f64,
    pub duration: f64,
    pub cycle: f64,
    pub beats: usize,
}

/// Times and voltages of the last beat, from its stimulus on, and the cell at its end.
pub struct Beat {
    pub times: Vec<f64>,
    pub voltages: Vec<f64>,
    pub cell: Ionic<Cpu>,
}

/// Paces a cell from its initial state; `watch` sees it after each step.
pub fn pace(model: &Model, pacing: Pacing, mut watch: impl FnMut(&Ionic<Cpu>)) -> Beat {
    let cpu = Cpu::new(1).unwrap();
    let (scheme, gates) = (pacing.scheme, pacing.gates);
    let mut cell = Ionic::with_gates(&cpu, model, scheme, gates, Points::all(1)).unwrap();
    let mut v = Buffer::zeros(&cpu, 1).unwrap();
    cell.set_rest_voltage(&mut v).unwrap();
    let stimulus = Buffer::from_vec(&cpu, vec![pacing.stimulus]).unwrap();
    let steps = (pacing.cycle / pacing.dt).round() as usize;
    let stimulated = (pacing.duration / pacing.dt).round() as usize;
    let (mut times, mut voltages) = (Vec::new(), Vec::new());
    for beat in 0..pacing.beats {
        for step in 0..steps {
            if beat + 1 == pacing.beats {
                times.push(step as f64 * pacing.dt);
                voltages.push(v.as_slice()[0]);
            }
            cell.advance(&mut v, (step < stimulated).then_some(&stimulus), pacing.dt).unwrap();
            watch(&cell);
        }
    }
    cell.check(&v).unwrap();
    Beat { times, voltages, cell }
}

impl Beat {
    pub fn rest(&self) -> f64 {
        self.voltages[0]
    }

    pub fn peak(&self) -> f64 {
        self.voltages.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Time from the first to the last crossing of a voltage.
    pub fn above(&self, threshold: f64) -> f64 {
        let is_above: Vec<bool> = self.voltages.iter().map(|&v| v > threshold).collect();
        let first = is_above.iter().position(|&above| above).expect("an action potential");
        let last = is_above.iter().rposition(|&above| above).expect("an action potential");
        assert!(last + 1 < is_above.len(), "no return to rest");
        self.times[last] - self.times[first]
    }

    /// Duration to 90 % of repolarization.
    pub fn apd90(&self) -> f64 {
        self.above(self.peak() - 0.9 * (self.peak() - self.rest()))
    }
}
