use femtile_device::Cpu;
use femtile_tensor::Contract;

use crate::grid::BoxGrid;
use crate::smoother::{Smoother, Sweep};
use crate::transfer::Transfer;

/// A level above the coarsest.
#[derive(Debug, Clone)]
pub(crate) struct Level<T> {
    pub grid: BoxGrid,
    pub sweep: Sweep<T>,
    /// From the next coarser level.
    pub transfer: Transfer<T>,
}

impl<T: Contract> Level<T> {
    pub fn new(cpu: &Cpu, coarse: &BoxGrid, smoother: Smoother) -> Self {
        let grid = coarse.refined();
        Self { sweep: Sweep::new(cpu, &grid, smoother), transfer: Transfer::new(cpu, coarse), grid }
    }
}

/// Solution and right side of a level.
#[derive(Debug, Clone)]
pub(crate) struct Vectors<T> {
    pub x: Vec<T>,
    pub b: Vec<T>,
}

/// Room for a cycle from zero: solution and right side on the finest level, and vectors of all others.
#[derive(Debug, Clone)]
pub(crate) struct Room<T> {
    pub x: Vec<T>,
    pub b: Vec<T>,
    pub vectors: Vec<Vectors<T>>,
}
