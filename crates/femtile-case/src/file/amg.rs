use femtile_amg::{AmgConfig, Cycle, Smoother};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What smooths on every level of algebraic multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SmootherName {
    /// Chebyshev polynomials.
    #[default]
    Chebyshev,
    /// Jacobi's method, damped.
    Jacobi,
    /// Gauss–Seidel's method in blocks of rows, ascending before the coarser level, descending after; on CPUs.
    GaussSeidel,
}

/// How often a cycle visits the next coarser level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CycleName {
    /// Once.
    #[default]
    V,
    /// Twice.
    W,
    /// Once or twice, as steps of conjugate gradients on that level; on CPUs.
    K,
}

/// What the levels are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelPrecision {
    /// 32 bits a number.
    #[default]
    Single,
    /// 64 bits a number.
    Double,
}

/// `[solver.amg]`: options of algebraic multigrid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AmgSection {
    /// Entries below this share of their diagonals do not count as connections, halved from level to level.
    pub strength: f64,
    /// What smooths.
    pub smoother: SmootherName,
    /// Sweeps before and after the coarser level, or the degree of the polynomial.
    pub sweeps: usize,
    /// How levels are visited.
    pub cycle: CycleName,
    /// The coarsest level has at most so many rows.
    pub coarse_rows: usize,
    /// What the levels are kept in; the solve itself has 64 bits a number.
    pub precision: LevelPrecision,
}

impl Default for AmgSection {
    fn default() -> Self {
        let AmgConfig { strength, coarse_rows, .. } = AmgConfig::default();
        let (smoother, cycle) = (SmootherName::default(), CycleName::default());
        Self { strength, smoother, sweeps: 2, cycle, coarse_rows, precision: LevelPrecision::default() }
    }
}

impl AmgSection {
    /// The settings of the hierarchy.
    pub fn config(&self) -> AmgConfig {
        let sweeps = self.sweeps;
        AmgConfig {
            strength: self.strength,
            coarse_rows: self.coarse_rows,
            smoother: match self.smoother {
                SmootherName::Chebyshev => Smoother::Chebyshev { degree: sweeps },
                SmootherName::Jacobi => Smoother::Jacobi { sweeps },
                SmootherName::GaussSeidel => Smoother::GaussSeidel { sweeps },
            },
            cycle: match self.cycle {
                CycleName::V => Cycle::V,
                CycleName::W => Cycle::W,
                CycleName::K => Cycle::K,
            },
            ..AmgConfig::default()
        }
    }
}
