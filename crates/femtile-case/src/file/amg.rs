use femtile_amg::{AmgConfig, Cycle, PatchFormat, Smoother};
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
    /// Blocks of at most 400 rows, each solved inexactly.
    Patch,
}

/// How the blocks of patches are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatchFormatName {
    /// All entries, the rows of a block filled to the length of its longest.
    #[default]
    FullRowEll,
    /// All entries, row by row.
    Csr,
    /// The entries above the diagonal; on a GPU the bits of a solution then differ from run to run.
    SymmetricCoo,
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
    #[serde(alias = "single")]
    F32,
    /// 64 bits a number.
    #[serde(alias = "double")]
    F64,
}

/// The graph that the first aggregates follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GraphName {
    /// The strong connections of the matrix.
    #[default]
    Matrix,
    /// The cells of the mesh, of triangles or tetrahedra.
    Mesh,
}

/// `[solver.amg]`: options of algebraic multigrid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AmgSection {
    /// Entries below this share of their diagonals do not count as connections, halved from level to level.
    pub strength: f64,
    /// The graph that the first aggregates follow.
    pub graph: GraphName,
    /// What smooths.
    pub smoother: SmootherName,
    /// Sweeps before and after the coarser level, or the degree of the polynomial.
    pub sweeps: usize,
    /// Jacobi iterations on each block of `smoother = "patch"`; 3 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner: Option<usize>,
    /// How the blocks of `smoother = "patch"` are kept; `full-row-ell` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_format: Option<PatchFormatName>,
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
        Self {
            strength,
            graph: GraphName::default(),
            smoother: SmootherName::default(),
            sweeps: 2,
            inner: None,
            patch_format: None,
            cycle: CycleName::default(),
            coarse_rows,
            precision: LevelPrecision::default(),
        }
    }
}

/// Jacobi iterations on each block of patches, `[fu2014]`, section 6.2.3.
const INNER: usize = 3;

impl AmgSection {
    /// Whether the options make sense together and on their own.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn check(&self) -> Result<(), String> {
        let is_patch = self.smoother == SmootherName::Patch;
        let sweeps = Self::default().sweeps;
        if !is_patch && self.inner.is_some() {
            return Err("inner: only smoother = \"patch\" has inner iterations".into());
        }
        if !is_patch && self.patch_format.is_some() {
            return Err("patch_format: only smoother = \"patch\" keeps blocks".into());
        }
        if is_patch && self.sweeps != sweeps {
            return Err("sweeps: smoother = \"patch\" makes one step before and after; give `inner`".into());
        }
        self.config().check().map_err(|error| error.to_string())
    }

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
                SmootherName::Patch => Smoother::Patch {
                    inner: self.inner.unwrap_or(INNER),
                    format: match self.patch_format.unwrap_or_default() {
                        PatchFormatName::FullRowEll => PatchFormat::FullRowEll,
                        PatchFormatName::Csr => PatchFormat::Csr,
                        PatchFormatName::SymmetricCoo => PatchFormat::SymmetricCoo,
                    },
                },
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
