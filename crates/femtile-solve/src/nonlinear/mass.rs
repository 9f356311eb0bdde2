//! Mass matrices, consistent and lumped, and contents that depend on u.

use femtile_device::Buffer;
use femtile_fem::{BoundaryCondition, Coefficient, FemError, Form, Slopes};
use femtile_form::FormError;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Offsets;
use femtile_sparse::{Csr, StoredMatrix};

use super::domain::Domain;
use super::tangent::Tangent;
use crate::method::SolveDevice;
use crate::ranks::RankDevice;
use crate::{Discretization, NonlinearMethod, OperatorKind, SolveError, SolverConfig};

/// Mass matrices of equations in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MassMatrix {
    /// The integrals $\int c \varphi_i \varphi_j$ with the capacity $c$.
    #[default]
    Consistent,
    /// Its row sums $\int c \varphi_i$ on the diagonal, of elements of degree 1: for steps of any length and no reaction the
    /// maximum principle holds on meshes of triangles that are not obtuse.
    Lumped,
}

impl MassMatrix {
    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Lumped => "lumped",
        }
    }

    /// Refuses a lumped matrix of a degree whose row sums are not all positive.
    pub(crate) fn check(self, degree: usize) -> Result<(), SolveError> {
        if self == Self::Consistent || degree == 1 {
            return Ok(());
        }
        let message = format!(
            "\"lumped\" is for elements of degree 1, as row sums of degree {degree} may be zero or negative: take \
             \"consistent\"; quadrature = \"gauss-lobatto\" makes it diagonal for any degree"
        );
        Err(SolveError::setting(&["time".into(), "mass".into()], message))
    }

    /// Returns settings with which the operators are matrices, if the mass matrix has to be changed.
    pub(crate) fn settings(self, config: &SolverConfig) -> Result<SolverConfig, SolveError> {
        if self == Self::Consistent {
            return Ok(config.clone());
        }
        if config.operator == OperatorKind::MatrixFree {
            let message = "a lumped mass belongs to a matrix: take \"assembled\"";
            return Err(SolveError::solver("operator", message));
        }
        Ok(SolverConfig { operator: OperatorKind::Assembled, ..config.clone() })
    }
}

/// The mass matrix of a space.
pub(crate) struct Mass<D: RankDevice> {
    product: Product<D>,
    /// Values on the pattern of the linearization, without couplings of Dirichlet unknowns.
    values: Buffer<f64, D>,
}

enum Product<D: RankDevice> {
    Matrix(Box<dyn LinearOperator<f64, D>>),
    Diagonal(Buffer<f64, D>),
}

impl<D: RankDevice> Mass<D> {
    /// Assembles the matrix of a problem's space with a capacity $c$: the integrals $\int c \varphi_i \varphi_j$. Collective.
    pub fn new(domain: &Domain<'_, D>, kind: MassMatrix, capacity: &Coefficient) -> Result<Self, SolveError> {
        let (device, problem) = (domain.device, domain.problem);
        let conditions = problem.conditions[0].iter();
        let held: Vec<_> = conditions.map(|given| given.homogeneous().given_alone()).collect();
        let matrix = |conditions: &[BoundaryCondition]| -> Result<Csr<f64, D>, FemError> {
            let (own, zero) = (problem.form(0), &Coefficient::ZERO);
            let form = Form { sigma: zero, lambda: capacity, source: zero, conditions, ..own };
            let slopes = Slopes::default();
            let mut tangent = Tangent::new(domain, form, &slopes, 0.0)?;
            tangent.fill_values(0.0, &domain.zeros()?)?;
            Ok(tangent.into_matrix())
        };
        let natural = matrix(&[])?;
        let pattern = matrix(&held)?;
        if kind == MassMatrix::Consistent {
            let values = Buffer::from_vec(device, pattern.values().to_host()?)?;
            return Ok(Self { product: Product::Matrix(domain.operator_of(natural)?), values });
        }
        // Of ghosts they are incomplete, and their rows are dropped.
        let sums = row_sums(&natural)?;
        let values = Buffer::from_vec(device, on_diagonal(&pattern, &sums.to_host()?)?)?;
        Ok(Self { product: Product::Diagonal(domain.owned(sums)?), values })
    }

    /// $y = M x$.
    pub fn apply(&self, y: &mut Buffer<f64, D>, x: &Buffer<f64, D>) -> Result<(), LinalgError> {
        match &self.product {
            Product::Matrix(matrix) => matrix.apply(y, x),
            Product::Diagonal(sums) => x.device().scale_by(y, sums, x),
        }
    }
}

/// The term $\partial E / \partial t$ of an equation in time, $E_i = \int e(u) \varphi_i$ with $e(u) = \int_0^u c$.
pub(crate) enum Storage<'a, D: RankDevice> {
    /// $E = M u$ for a capacity c that does not depend on u.
    Linear(Mass<D>),
    Nonlinear(Box<Content<'a, D>>),
}

impl<D: RankDevice> Storage<'_, D> {
    /// Returns the values of its matrix on the pattern of the linearization, without couplings of Dirichlet
    /// unknowns.
    pub fn values(&self) -> &Buffer<f64, D> {
        match self {
            Self::Linear(mass) => &mass.values,
            Self::Nonlinear(content) => content.linearized.values(),
        }
    }
}

/// The coefficient $e(u)/u$ with its derivative and the conditions that give values.
#[derive(Debug)]
pub(crate) struct ContentData {
    mean: Coefficient,
    slopes: Slopes,
    conditions: Vec<BoundaryCondition>,
}

impl ContentData {
    /// Takes those of a problem.
    pub fn of(problem: &Discretization<'_>, method: NonlinearMethod) -> Self {
        let mean = problem.capacity.mean_from_zero();
        let slope = (method == NonlinearMethod::Newton).then(|| mean.slope());
        let conditions = problem.conditions[0].iter().map(BoundaryCondition::given_alone).collect();
        let slopes = Slopes { lambda: slope, ..Slopes::default() };
        Self { mean, slopes, conditions }
    }
}

/// E of a capacity that depends on u, linearized as $A u - b$.
pub(crate) struct Content<'a, D: RankDevice> {
    /// With all rows and columns, $b = 0$.
    natural: Tangent<'a, D>,
    /// With Dirichlet values eliminated.
    linearized: Tangent<'a, D>,
}

impl<'a, D: RankDevice> Content<'a, D> {
    /// Prepares the content of a problem, with conditions at a time.
    pub fn new(domain: &'a Domain<'a, D>, data: &'a ContentData, time: f64) -> Result<Self, FemError> {
        let (ContentData { mean, slopes, conditions }, zero) = (data, &Coefficient::ZERO);
        let form = Form { sigma: zero, lambda: mean, source: zero, conditions, ..domain.problem.form(0) };
        Ok(Self {
            natural: Tangent::new(domain, Form { conditions: &[], ..form }, Slopes::NONE, time)?,
            linearized: Tangent::new(domain, form, slopes, time)?,
        })
    }

    /// Evaluates conditions that depend on the time.
    pub fn bring_conditions(&mut self, time: f64) -> Result<(), FemError> {
        self.linearized.bring_conditions(time).map(drop)
    }

    /// $y = \sum_i \alpha_i E(u_i)$.
    pub fn sum(
        &mut self,
        time: f64,
        summands: &[(f64, &Buffer<f64, D>)],
        (y, scratch): (&mut Buffer<f64, D>, &mut Buffer<f64, D>),
    ) -> Result<(), SolveError> {
        let device = y.device().clone();
        device.fill(y, 0.0)?;
        for (factor, u) in summands {
            self.natural.fill(time, u, None).map_err(of_capacity)?;
            self.natural.operator().apply(scratch, u)?;
            device.axpby(y, *factor, scratch, 1.0)?;
        }
        Ok(())
    }

    /// Fills the linearization at a function.
    pub fn fill(&mut self, time: f64, u: &Buffer<f64, D>) -> Result<(), FemError> {
        self.linearized.fill_values(time, u).map_err(of_capacity)
    }

    /// Returns b.
    pub fn rhs(&self) -> &Buffer<f64, D> {
        self.linearized.rhs()
    }
}

/// Returns an error about the reaction of a content as one about the capacity.
fn of_capacity(mut error: FemError) -> FemError {
    if let FemError::Form(FormError::NotFinite { field, .. } | FormError::Negative { field, .. }) = &mut error
    {
        *field = "capacity";
    }
    error
}

/// Makes the row sums of a mass matrix the diagonal of a matrix without other entries.
pub(crate) fn lump<D: SolveDevice>(natural: &Csr<f64, D>, out: &mut Csr<f64, D>) -> Result<(), LinalgError> {
    put_on_diagonal(out, &row_sums(natural)?)
}

/// Lumps a reaction term: replaces it in a matrix by its row sums on the diagonal. Afterwards `reaction` has
/// these only.
pub(crate) fn lump_within<D: SolveDevice>(
    matrix: &mut Csr<f64, D>,
    reaction: &mut Csr<f64, D>,
) -> Result<(), LinalgError> {
    matrix.combine_values(-1.0, reaction.values(), 1.0)?;
    let sums = row_sums(reaction)?;
    put_on_diagonal(reaction, &sums)?;
    matrix.combine_values(1.0, reaction.values(), 1.0)
}

/// Makes numbers the diagonal of a matrix without other entries.
fn put_on_diagonal<D: SolveDevice>(
    out: &mut Csr<f64, D>,
    diagonal: &Buffer<f64, D>,
) -> Result<(), LinalgError> {
    let values = on_diagonal(out, &diagonal.to_host()?)?;
    Ok(out.values_mut().upload(&values)?)
}

fn row_sums<D: SolveDevice>(matrix: &Csr<f64, D>) -> Result<Buffer<f64, D>, LinalgError> {
    let device = matrix.values().device();
    let mut ones = Buffer::zeros(device, matrix.n_rows())?;
    device.fill(&mut ones, 1.0)?;
    let mut sums = Buffer::zeros(device, matrix.n_rows())?;
    D::rows_operator(matrix).apply(&mut sums, &ones)?;
    Ok(sums)
}

/// Returns values on the pattern of a matrix: these on its diagonal, zero elsewhere.
fn on_diagonal<D: SolveDevice>(matrix: &Csr<f64, D>, diagonal: &[f64]) -> Result<Vec<f64>, LinalgError> {
    let begin: Vec<usize> = match matrix.offsets() {
        Offsets::Narrow(offsets) => offsets.to_host()?.into_iter().map(|at| at as usize).collect(),
        Offsets::Wide(offsets) => offsets.to_host()?.into_iter().map(|at| at as usize).collect(),
    };
    let columns = matrix.columns().to_host()?;
    let mut values = vec![0.0; columns.len()];
    for (row, value) in diagonal.iter().enumerate() {
        let range = begin[row]..begin[row + 1];
        if let Ok(at) = columns[range.clone()].binary_search(&(row as u32)) {
            values[range.start + at] = *value;
        }
    }
    Ok(values)
}
