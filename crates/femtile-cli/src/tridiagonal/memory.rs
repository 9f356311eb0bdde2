//! Memory that a batch takes, known from the headers of its files.

use femtile::device::host_memory_bytes;

use super::batch::Form;
use crate::arrays::Announced;
use crate::failure::Failure;

/// Bytes that a run holds, stage by stage.
pub struct Estimate {
    /// While arrays are brought into the order and precision of the solve.
    reading: f64,
    arrays: f64,
    /// Workspace of the solver.
    work: f64,
    /// The solution while it is written.
    results: f64,
}

impl Estimate {
    /// Memory of the arrays, `size` bytes per entry; no workspace.
    pub fn new(form: &Form, announced: &[Announced; 4], size: usize) -> Self {
        let [arrays, reading] = form.bytes(announced, size);
        Self { reading, arrays, work: 0.0, results: 0.0 }
    }

    /// Adds a solve with `work` bytes, along an axis of this length.
    pub fn with_solve(self, form: &Form, size: usize, work: u64, length: usize) -> Self {
        let n_entries: f64 = form.shape.iter().map(|&n| n as f64).product();
        // Each system has a failure flag.
        let results = n_entries * size as f64 + n_entries / length.max(1) as f64;
        Self { work: work as f64, results, ..self }
    }

    fn total(&self) -> f64 {
        self.reading.max(self.arrays + self.work + self.results)
    }

    /// Refuses what this machine has no memory for.
    pub fn check(&self) -> Result<(), Failure> {
        self.excess(host_memory_bytes()).map_or(Ok(()), |message| Err(Failure::message(message)))
    }

    fn excess(&self, limit: Option<u64>) -> Option<String> {
        let limit = limit.map(|bytes| bytes as f64).filter(|limit| self.total() > *limit)?;
        let gigabytes = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
        Some(format!(
            "about {} of memory would be needed (arrays {}, {} while they are read; work of the solve {}; solution {}), \
             and the limit of this machine or its control group is {}: take part of the systems, a file after the other; \
             where the solve takes most, fewer --threads take less",
            gigabytes(self.total()),
            gigabytes(self.arrays),
            gigabytes(self.reading),
            gigabytes(self.work),
            gigabytes(self.results),
            gigabytes(limit),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_refused_beyond_the_limit_and_taken_up_to_it() {
        let announced = [0; 4].map(|_| Announced::of_array(&[30_000_000], false, 8));
        let form = Form::new(&announced, -1).ok().unwrap();
        let alone = Estimate::new(&form, &announced, 8);
        assert_eq!(alone.total(), 0.96e9);
        let estimate = alone.with_solve(&form, 8, 3_840_000_000, 30_000_000);
        let needed = (0.96e9 + 3.84e9 + 0.24e9) as u64 + 1;
        assert_eq!(estimate.excess(Some(needed)), None);
        assert_eq!(estimate.excess(None), None);
        let said = estimate.excess(Some(needed - 1)).unwrap();
        assert!(said.contains("about 5.0 GB") && said.contains("solve 3.8 GB"), "{said}");
        assert!(said.contains("control group is 5.0 GB"), "{said}");
    }
}
