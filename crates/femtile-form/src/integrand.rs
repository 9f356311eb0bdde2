//! Residual, tangent and energy density at a point.

use std::collections::BTreeMap;

use femtile_expression::{Program, ProgramBuilder, Symbol, Value};
use femtile_mesh::{Field, Mesh};

use crate::class::{Class, Dependence, Storage};
use crate::coefficient::PointFunction;
use crate::error::FormError;
use crate::parameter::ByParameter;

/// A side of an interior facet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first cell of the facet, out of which the normal points; in integrals over cells and boundary facets the only
    /// one.
    First,
    /// The second cell of the facet.
    Second,
}

/// An input of an integrand at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Input {
    /// A coordinate.
    Coordinate(usize),
    /// A component of the unit normal of a facet, out of the first cell.
    Normal(usize),
    /// The time.
    Time,
    /// The tag of the cell.
    Tag,
    /// An entry of the state: a value or a gradient of a component of u, numbered as [`Integrand::slot`] does.
    State(usize),
    /// A component of ∂u/∂t.
    Rate(usize),
    /// Data by cell.
    Cell(usize),
    /// A function of the point.
    Point(usize),
}

impl Input {
    /// Returns its value in a graph with a list of inputs, if it is one of them.
    pub(crate) fn value(self, builder: &ProgramBuilder, inputs: &[Self]) -> Option<Value> {
        inputs.iter().position(|&own| own == self).map(|at| builder.input(at))
    }
}

/// Data by cell.
#[derive(Debug, Clone, PartialEq)]
pub enum CellData {
    /// A number for each tag.
    ByTag(BTreeMap<i32, f64>),
    /// One component of a field.
    Field {
        /// The values, shared by the components.
        field: std::sync::Arc<Field>,
        /// The component.
        component: usize,
    },
}

impl CellData {
    /// Returns the value in a cell with a tag; NaN if there is none.
    pub fn value(&self, cell: usize, tag: i32) -> f64 {
        match self {
            Self::ByTag(values) => values.get(&tag).copied().unwrap_or(f64::NAN),
            Self::Field { field, component } => {
                field.values.get(cell * field.n_components + component).copied().unwrap_or(f64::NAN)
            }
        }
    }
}

/// Data of the coefficients of an integrand that are not in its formulas.
#[derive(Debug, Clone, Default)]
pub(crate) struct Data {
    pub cells: Vec<CellData>,
    /// The coefficient of each of `cells`.
    pub of_cells: Vec<Symbol>,
    pub points: Vec<PointFunction>,
    /// The coefficient of each of `points`.
    pub of_points: Vec<Symbol>,
    /// Names of coefficients by tag, with the tags that they know.
    pub tags: Vec<(String, Vec<i32>)>,
    /// Names of coefficients by cell, with their number of cells.
    pub n_cells: Vec<(String, usize)>,
}

/// The integrand of a form at a point: a residual $(f_0, f_1)$ and its tangent, as programs.
///
/// State, residual and directions have one layout, by *slots*: for each side and component the value, then the
/// derivatives along the axes. A slot of the residual is multiplied by the same slot of the test function and summed:
///
/// $$ \text{integrand} = f_0\cdot v + f_1 : \nabla v . $$
#[derive(Debug, Clone)]
pub struct Integrand {
    layout: Layout,
    inputs: Vec<Input>,
    names: Vec<String>,
    data: Data,
    residual: Program,
    tangent: Program,
    entries: Vec<[usize; 2]>,
    derivative: Program,
    energy: Option<Program>,
    by_parameter: Option<ByParameter>,
    /// The inputs that f₁ depends on.
    of_flux: Vec<usize>,
    class: Class,
    storage: Storage,
}

/// Dimension of space, components of u, sides of a facet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub dimension: usize,
    pub n_components: usize,
    pub n_sides: usize,
}

impl Layout {
    pub fn n_slots(self) -> usize {
        self.n_sides * self.n_components * (1 + self.dimension)
    }

    pub fn slot(self, side: Side, component: usize, axis: Option<usize>) -> usize {
        let component = (side as usize) * self.n_components + component;
        component * (1 + self.dimension) + axis.map_or(0, |axis| 1 + axis)
    }
}

/// The graph of an integrand before it is compiled.
pub(crate) struct Graph {
    pub layout: Layout,
    pub builder: ProgramBuilder,
    /// The inputs of the builder, followed by a direction for each slot and the shift.
    pub inputs: Vec<Input>,
    /// The names of `inputs`.
    pub symbols: Vec<Symbol>,
    /// The names of other values.
    pub definitions: Vec<(Symbol, Value)>,
    pub data: Data,
    /// By slots.
    pub residual: Vec<Value>,
    /// The residual without the derivatives of the energy.
    pub others: Vec<Value>,
    pub energy: Option<Value>,
    /// The inputs of the components of the parameter; empty without one.
    pub parameter: Vec<Option<Value>>,
}

impl Graph {
    /// Derives the tangent and its class, and compiles the programs.
    pub fn compile(mut self) -> Integrand {
        let n = self.layout.n_slots();
        let (states, rates, shift) = (self.states(), self.rates(), self.shift());
        let pairs = self.directions();
        let directions: Vec<Value> = (0..n).map(|slot| self.direction(slot)).collect();
        let tangent: Vec<Value> =
            self.residual.iter().map(|&f| self.builder.directional_derivative(f, &pairs)).collect();

        let others = self.others.clone();
        let mut matrix = self.matrix(&others, &states, &rates, shift);
        let is_symmetric = |matrix: &[Value]| {
            (0..n).all(|row| (0..row).all(|column| matrix[row * n + column] == matrix[column * n + row]))
        };
        // The second derivatives of an energy are symmetric, even where their graphs differ.
        let symmetric = is_symmetric(&matrix);
        if self.energy.is_some() {
            let residual = self.residual.clone();
            matrix = self.matrix(&residual, &states, &rates, shift);
        }
        if symmetric {
            for row in 0..n {
                (0..row).for_each(|column| matrix[row * n + column] = matrix[column * n + row]);
            }
        }
        let class = self.class(&matrix);
        let storage = self.storage(&rates);
        let by_parameter = self.by_parameter(&directions);
        let fluxes = (0..n).filter(|slot| !slot.is_multiple_of(1 + self.layout.dimension));
        let mut of_flux: Vec<usize> =
            fluxes.flat_map(|slot| self.builder.inputs_of(self.residual[slot])).collect();
        of_flux.sort_unstable();
        of_flux.dedup();
        let entries: Vec<[usize; 2]> = (0..n * n)
            .filter(|&at| self.builder.as_constant(matrix[at]) != Some(0.0))
            .map(|at| [at / n, at % n])
            .collect();
        let values: Vec<Value> = entries.iter().map(|[row, column]| matrix[row * n + column]).collect();
        Integrand {
            layout: self.layout,
            residual: self.builder.finish(&self.residual),
            tangent: self.builder.finish(&tangent),
            derivative: self.builder.finish(&values),
            energy: self.energy.map(|energy| self.builder.finish(&[energy])),
            entries,
            by_parameter,
            of_flux,
            class,
            storage,
            inputs: self.inputs,
            names: self.symbols.iter().map(Symbol::to_string).collect(),
            data: self.data,
        }
    }

    /// The inputs of the state, by slots.
    fn states(&self) -> Vec<Option<Value>> {
        let slots = 0..self.layout.n_slots();
        slots.map(|slot| Input::State(slot).value(&self.builder, &self.inputs)).collect()
    }

    /// The inputs of the rates, by slots; those of gradients have none.
    fn rates(&self) -> Vec<Option<Value>> {
        let n_entries = 1 + self.layout.dimension;
        let of_slot = |slot: usize| {
            let rate = slot.is_multiple_of(n_entries).then_some(Input::Rate(slot / n_entries));
            rate.and_then(|rate| rate.value(&self.builder, &self.inputs))
        };
        (0..self.layout.n_slots()).map(of_slot).collect()
    }

    /// The input of the shift.
    fn shift(&self) -> Value {
        self.builder.input(self.inputs.len() + self.layout.n_slots())
    }

    /// The input of the direction of a slot.
    fn direction(&self, slot: usize) -> Value {
        self.builder.input(self.inputs.len() + slot)
    }

    /// The direction of the tangent: inputs of the state and of rates, each with its change.
    pub fn directions(&mut self) -> Vec<(Value, Value)> {
        let (states, rates, shift) = (self.states(), self.rates(), self.shift());
        let mut pairs = Vec::new();
        for (slot, (state, rate)) in states.into_iter().zip(rates).enumerate() {
            let direction = self.direction(slot);
            pairs.extend(state.map(|state| (state, direction)));
            if let Some(rate) = rate {
                pairs.push((rate, self.builder.mul(shift, direction)));
            }
        }
        pairs
    }

    /// The derivatives of values by the slots of the state, by rows.
    fn matrix(
        &mut self,
        values: &[Value],
        states: &[Option<Value>],
        rates: &[Option<Value>],
        shift: Value,
    ) -> Vec<Value> {
        let zero = self.builder.constant(0.0);
        let mut matrix = Vec::with_capacity(values.len() * states.len());
        for &f in values {
            for (state, rate) in states.iter().zip(rates) {
                let by_state = state.map_or(zero, |state| self.builder.derivative(f, state));
                let by_rate = rate.map_or(zero, |rate| self.builder.derivative(f, rate));
                let by_rate = self.builder.mul(shift, by_rate);
                matrix.push(self.builder.add(by_state, by_rate));
            }
        }
        matrix
    }

    /// How the rates, by slots, enter the residual.
    fn storage(&mut self, rates: &[Option<Value>]) -> Storage {
        let Layout { dimension, n_components, .. } = self.layout;
        let (residual, mut storage) = (self.residual.clone(), Storage::none(n_components));
        for (slot, rate) in rates.iter().enumerate() {
            let Some(rate) = *rate else { continue };
            for &f in &residual {
                let capacity = self.builder.derivative(f, rate);
                let dependence = self.dependence(capacity);
                storage.components[slot / (1 + dimension) % n_components] |= dependence != Dependence::Zero;
                storage.capacity = storage.capacity.max(dependence);
                let reads = self.builder.inputs_of(capacity);
                storage.is_in_time |=
                    reads.into_iter().any(|input| self.inputs.get(input) == Some(&Input::Time));
            }
        }
        storage
    }

    fn dependence(&self, value: Value) -> Dependence {
        if self.builder.as_constant(value) == Some(0.0) {
            return Dependence::Zero;
        }
        let of_input = |position: usize| match self.inputs.get(position) {
            Some(Input::State(_) | Input::Rate(_)) => Dependence::WithState,
            Some(Input::Coordinate(_) | Input::Normal(_) | Input::Point(_)) => Dependence::ByPoint,
            Some(Input::Tag | Input::Cell(_)) => Dependence::ByCell,
            Some(Input::Time) | None => Dependence::Constant,
        };
        self.builder.inputs_of(value).into_iter().map(of_input).max().unwrap_or(Dependence::Constant)
    }

    fn class(&self, matrix: &[Value]) -> Class {
        let Layout { dimension: d, n_components, .. } = self.layout;
        let n = self.layout.n_slots();
        let at = |row: usize, column: usize| matrix[row * n + column];
        let is_zero = |row, column| self.builder.as_constant(at(row, column)) == Some(0.0);
        let component = |slot: usize| slot / (1 + d) % n_components;
        let side = |slot: usize| slot / (1 + d) / n_components;
        let is_value = |slot: usize| slot.is_multiple_of(1 + d);
        let all = || (0..n).flat_map(|row| (0..n).map(move |column| (row, column)));
        let couples = |of: &dyn Fn(usize) -> usize| {
            all().any(|(row, column)| of(row) != of(column) && !is_zero(row, column))
        };
        let block = |of_value: bool, by_value: bool| {
            let is_in =
                |&(row, column): &(usize, usize)| is_value(row) == of_value && is_value(column) == by_value;
            let dependences = all().filter(is_in).map(|(row, column)| self.dependence(at(row, column)));
            dependences.max().unwrap_or(Dependence::Zero)
        };
        let is_multiple_of_identity = |first: usize| {
            let inside = (1..=d).flat_map(|i| (1..=d).map(move |j| (i, j)));
            inside.into_iter().all(|(i, j)| match i == j {
                true => at(first + i, first + j) == at(first + 1, first + 1),
                false => is_zero(first + i, first + j),
            })
        };
        let bits = |is_in: &dyn Fn(usize, usize) -> bool| {
            let found = all().filter(|&(row, column)| is_in(row, column));
            found.fold(0, |bits: u16, (row, _)| bits | 1 << component(row))
        };
        let is_positive = |row, column| {
            row == column && self.builder.as_constant(at(row, column)).is_none_or(|value| value > 0.0)
        };
        Class {
            present: bits(&|row, column| !is_zero(row, column)),
            positive: bits(&is_positive),
            symmetric: all().all(|(row, column)| at(row, column) == at(column, row)),
            couples_components: couples(&component),
            couples_sides: couples(&side),
            reaction: block(true, true),
            convection: block(true, false),
            drift: block(false, true),
            diffusion: block(false, false),
            isotropic: !couples(&component) && (0..n).step_by(1 + d).all(is_multiple_of_identity),
        }
    }
}

impl Integrand {
    /// Returns the number of slots: sides × components × (1 + dimension).
    pub fn n_slots(&self) -> usize {
        self.layout.n_slots()
    }

    /// Returns the slot of a component on a side: of its value, or of its derivative along an axis.
    pub fn slot(&self, side: Side, component: usize, axis: Option<usize>) -> usize {
        self.layout.slot(side, component, axis)
    }

    /// Returns the dimension of space.
    pub fn dimension(&self) -> usize {
        self.layout.dimension
    }

    /// Returns the number of sides: two for interior facets.
    pub fn n_sides(&self) -> usize {
        self.layout.n_sides
    }

    /// Returns the inputs at a point. All programs have the same list of inputs: these, then the direction (δu, ∇δu) by
    /// slots, then the shift α = ∂(∂u/∂t)/∂u of a time discretization; those that a program does not read may have any
    /// value.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Returns the length of the list of inputs of each program.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len() + self.n_slots() + 1
    }

    /// Returns the inputs that the flux $f_1$ depends on, with their names.
    pub fn inputs_of_flux(&self) -> impl Iterator<Item = (Input, &str)> {
        self.of_flux.iter().filter_map(|&at| Some((*self.inputs.get(at)?, self.names.get(at)?.as_str())))
    }

    /// Returns the names of [`Self::inputs`].
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the data by cell that [`Input::Cell`] numbers.
    pub fn cell_data(&self) -> &[CellData] {
        &self.data.cells
    }

    /// Returns the functions that [`Input::Point`] numbers.
    pub fn point_data(&self) -> &[PointFunction] {
        &self.data.points
    }

    /// Returns the program of $(f_0, f_1)$, by slots.
    pub fn residual(&self) -> &Program {
        &self.residual
    }

    /// Returns the program of the tangent along the direction, (δf₀, δf₁) by slots.
    pub fn tangent(&self) -> &Program {
        &self.tangent
    }

    /// Returns the program of the entries of $D'$ that are not identically zero, in the order of [`Self::entries`].
    pub fn derivative(&self) -> &Program {
        &self.derivative
    }

    /// Returns row and column (slots) of each output of [`Self::derivative`].
    pub fn entries(&self) -> &[[usize; 2]] {
        &self.entries
    }

    /// Returns the program of the energy density, of equations that have one.
    pub fn energy(&self) -> Option<&Program> {
        self.energy.as_ref()
    }

    /// Returns the derivatives by the parameter of the form, if it has one on which the integrand depends.
    pub fn by_parameter(&self) -> Option<&ByParameter> {
        self.by_parameter.as_ref()
    }

    /// Returns the structure of the tangent.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// Returns how the rate of u enters the residual.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns whether the residual depends on t.
    pub fn is_in_time(&self) -> bool {
        self.reads_time(&self.residual)
    }

    /// Returns whether entries of the tangent depend on t.
    pub fn is_tangent_in_time(&self) -> bool {
        self.reads_time(&self.derivative)
    }

    fn reads_time(&self, program: &Program) -> bool {
        let time = self.inputs.iter().position(|input| *input == Input::Time);
        time.is_some_and(|at| program.reads(at))
    }

    /// Checks that the coefficients have a value for every cell of a mesh.
    ///
    /// # Errors
    /// [`FormError::Coefficient`] for a tag without a value, or a field of another number of cells.
    pub fn check(&self, mesh: &Mesh) -> Result<(), FormError> {
        for (name, n_values) in &self.data.n_cells {
            if *n_values != mesh.n_cells() {
                let message = format!("a field of {n_values} cells on a mesh of {} cells", mesh.n_cells());
                return Err(FormError::Coefficient { coefficient: name.clone(), message });
            }
        }
        let mut tags: Vec<i32> = if mesh.cell_tags.is_empty() { vec![0] } else { mesh.cell_tags.clone() };
        tags.sort_unstable();
        tags.dedup();
        for (name, known) in &self.data.tags {
            if let Some(tag) = tags.iter().find(|tag| !known.contains(tag)) {
                let known: Vec<String> = known.iter().map(i32::to_string).collect();
                let message =
                    format!("no value for cells with tag {tag}; tags with a value: {}", known.join(", "));
                return Err(FormError::Coefficient { coefficient: name.clone(), message });
            }
        }
        Ok(())
    }
}
