//! Pools of threads that calls share.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use femtile::Cpu;
use pyo3::prelude::*;

use crate::errors::Raise;

static POOLS: Mutex<BTreeMap<usize, Cpu>> = Mutex::new(BTreeMap::new());

/// Returns the processor with this number of threads, 0 for all; its pool is made once.
pub fn cpu(py: Python<'_>, threads: usize) -> PyResult<Cpu> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cpu) = pools.get(&threads) {
        return Ok(cpu.clone());
    }
    let cpu = Cpu::new(threads).map_err(|error| error.raise(py))?;
    pools.insert(threads, cpu.clone());
    Ok(cpu)
}
