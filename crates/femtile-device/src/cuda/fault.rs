//! Finds the kernels that may have failed, because the driver reports only that one did.

use crate::DeviceError;

/// Launches that are remembered.
const KEPT: usize = 16;

/// The last launches since the stream was last known to be sound.
#[derive(Debug, Default)]
pub(super) struct Recent {
    names: Vec<&'static str>,
    n: u64,
}

impl Recent {
    pub(super) fn push(&mut self, name: &'static str) {
        self.n += 1;
        if self.names.len() == KEPT {
            self.names.remove(0);
        }
        self.names.push(name);
    }

    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.n = 0;
    }

    /// Returns the error with the kernels that may have caused it.
    pub(super) fn blame(&self, error: DeviceError) -> DeviceError {
        match error {
            DeviceError::Fault { message, kernels } if kernels.is_empty() => {
                let mut names = self.names.clone();
                names.dedup();
                let kernels = match names.as_slice() {
                    [only] => (*only).into(),
                    many => format!("one of the last {} launches ({})", self.n, many.join(", ")),
                };
                DeviceError::Fault { message, kernels }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_launches_that_may_have_caused_it() {
        let mut recent = Recent::default();
        recent.push("csr_apply");
        let fault = || DeviceError::Fault { message: "illegal address".into(), kernels: String::new() };
        assert!(recent.blame(fault()).to_string().contains("csr_apply"));
        (0..40).for_each(|_| recent.push("cg_direction"));
        recent.push("vector_dot");
        let text = recent.blame(fault()).to_string();
        assert!(text.contains("42 launches") && text.contains("vector_dot"), "{text}");
    }
}
