use femtile::SolveError;
use femtile::device::DeviceError;
use femtile::fem::FemError;
use femtile::form::FormError;
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::matrix_market::MatrixMarketError;
use femtile::mesh::MeshError;
use femtile::multigrid::MultigridError;
use femtile::operator::OperatorError;
use femtile::space::SpaceError;
use femtile_cardiac::CardiacError;

/// Errors that stop a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// No benchmark has this name.
    #[error("there is no benchmark `{name}`; choose one of: {names}")]
    Unknown {
        /// The name given.
        name: String,
        /// The names that there are.
        names: String,
    },
    /// An option is out of its range.
    #[error("{field}: {message}")]
    Setting {
        /// The option.
        field: &'static str,
        /// The fault and the valid choices.
        message: String,
    },
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Linear algebra failed.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A mesh could not be generated or read.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A hierarchy of boxes could not be set up.
    #[error(transparent)]
    Multigrid(#[from] MultigridError),
    /// Assembly failed.
    #[error(transparent)]
    Fem(Box<FemError>),
    /// A form could not be discretized.
    #[error(transparent)]
    Operator(Box<OperatorError>),
    /// A problem could not be solved.
    #[error(transparent)]
    Solve(Box<SolveError>),
    /// A simulation of the heart failed.
    #[error(transparent)]
    Cardiac(Box<CardiacError>),
    /// A matrix could not be read.
    #[error(transparent)]
    MatrixMarket(MatrixMarketError),
    /// The product in a sparse format is wrong.
    #[error("{format} gives {found} in row {row} of the product where {expected} is right; please report it")]
    Product {
        /// The format with its parameters.
        format: String,
        /// The first wrong row, counted from 0.
        row: usize,
        /// The entry of the product.
        found: f64,
        /// The entry computed by plain loops over the rows.
        expected: f64,
    },
    /// A file could not be written or read.
    #[error("{what}: {source}")]
    File {
        /// The action that failed.
        what: &'static str,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A peer is not installed, or failed.
    #[error("the peer {peer} did not run: {reason}; bench/README.md says how to install it")]
    Peer {
        /// The program or library.
        peer: &'static str,
        /// Its message.
        reason: String,
    },
}

impl From<MatrixMarketError> for BenchError {
    fn from(error: MatrixMarketError) -> Self {
        match error {
            MatrixMarketError::Linalg(error) => error.into(),
            other => Self::MatrixMarket(other),
        }
    }
}

impl From<CardiacError> for BenchError {
    fn from(error: CardiacError) -> Self {
        Self::Cardiac(Box::new(error))
    }
}

impl From<SolveError> for BenchError {
    fn from(error: SolveError) -> Self {
        Self::Solve(Box::new(error))
    }
}

impl From<FemError> for BenchError {
    fn from(error: FemError) -> Self {
        Self::Fem(Box::new(error))
    }
}

impl From<SpaceError> for BenchError {
    fn from(error: SpaceError) -> Self {
        FemError::from(error).into()
    }
}

impl From<OperatorError> for BenchError {
    fn from(error: OperatorError) -> Self {
        Self::Operator(Box::new(error))
    }
}

impl From<FormError> for BenchError {
    fn from(error: FormError) -> Self {
        OperatorError::from(error).into()
    }
}
