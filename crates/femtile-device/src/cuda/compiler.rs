//! Compilation of a specialisation for one architecture.

use std::fmt;

use super::Specialisation;
use crate::DeviceError;

/// A compiled program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The machine code (CUBIN), or text for the driver (PTX) if the compiler does not support the
    /// architecture.
    pub code: Vec<u8>,
    /// The log of the compiler, with the resources of each kernel.
    pub log: String,
}

/// Resources of a kernel on a multiprocessor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    /// The kernel.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u32,
    /// Bytes of local memory that spilled registers are stored to and loaded from.
    pub spill_bytes: u32,
}

/// A compiler of CUDA C++.
pub trait Compiler: fmt::Debug + Send + Sync {
    /// Its name and version; part of the key under which binaries are kept.
    fn version(&self) -> String;

    /// Compiles for an architecture such as (9, 0).
    ///
    /// # Errors
    /// [`DeviceError::Compile`] with the messages of the compiler.
    fn compile(&self, program: &Specialisation, architecture: (u32, u32)) -> Result<Binary, DeviceError>;
}

/// Options that every program is compiled with, besides its macros and architecture.
pub(super) const OPTIONS: [&str; 2] = ["-std=c++17", "-Xptxas=-v"];

/// The output for an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Machine code for this architecture.
    Code(u32),
    /// PTX for the newest older architecture that the compiler supports, which the driver compiles.
    Text(u32),
}

impl Target {
    /// Returns the output for an architecture by a compiler that supports `known` architectures (90 for 9.0);
    /// none if all are newer.
    pub(super) fn choose(known: &[u32], (major, minor): (u32, u32)) -> Option<Self> {
        let wanted = 10 * major + minor;
        if known.contains(&wanted) {
            return Some(Self::Code(wanted));
        }
        known.iter().copied().filter(|&one| one < wanted).max().map(Self::Text)
    }

    fn option(self) -> String {
        match self {
            Self::Code(number) => format!("-arch=sm_{number}"),
            Self::Text(number) => format!("-arch=compute_{number}"),
        }
    }
}

/// All options for a program, in the order in which they are part of its key.
pub(super) fn options(program: &Specialisation, target: Target) -> Vec<String> {
    let mut options: Vec<String> = OPTIONS.iter().map(|&option| option.into()).collect();
    options.push(target.option());
    options.extend(program.defines().iter().map(|(name, value)| format!("-D{name}={value}")));
    options
}

impl Binary {
    /// Returns the resources of each kernel, read from the log.
    pub fn resources(&self) -> Vec<Resources> {
        let mut found: Vec<Resources> = Vec::new();
        for line in self.log.lines() {
            let quoted = || line.split('\'').nth(1).map(String::from);
            if line.contains("Compiling entry function") {
                let kernel = quoted().unwrap_or_default();
                found.push(Resources { kernel, registers: 0, shared_bytes: 0, spill_bytes: 0 });
            }
            let Some(last) = found.last_mut() else { continue };
            if line.contains("spill stores") {
                last.spill_bytes +=
                    number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
            }
            if line.contains("Used ") {
                last.registers = number_before(line, " registers");
                last.shared_bytes = number_before(line, " bytes smem");
            }
        }
        found
    }
}

fn number_before(line: &str, unit: &str) -> u32 {
    let before = line.split(unit).next().filter(|before| before.len() < line.len());
    before.and_then(|before| before.rsplit([' ', ',']).next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_newer_than_the_compiler_gets_text_for_the_driver() {
        let known = [75, 80, 90, 100];
        assert_eq!(Target::choose(&known, (9, 0)), Some(Target::Code(90)));
        assert_eq!(Target::choose(&known, (8, 9)), Some(Target::Text(80)));
        assert_eq!(Target::choose(&known, (12, 1)), Some(Target::Text(100)));
        assert_eq!(Target::choose(&known, (7, 0)), None);
    }

    #[test]
    fn registers_shared_memory_and_spills_are_read_from_the_log() {
        let log = "\
ptxas info    : Compiling entry function 'vector_dot' for 'sm_90'
ptxas info    : Function properties for vector_dot
ptxas         .     8 bytes stack frame, 16 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 8 bytes stack, 260 bytes smem
ptxas info    : Compiling entry function 'vector_fill' for 'sm_90'
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
";
        let found = Binary { code: vec![], log: log.into() }.resources();
        let of = |kernel: &str, registers, shared_bytes, spill_bytes| Resources {
            kernel: kernel.into(),
            registers,
            shared_bytes,
            spill_bytes,
        };
        assert_eq!(found, [of("vector_dot", 24, 260, 20), of("vector_fill", 8, 0, 0)]);
    }
}
