//! Boundary conditions of a step.
//!
//! A step solves $(I - τA_1)⋯(I - τA_d)(u^n - u^{n-1}) = R$. On a Dirichlet side the increment is known, and
//! the operators along the other axes involve only values on that side. The right side there is therefore
//! $R = (I - τA_1)⋯(I - τA_d)(g^n - g^{n-1})$. The rows of $A_a$ on Dirichlet sides of axis a are zero. The
//! solves then give the consistent intermediate values and, last, the increment.

use std::collections::HashMap;

use femtile_device::{Buffer, Device, Scalar};
use femtile_expression::{Expression, Variable};

use super::line::{Sampler, Scratch};
use super::operator::{Coefficient, Operator};
use super::problem::{AdiProblem, Side};
use crate::TimeError;

/// Node numbers and a value for each.
type AtNodes<'a, T, D> = (&'a Buffer<u64, D>, &'a Buffer<T, D>);

/// Nodes with a common formula.
struct Group {
    formula: Expression,
    /// Positions in the list of all nodes.
    members: Vec<usize>,
    points: Vec<[f64; 3]>,
}

impl Group {
    /// Writes the values at a time to their positions in `all`.
    fn values(&self, time: f64, all: &mut [f64], scratch: &mut Scratch) {
        let sampler = Sampler::new(&Coefficient::new(&self.formula.at_time(time)));
        let mut values = vec![0.0; self.points.len()];
        sampler.points(&mut values, scratch, |axis, i| self.points[i][axis]);
        for (&member, value) in self.members.iter().zip(values) {
            all[member] = value;
        }
    }

    fn depends_on_time(&self) -> bool {
        self.formula.uses(Variable::T)
    }
}

/// The operator along one axis at a node on a side.
struct Link {
    neighbours: [usize; 2],
    couplings: [f64; 2],
    reaction: f64,
}

/// The nodes on Dirichlet sides and their values.
pub(crate) struct Dirichlet<T: Scalar, D: Device> {
    nodes: Buffer<u64, D>,
    values: Buffer<T, D>,
    groups: Vec<Group>,
    /// The most recent values.
    current: Vec<f64>,
    /// The operator along each axis, at nodes that are not on a Dirichlet side of that axis.
    links: Vec<Vec<Option<Link>>>,
    depends_on_time: bool,
    scratch: Scratch,
}

impl<T: Scalar, D: Device> Dirichlet<T, D> {
    /// Collects the nodes and the initial values; `splits_values` prepares [`Dirichlet::apply`].
    pub fn new(
        device: &D,
        problem: &AdiProblem,
        operator: &Operator,
        start: f64,
        splits_values: bool,
    ) -> Result<Self, TimeError> {
        let grid = operator.grid();
        let nodes: Vec<[usize; 3]> = held_nodes(operator);
        let mut groups: Vec<Group> = Vec::new();
        for (member, &node) in nodes.iter().enumerate() {
            let Some(formula) = value_at(problem, operator, node) else { continue };
            let group = match groups.iter().position(|group| group.formula == *formula) {
                Some(found) => found,
                None => {
                    groups.push(Group { formula: formula.clone(), members: vec![], points: vec![] });
                    groups.len() - 1
                }
            };
            groups[group].members.push(member);
            groups[group].points.push(grid.point(node));
        }
        let indices: Vec<u64> = nodes.iter().map(|&node| grid.index(node) as u64).collect();
        let depends_on_time = groups.iter().any(Group::depends_on_time);
        let mut dirichlet = Self {
            nodes: Buffer::from_host(device, &indices)?,
            values: Buffer::zeros(device, indices.len())?,
            depends_on_time,
            groups,
            current: vec![0.0; indices.len()],
            links: Vec::new(),
            scratch: Scratch::default(),
        };
        if depends_on_time || splits_values {
            dirichlet.links = links(operator, &nodes, &indices);
        }
        dirichlet.move_to(start);
        Ok(dirichlet)
    }

    pub fn depends_on_time(&self) -> bool {
        self.depends_on_time
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Computes the values at a time; returns the previous ones.
    pub fn move_to(&mut self, time: f64) -> Vec<f64> {
        let mut values = vec![0.0; self.current.len()];
        for group in &self.groups {
            group.values(time, &mut values, &mut self.scratch);
        }
        std::mem::replace(&mut self.current, values)
    }

    /// The most recent values.
    pub fn current(&self) -> &[f64] {
        &self.current
    }

    /// Computes $(I - τA_a) w$ in place.
    pub fn apply(&self, axis: usize, tau: f64, w: &mut Vec<f64>) {
        let next = self.links[axis].iter().zip(&*w).map(|(link, &here)| match link {
            Some(Link { neighbours: [before, behind], couplings: [l, r], reaction }) => {
                here - tau * (l * (w[*before] - here) + r * (w[*behind] - here) + reaction * here)
            }
            None => here,
        });
        *w = next.collect();
    }

    /// Copies `values` to the device; returns them with the nodes.
    pub fn on_device(&mut self, values: &[f64]) -> Result<AtNodes<'_, T, D>, TimeError> {
        let values: Vec<T> = values.iter().map(|&value| T::from_f64(value)).collect();
        self.values.upload(&values)?;
        Ok((&self.nodes, &self.values))
    }
}

/// Returns the nodes on Dirichlet sides in memory order.
fn held_nodes(operator: &Operator) -> Vec<[usize; 3]> {
    let grid = operator.grid();
    let [nx, ny, nz] = grid.nodes();
    let mut nodes = Vec::new();
    for (j, k) in (0..nz).flat_map(|k| (0..ny).map(move |j| (j, k))) {
        let all = operator.is_held(1, j) || operator.is_held(2, k);
        let line = (0..nx).filter(|&i| all || operator.is_held(0, i));
        nodes.extend(line.map(|i| [i, j, k]));
    }
    nodes
}

/// Returns the value at a node: that of the first axis with a Dirichlet side there.
fn value_at<'a>(problem: &'a AdiProblem, operator: &Operator, node: [usize; 3]) -> Option<&'a Expression> {
    let axis = (0..operator.grid().dimension()).find(|&axis| operator.is_held(axis, node[axis]))?;
    match &problem.sides[axis][usize::from(node[axis] > 0)] {
        Side::Dirichlet(formula) => Some(formula),
        _ => None,
    }
}

/// Returns the operator along each axis at nodes on Dirichlet sides of other axes.
fn links(operator: &Operator, nodes: &[[usize; 3]], indices: &[u64]) -> Vec<Vec<Option<Link>>> {
    let grid = operator.grid();
    let position: HashMap<u64, usize> = indices.iter().enumerate().map(|(i, &index)| (index, i)).collect();
    let link = |axis: usize, node: [usize; 3], constant: Option<[[f64; 2]; 3]>| {
        if operator.is_held(axis, node[axis]) {
            return None;
        }
        // A neighbour along an axis without a Dirichlet side at the node lies on the same Dirichlet side.
        let [before, behind] =
            operator.neighbours(axis, node).map(|near| position.get(&(grid.index(near) as u64)).copied());
        let couplings = match constant {
            Some(couplings) => couplings[operator.place(axis, node[axis]) as usize],
            None => operator.couplings_at(axis, node),
        };
        let reaction = operator.reaction_share(node);
        Some(Link { neighbours: [before?, behind?], couplings, reaction })
    };
    let along = |axis| {
        let constant = operator.constant_couplings(axis);
        nodes.iter().map(|&node| link(axis, node, constant)).collect()
    };
    (0..grid.dimension()).map(along).collect()
}

/// The nodes on one Neumann side and the flux there.
pub(crate) struct Neumann<T: Scalar, D: Device> {
    nodes: Buffer<u64, D>,
    values: Buffer<T, D>,
    group: Group,
    /// $2/h$.
    factor: f64,
    scratch: Scratch,
}

impl<T: Scalar, D: Device> Neumann<T, D> {
    /// Collects the sides with a non-zero flux.
    pub fn sides(
        device: &D,
        problem: &AdiProblem,
        operator: &Operator,
        start: f64,
    ) -> Result<Vec<Self>, TimeError> {
        let grid = operator.grid();
        let mut sides = Vec::new();
        for (axis, pair) in problem.sides.iter().enumerate() {
            for (i, side) in [0, grid.nodes()[axis] - 1].into_iter().zip(pair) {
                let Side::Neumann(formula) = side else { continue };
                if formula.as_constant() == Some(0.0) {
                    continue;
                }
                let on_side = grid.all().filter(|node| node[axis] == i);
                let nodes: Vec<[usize; 3]> = on_side.filter(|&node| !operator.is_dirichlet(node)).collect();
                let indices: Vec<u64> = nodes.iter().map(|&node| grid.index(node) as u64).collect();
                let points = nodes.iter().map(|&node| grid.point(node)).collect();
                let members = (0..nodes.len()).collect();
                let mut side = Self {
                    nodes: Buffer::from_host(device, &indices)?,
                    values: Buffer::zeros(device, indices.len())?,
                    group: Group { formula: formula.clone(), members, points },
                    factor: 2.0 / grid.spacing()[axis],
                    scratch: Scratch::default(),
                };
                side.load(start)?;
                sides.push(side);
            }
        }
        Ok(sides)
    }

    fn load(&mut self, time: f64) -> Result<(), TimeError> {
        let mut values = vec![0.0; self.nodes.len()];
        self.group.values(time, &mut values, &mut self.scratch);
        let values: Vec<T> = values.iter().map(|&g| T::from_f64(self.factor * g)).collect();
        Ok(self.values.upload(&values)?)
    }

    /// Returns the nodes and the contribution of the flux at a time.
    pub fn at(&mut self, time: f64) -> Result<AtNodes<'_, T, D>, TimeError> {
        if self.group.depends_on_time() {
            self.load(time)?;
        }
        Ok((&self.nodes, &self.values))
    }
}
