//! The structure of a tangent, read off its graph, by which kernels are chosen.

/// The dependence of a value at a point, from zero to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependence {
    /// It is zero.
    Zero,
    /// It is a number; the time counts as one.
    Constant,
    /// It differs from cell to cell: data by cell or by tag.
    ByCell,
    /// It differs from point to point: coordinates, normal, functions.
    ByPoint,
    /// It depends on the state: u, ∇u or ∂u/∂t.
    WithState,
}

/// The structure of a tangent $D' = \partial(f_0, f_1)/\partial(u, \nabla u)$, by which an operator chooses its kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Whether $D'$ is a symmetric matrix, so that the bilinear form is symmetric.
    pub symmetric: bool,
    /// Whether an entry couples two components of u.
    pub couples_components: bool,
    /// Whether an entry couples both sides of an interior facet.
    pub couples_sides: bool,
    /// $\partial f_0/\partial u$.
    pub reaction: Dependence,
    /// $\partial f_0/\partial\nabla u$.
    pub convection: Dependence,
    /// $\partial f_1/\partial u$, which a coefficient that depends on u makes.
    pub drift: Dependence,
    /// $\partial f_1/\partial\nabla u$.
    pub diffusion: Dependence,
    /// Whether $\partial f_1/\partial\nabla u$ of each component is a multiple of the identity.
    pub isotropic: bool,
    /// A bit for each component with an entry in its rows.
    pub present: u16,
    /// A bit for each component with an entry on the diagonal that is neither zero nor a negative number.
    pub positive: u16,
}

/// How the rate $\partial u/\partial t$ enters an integrand or a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// For each component of u whether its rate does.
    pub components: Vec<bool>,
    /// The dependence of the derivatives of the residual by the rate: of the capacity.
    pub capacity: Dependence,
    /// Whether these depend on t.
    pub is_in_time: bool,
}

impl Storage {
    /// Returns that of an integrand without rates.
    pub fn none(n_components: usize) -> Self {
        Self { components: vec![false; n_components], capacity: Dependence::Zero, is_in_time: false }
    }

    /// Returns that of the sum of two integrands.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.components.iter_mut().zip(&other.components).for_each(|(own, other)| *own |= other);
        Self {
            capacity: self.capacity.max(other.capacity),
            is_in_time: self.is_in_time || other.is_in_time,
            ..self
        }
    }
}

impl Class {
    /// Returns what the tangent depends on.
    pub fn dependence(&self) -> Dependence {
        self.reaction.max(self.convection).max(self.drift).max(self.diffusion)
    }

    /// Returns whether the form is linear in u.
    pub fn is_linear(&self) -> bool {
        self.dependence() < Dependence::WithState
    }

    /// Returns whether the tangent is $\sigma\nabla u\cdot\nabla v + \lambda u v$ for each component on its own with a
    /// symmetric σ: the class of the kernels for scalar diffusion and reaction.
    pub fn is_diffusion_reaction(&self) -> bool {
        self.symmetric
            && !self.couples_components
            && !self.couples_sides
            && self.convection == Dependence::Zero
            && self.drift == Dependence::Zero
    }
}
