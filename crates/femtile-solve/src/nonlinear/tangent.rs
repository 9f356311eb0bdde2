//! Linearizations on a device, refilled on their pattern.

use femtile_device::Buffer;
use femtile_fem::tensor::{LinearizedProblem, TensorAssembly};
use femtile_fem::{
    AssembledSystem, Assembly, AssemblyProblem, BoundaryCondition, Constraints, DeviceState, FemError, Form,
    Slopes, State,
};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::{Csr, StoredMatrix};

use super::domain::{Domain, GivenGhosts};
use super::mass::ContentData;
use crate::method::SolveDevice;
use crate::preconditioner::Preconditioning;
use crate::ranks::RankDevice;
use crate::{SolveError, SolverConfig, tensor};

/// The derivatives of the coefficients of a problem that linearizations take.
#[derive(Debug)]
pub(crate) struct Derivatives {
    /// Those of the method.
    pub all: Slopes,
    /// The same without that of σ, which makes the matrix nonsymmetric.
    pub symmetric: Slopes,
    /// Those of a capacity that depends on u.
    pub content: Option<ContentData>,
}

/// The linearization of a problem: its matrix and right side, filled at a time and a function. Functions are collective.
pub(crate) struct Tangent<'a, D: RankDevice> {
    domain: &'a Domain<'a, D>,
    form: Form<'a>,
    depends_on_time: bool,
    /// The time of the conditions.
    time: f64,
    kind: Kind<'a, D>,
    /// The Dirichlet values at owned unknowns.
    constraints: Constraints,
    ghosts: Option<GivenGhosts<D>>,
    /// The right side of the owned unknowns and the operator on them; none on one rank, which has those of the matrix.
    rhs: Option<Buffer<f64, D>>,
    operator: Option<Box<dyn LinearOperator<f64, D>>>,
}

enum Kind<'a, D: SolveDevice> {
    Simplices(Box<OnDevice<'a, D>>),
    Tensor(Box<OnHost<'a, D>>),
}

/// A linearization of linear elements on simplices.
struct OnDevice<'a, D: SolveDevice> {
    assembly: Assembly<f64, D>,
    prepared: AssemblyProblem<'a>,
    system: AssembledSystem<f64, D>,
}

/// A linearization of elements of any degree: the host fills it, and copies it to the device.
struct OnHost<'a, D: SolveDevice> {
    assembly: TensorAssembly<'a>,
    prepared: LinearizedProblem<'a>,
    matrix: Csr<f64, D>,
    rhs: Buffer<f64, D>,
    values: Vec<f64>,
    right: Vec<f64>,
}

impl<'a, D: RankDevice> Kind<'a, D> {
    fn new(
        domain: &Domain<'a, D>,
        form: Form<'a>,
        slopes: &'a Slopes,
        conditions: &[BoundaryCondition],
    ) -> Result<Self, FemError> {
        let (device, problem) = (domain.device, domain.problem);
        Ok(match problem.space() {
            None => {
                let mut assembly = Assembly::<f64, D>::new(device, form.mesh)?;
                let system = assembly.zero_system()?;
                let prepared = assembly.prepare_linearized(&form, slopes, conditions)?;
                Kind::Simplices(Box::new(OnDevice { assembly, prepared, system }))
            }
            Some(space) => {
                let rule = tensor::rule(problem.config.quadrature);
                let now = Form { conditions, ..form };
                let assembly = TensorAssembly::new(space, &now, rule)?;
                let prepared = assembly.prepare(&form, slopes, conditions)?;
                let (matrix, n) = (assembly.matrix(device)?, space.n_dofs());
                let values = vec![0.0; matrix.n_nonzeros()];
                let (rhs, right) = (Buffer::zeros(device, n)?, vec![0.0; n]);
                Kind::Tensor(Box::new(OnHost { assembly, prepared, matrix, rhs, values, right }))
            }
        })
    }

    fn take_slopes(
        &mut self,
        form: &Form<'a>,
        slopes: &'a Slopes,
        conditions: &[BoundaryCondition],
    ) -> Result<(), FemError> {
        match self {
            Self::Simplices(own) => {
                own.prepared = own.assembly.prepare_linearized(form, slopes, conditions)?;
            }
            Self::Tensor(own) => own.prepared = own.assembly.prepare(form, slopes, conditions)?,
        }
        Ok(())
    }

    fn replace_conditions(&mut self, conditions: &[BoundaryCondition]) -> Result<(), FemError> {
        match self {
            Self::Simplices(own) => own.assembly.replace_conditions(&mut own.prepared, conditions),
            Self::Tensor(own) => own.assembly.replace_conditions(&mut own.prepared, conditions),
        }
    }

    /// The constrained unknowns of the mesh of the rank, and their values.
    fn constraints(&self) -> &Constraints {
        match self {
            Self::Simplices(own) => own.prepared.constraints(),
            Self::Tensor(own) => own.prepared.constraints(),
        }
    }

    fn matrix(&self) -> &Csr<f64, D> {
        match self {
            Self::Simplices(own) => &own.system.matrix,
            Self::Tensor(own) => &own.matrix,
        }
    }

    fn matrix_mut(&mut self) -> &mut Csr<f64, D> {
        match self {
            Self::Simplices(own) => &mut own.system.matrix,
            Self::Tensor(own) => &mut own.matrix,
        }
    }

    fn rhs(&self) -> &Buffer<f64, D> {
        match self {
            Self::Simplices(own) => &own.system.rhs,
            Self::Tensor(own) => &own.rhs,
        }
    }

    /// Fills the matrix and the right side from a function on the mesh of the rank.
    fn fill(&mut self, time: f64, u: &Buffer<f64, D>) -> Result<(), FemError> {
        match self {
            Kind::Simplices(own) => {
                let OnDevice { assembly, prepared, system } = &mut **own;
                assembly.fill(system, prepared, DeviceState { time, unknown: Some(u) })
            }
            Kind::Tensor(own) => {
                let OnHost { assembly, prepared, matrix, rhs, values, right } = &mut **own;
                let unknown = u.host_view()?;
                assembly.fill(values, right, prepared, State { time, unknown: &unknown })?;
                matrix.values_mut().upload(values)?;
                Ok(rhs.upload(right)?)
            }
        }
    }
}

impl<'a, D: RankDevice> Tangent<'a, D> {
    /// Prepares the linearization of a form on the mesh of a rank, with conditions at a time.
    pub fn new(
        domain: &'a Domain<'a, D>,
        form: Form<'a>,
        slopes: &'a Slopes,
        time: f64,
    ) -> Result<Self, FemError> {
        let kind = domain.agreed(Kind::new(domain, form, slopes, &at_time(form.conditions, time)))?;
        let (constraints, ghosts) = domain.given(kind.constraints())?;
        let depends_on_time = form.conditions.iter().any(|given| given.condition.uses_time());
        let [depends_on_time] = domain.comm.any([depends_on_time])?;
        Ok(Self { domain, form, depends_on_time, time, kind, constraints, ghosts, rhs: None, operator: None })
    }

    /// Takes other derivatives.
    pub fn take_slopes(&mut self, slopes: &'a Slopes) -> Result<(), FemError> {
        let conditions = at_time(self.form.conditions, self.time);
        let taken = self.kind.take_slopes(&self.form, slopes, &conditions);
        self.domain.agreed(taken)
    }

    /// Evaluates conditions that depend on the time; returns whether there are any.
    pub fn bring_conditions(&mut self, time: f64) -> Result<bool, FemError> {
        if !self.depends_on_time || time == self.time {
            return Ok(false);
        }
        let replaced = self.kind.replace_conditions(&at_time(self.form.conditions, time));
        self.domain.agreed(replaced)?;
        (self.constraints, self.ghosts) = self.domain.given(self.kind.constraints())?;
        self.time = time;
        Ok(true)
    }

    /// Returns the constrained unknowns and their values.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// Fills the matrix and the right side at a time and a function, and adds a multiple of values on the pattern to the
    /// matrix.
    ///
    /// # Errors
    /// A coefficient that is out of its range there, on all ranks.
    pub fn fill(
        &mut self,
        time: f64,
        u: &Buffer<f64, D>,
        plus: Option<(f64, &Buffer<f64, D>)>,
    ) -> Result<(), FemError> {
        self.fill_values(time, u)?;
        if let Some((factor, values)) = plus {
            self.kind.matrix_mut().combine_values(factor, values, 1.0)?;
        }
        self.operator = self.domain.operator(self.kind.matrix(), self.ghosts.as_ref())?;
        Ok(())
    }

    /// As [`Tangent::fill`], without an operator.
    pub fn fill_values(&mut self, time: f64, u: &Buffer<f64, D>) -> Result<(), FemError> {
        let on_part = self.domain.with_ghosts(u)?;
        let filled = self.kind.fill(time, on_part.as_ref().unwrap_or(u));
        self.domain.agreed(filled)?;
        if on_part.is_some() {
            let own = self.kind.rhs();
            let mut rhs = Buffer::zeros(self.domain.device, own.len())?;
            self.domain.device.copy(&mut rhs, own)?;
            self.domain.lift(&mut rhs, self.kind.matrix(), self.ghosts.as_ref())?;
            self.rhs = Some(self.domain.owned(rhs)?);
        }
        Ok(())
    }

    /// Returns the values of the matrix.
    pub fn values(&self) -> &Buffer<f64, D> {
        self.kind.matrix().values()
    }

    /// Returns the matrix for products.
    pub fn operator(&self) -> &dyn LinearOperator<f64, D> {
        self.operator.as_deref().unwrap_or_else(|| D::rows_operator(self.kind.matrix()))
    }

    /// Returns the right side.
    pub fn rhs(&self) -> &Buffer<f64, D> {
        self.rhs.as_ref().unwrap_or_else(|| self.kind.rhs())
    }

    /// Makes the preconditioner of the settings; the matrix may be changed until it is filled again.
    pub fn preconditioning(
        &mut self,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<D>, SolveError> {
        self.domain.preconditioning(config, self.kind.matrix_mut(), self.ghosts.as_ref(), warnings)
    }

    /// Returns the matrix only.
    pub fn into_matrix(self) -> Csr<f64, D> {
        match self.kind {
            Kind::Simplices(own) => own.system.into_parts().0,
            Kind::Tensor(own) => own.matrix,
        }
    }
}

fn at_time(conditions: &[BoundaryCondition], time: f64) -> Vec<BoundaryCondition> {
    conditions.iter().map(|given| given.at_time(time)).collect()
}

/// Entries of vectors at unknowns with Dirichlet values.
pub(crate) struct Given<D: SolveDevice> {
    /// One at free unknowns, zero at Dirichlet unknowns; none if all are free.
    free: Option<Buffer<f64, D>>,
    /// The Dirichlet values, zero elsewhere.
    values: Option<Buffer<f64, D>>,
    scratch: Buffer<f64, D>,
}

impl<D: SolveDevice> Given<D> {
    /// Takes the Dirichlet values of constraints on `n` unknowns.
    pub fn new(device: &D, n: usize, constraints: &Constraints) -> Result<Self, LinalgError> {
        let (mut free, mut values) = (None, None);
        if !constraints.is_empty() {
            let mut mask = vec![1.0; n];
            constraints.dofs().iter().for_each(|&dof| mask[dof as usize] = 0.0);
            free = Some(Buffer::from_vec(device, mask)?);
            values = Some(Buffer::zeros(device, n)?);
        }
        let mut given = Self { free, values, scratch: Buffer::zeros(device, n)? };
        given.assign(constraints)?;
        Ok(given)
    }

    /// Takes other values.
    pub fn assign(&mut self, constraints: &Constraints) -> Result<(), LinalgError> {
        let Some(values) = &mut self.values else { return Ok(()) };
        let mut host = vec![0.0; values.len()];
        constraints.impose(&mut host);
        Ok(values.upload(&host)?)
    }

    /// Sets entries at Dirichlet unknowns to zero.
    pub fn clear(&mut self, v: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        let Some(free) = &self.free else { return Ok(()) };
        v.device().clone().scale_by(&mut self.scratch, free, v)?;
        std::mem::swap(v, &mut self.scratch);
        Ok(())
    }

    /// Puts the Dirichlet values into `u`.
    pub fn impose(&mut self, u: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        self.clear(u)?;
        match &self.values {
            Some(values) => u.device().clone().axpby(u, 1.0, values, 1.0),
            None => Ok(()),
        }
    }

    /// Returns the Dirichlet values, zero elsewhere, if there are any.
    pub fn values(&self) -> Option<&Buffer<f64, D>> {
        self.values.as_ref()
    }
}
