use femtile_amg::{AmgConfig, Cycle, PatchFormat, Smoother};
use femtile_solve::AmgOptions;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Value;

use super::schema;
use crate::read::read;

/// Smoothers of algebraic multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SmootherName {
    /// Chebyshev polynomial in the matrix scaled by its diagonal.
    #[default]
    Chebyshev,
    /// Damped Jacobi.
    Jacobi,
    /// Block-wise Gauss–Seidel, forward before the coarser level, backward after; on CPUs.
    GaussSeidel,
    /// Inexact solves on blocks of at most 400 rows.
    Patch,
}

/// Storage formats of the blocks of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatchFormatName {
    /// ELLPACK: the rows of a block padded to the length of its longest.
    #[default]
    FullRowEll,
    /// Compressed sparse rows.
    Csr,
    /// Coordinates of the entries above the diagonal; on a GPU the solution then differs from run to run by rounding.
    SymmetricCoo,
}

/// Multigrid cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CycleName {
    /// V-cycle.
    #[default]
    V,
    /// W-cycle.
    W,
    /// K-cycle: one or two conjugate gradient steps on the coarser level; on CPUs.
    K,
}

/// Precision of multigrid levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelPrecision {
    /// 32-bit floating point.
    #[default]
    F32,
    /// 64-bit floating point.
    F64,
}

impl From<LevelPrecision> for femtile_solve::LevelPrecision {
    fn from(name: LevelPrecision) -> Self {
        match name {
            LevelPrecision::F32 => Self::F32,
            LevelPrecision::F64 => Self::F64,
        }
    }
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
#[schemars(extend("allOf" = [
    schema::needs("inner", "smoother", &["patch"]),
    schema::needs("patch_format", "smoother", &["patch"]),
    schema::needs("sweeps", "smoother", &["jacobi", "gauss-seidel"]),
    { "if": { "required": ["degree"] }, "then": { "properties": { "smoother": { "const": "chebyshev" } } } }
]))]
pub struct AmgSection {
    /// Threshold of the strength of connection, relative to the diagonal; halved from level to level.
    #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
    pub strength: f64,
    /// The graph that the first aggregates follow.
    pub graph: GraphName,
    /// The smoother.
    pub smoother: SmootherName,
    /// Degree of the polynomial of `smoother = "chebyshev"`; 2 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub degree: Option<usize>,
    /// Sweeps of `smoother = "jacobi"` and `"gauss-seidel"` before and after the coarser level; 2 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub sweeps: Option<usize>,
    /// Jacobi iterations on each block of `smoother = "patch"`; 3 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub inner: Option<usize>,
    /// Storage format of the blocks of `smoother = "patch"`; `full-row-ell` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_format: Option<PatchFormatName>,
    /// The cycle.
    pub cycle: CycleName,
    /// Largest number of rows of the coarsest level.
    pub coarse_rows: usize,
    /// Precision of the levels; the Krylov method is in f64.
    pub precision: LevelPrecision,
}

impl Default for AmgSection {
    fn default() -> Self {
        let AmgConfig { strength, coarse_rows, .. } = AmgConfig::default();
        Self {
            strength,
            graph: GraphName::default(),
            smoother: SmootherName::default(),
            degree: None,
            sweeps: None,
            inner: None,
            patch_format: None,
            cycle: CycleName::default(),
            coarse_rows,
            precision: LevelPrecision::default(),
        }
    }
}

/// Options of algebraic multigrid for a matrix without a mesh, by the words of `[solver.amg]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixAmg {
    /// Rows of a node.
    pub block_size: usize,
    /// As [`AmgSection::strength`]; when absent that of matrices with so many rows of a node.
    pub strength: Option<f64>,
    /// As [`AmgSection::smoother`].
    pub smoother: SmootherName,
    /// As [`AmgSection::cycle`].
    pub cycle: CycleName,
    /// As [`AmgSection::precision`].
    pub precision: LevelPrecision,
}

impl MatrixAmg {
    /// Returns the options of the preconditioner.
    pub fn options(&self) -> AmgOptions {
        let Self { block_size, strength, smoother, cycle, precision } = *self;
        let AmgConfig { smoother, cycle, .. } =
            AmgSection { smoother, cycle, ..AmgSection::default() }.config();
        let defaults = match block_size {
            1 => AmgConfig::default(),
            n => AmgConfig::displacements(n),
        };
        let strength = strength.unwrap_or(defaults.strength);
        let config = AmgConfig { strength, smoother, cycle, ..defaults };
        AmgOptions { config, precision: precision.into(), ..AmgOptions::default() }
    }
}

/// Returns the value with a name of case files, such as a [`SmootherName`].
///
/// # Errors
/// A message with the names that are known.
pub fn named<T: DeserializeOwned + JsonSchema>(name: &str) -> Result<T, String> {
    read(Value::String(name.into())).map_err(|refusal| refusal.message)
}

/// Default degree of the Chebyshev polynomial, and default number of sweeps.
const SWEEPS: usize = 2;
/// Default number of Jacobi iterations on each block of patches, `[fu2014]`, section 6.2.3.
const INNER: usize = 3;

impl AmgSection {
    /// Checks the options.
    ///
    /// # Errors
    /// A message with the key, the reason and what to write instead.
    pub fn check(&self) -> Result<(), String> {
        let is_patch = self.smoother == SmootherName::Patch;
        if !is_patch && self.inner.is_some() {
            return Err("inner: only smoother = \"patch\" has inner iterations".into());
        }
        if !is_patch && self.patch_format.is_some() {
            return Err("patch_format: only smoother = \"patch\" keeps blocks".into());
        }
        if self.degree.is_some() && self.smoother != SmootherName::Chebyshev {
            return Err("degree: only smoother = \"chebyshev\" has a degree".into());
        }
        let makes_sweeps = matches!(self.smoother, SmootherName::Jacobi | SmootherName::GaussSeidel);
        if self.sweeps.is_some() && !makes_sweeps {
            let message = "sweeps: smoother = \"jacobi\" and \"gauss-seidel\" have sweeps, \"chebyshev\" has `degree`, \
                           \"patch\" has `inner`";
            return Err(message.into());
        }
        self.config().check().map_err(|error| error.to_string())
    }

    /// Returns the settings of the hierarchy.
    pub fn config(&self) -> AmgConfig {
        let sweeps = self.sweeps.unwrap_or(SWEEPS);
        AmgConfig {
            strength: self.strength,
            coarse_rows: self.coarse_rows,
            smoother: match self.smoother {
                SmootherName::Chebyshev => Smoother::Chebyshev { degree: self.degree.unwrap_or(SWEEPS) },
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
