use super::Program;
use super::reciprocal::avoid_divisions;
use crate::array::{Array, Shape, SpaceDerivative};
use crate::derivative::{derivative_in, directional_derivative_in, gradient_in};
use crate::error::ExpressionError;
use crate::expression::Expression;
use crate::graph::Builder;
use crate::names::Scope;
use crate::node::{Binary, Id, Node, Unary, Variable};
use crate::parser::{self, Sort};
use crate::tape::Code;

/// A number of a [`ProgramBuilder`]: an input, a definition or what is computed from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(pub(crate) Id);

/// Collects the formulas of a [`Program`].
///
/// Texts use the grammar of [`Expression`](crate::Expression) with the names of inputs and of what has been defined
/// before; `x`, `y`, `z` and `t` mean nothing unless they are among these. A [`Value`] belongs to the builder that made
/// it.
#[derive(Debug)]
pub struct ProgramBuilder {
    pub(crate) builder: Builder,
    scope: Scope,
    inputs: Vec<Value>,
}

impl ProgramBuilder {
    /// Starts a program with named inputs.
    ///
    /// # Errors
    /// A name is not `[A-Za-z_][A-Za-z0-9_]*`, is that of a function, constant or operator, or is given twice.
    pub fn new(inputs: &[&str]) -> Result<Self, ExpressionError> {
        let mut made = Self { builder: Builder::default(), scope: Scope::default(), inputs: Vec::new() };
        for (i, name) in inputs.iter().enumerate() {
            let position =
                u16::try_from(i).map_err(|_| *ExpressionError::new(0..0, "more than 65,536 names"))?;
            let input = Value(made.builder.variable(Variable::Other(position)));
            made.bind(name, input)?;
            made.inputs.push(input);
        }
        Ok(made)
    }

    /// Starts a program with inputs that have no names, whose texts may have vectors and matrices: the product `A*b`, the scalar
    /// products `a.b` and `A:B`, the transpose `A'`, entries `a[0]` and `A[0, 1]`, `[a, b]`, `det`, `inv`, `tr`, `sym`, `dev`, and
    /// `grad` and `div` after [`Self::differentiate_in_space`].
    ///
    /// # Panics
    /// With more than 65,536 inputs.
    pub fn with_arrays(n_inputs: usize) -> Self {
        let mut made = Self { builder: Builder::stable(), scope: Scope::with_arrays(), inputs: Vec::new() };
        for position in 0..n_inputs {
            let position = u16::try_from(position).expect("at most 65,536 inputs");
            made.inputs.push(Value(made.builder.variable(Variable::Other(position))));
        }
        made
    }

    /// Gives `grad` and `div` their meaning: inputs that change from point to point with their derivatives along each axis, and
    /// inputs without derivatives with the reason; all others are constant in space.
    pub fn differentiate_in_space(
        &mut self,
        dimension: usize,
        slopes: &[(Value, Vec<Value>)],
        unknown: &[(Value, String)],
    ) {
        let slopes =
            slopes.iter().map(|(input, slopes)| (input.0, slopes.iter().map(|slope| slope.0).collect()));
        let unknown = unknown.iter().map(|(input, reason)| (input.0, reason.clone()));
        let (slopes, unknown) = (slopes.collect(), unknown.collect());
        self.scope.space = Some(SpaceDerivative { dimension, curvature: None, slopes, unknown });
    }

    /// After [`Self::differentiate_in_space`] with three axes makes these cylindrical: the distance r from an axis, the place along
    /// it, and around it, where nothing changes but the direction of r. `curvature` is 1/r.
    pub fn turn_about_axis(&mut self, curvature: Value) {
        if let Some(space) = &mut self.scope.space {
            space.curvature = Some(curvature.0);
        }
    }

    /// Reads a formula that may be a vector or a matrix.
    ///
    /// # Errors
    /// As [`Expression::parse`](crate::Expression::parse), and for shapes that do not fit.
    pub fn array(&mut self, text: &str) -> Result<Array, ExpressionError> {
        parser::parse_array(text, &mut self.builder, &self.scope).map_err(|error| *error)
    }

    /// Reads a formula that must have a shape; `what` names it in messages.
    ///
    /// # Errors
    /// As [`Self::array`], and for another shape.
    pub fn array_of(&mut self, text: &str, wanted: Shape, what: &str) -> Result<Array, ExpressionError> {
        let array = self.array(text)?;
        match array.shape() {
            found if found == wanted => Ok(array),
            found => {
                let message = format!("this is {found}, where {what} needs {wanted}");
                Err(*ExpressionError::new(0..text.len(), message))
            }
        }
    }

    /// Reads a formula and gives it a name that later texts may use; a constant is a formula that is a number.
    ///
    /// # Errors
    /// As [`ProgramBuilder::expression`] and [`ProgramBuilder::bind`].
    pub fn define(&mut self, name: &str, text: &str) -> Result<Value, ExpressionError> {
        let value = self.expression(text)?;
        self.bind(name, value)?;
        Ok(value)
    }

    /// Reads a formula.
    ///
    /// # Errors
    /// As [`Expression::parse`](crate::Expression::parse).
    pub fn expression(&mut self, text: &str) -> Result<Value, ExpressionError> {
        let id = parser::parse(text, Sort::Number, &mut self.builder, &self.scope);
        id.map(Value).map_err(|error| *error)
    }

    /// Gives a value a name that later texts may use.
    ///
    /// # Errors
    /// As [`ProgramBuilder::new`], with an empty span at 0.
    pub fn bind(&mut self, name: &str, value: impl Into<Array>) -> Result<(), ExpressionError> {
        self.scope.bind(name, value.into()).map_err(|error| *error)
    }

    /// Returns the number with a name, if there is one.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.scope.value(name).and_then(Array::as_number).map(Value)
    }

    /// Returns the input at a position.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn input(&self, position: usize) -> Value {
        self.inputs[position]
    }

    /// Returns a number.
    pub fn constant(&mut self, value: f64) -> Value {
        Value(self.builder.constant(value))
    }

    /// Derivative of a value by an input or by another value; what does not depend on `by` is constant.
    ///
    /// At kinks and jumps as [`Expression::derivative`](crate::Expression::derivative).
    pub fn derivative(&mut self, of: Value, by: Value) -> Value {
        Value(derivative_in(&mut self.builder, of.0, by.0))
    }

    /// Derivatives of a value by inputs or other values, none of which depends on another, by one reverse accumulation.
    ///
    /// At kinks and jumps as [`Expression::derivative`](crate::Expression::derivative).
    pub fn gradient(&mut self, of: Value, by: &[Value]) -> Vec<Value> {
        let by: Vec<Id> = by.iter().map(|by| by.0).collect();
        gradient_in(&mut self.builder, of.0, &by).into_iter().map(Value).collect()
    }

    /// Derivative of a value along a direction given by pairs of a value $v_i$ and its rate $s_i$,
    /// $\sum_i s_i\,\partial\,\mathrm{of}/\partial v_i$, by one forward accumulation.
    ///
    /// At kinks and jumps as [`Expression::derivative`](crate::Expression::derivative).
    pub fn directional_derivative(&mut self, of: Value, direction: &[(Value, Value)]) -> Value {
        let direction: Vec<(Id, Id)> = direction.iter().map(|(by, seed)| (by.0, seed.0)).collect();
        Value(directional_derivative_in(&mut self.builder, of.0, &direction))
    }

    /// Copies an expression, with a value in place of each of its variables.
    ///
    /// # Cost
    /// Linear in the number of operations of the expression.
    pub fn import(&mut self, expression: &Expression, mut value_of: impl FnMut(Variable) -> Value) -> Value {
        let nodes = expression.nodes();
        let mut ids: Vec<Id> = Vec::with_capacity(nodes.len());
        for &node in nodes {
            ids.push(match node {
                Node::Variable(variable) => value_of(variable).0,
                other => self.builder.make(other.rename(|id| ids[id as usize])),
            });
        }
        Value(ids[ids.len() - 1])
    }

    /// Copies values with others in place of some of what they are computed from: pairs of a value and its substitute.
    ///
    /// # Cost
    /// Linear in the number of operations that were made before.
    pub fn substitute(&mut self, values: &[Value], pairs: &[(Value, Value)]) -> Vec<Value> {
        let n = values.iter().map(|value| value.0 + 1).max().unwrap_or(0);
        let mut copies: Vec<Id> = (0..n).collect();
        for id in 0..n {
            let node = self.builder.node(id);
            if let Some((_, by)) = pairs.iter().find(|(value, _)| value.0 == id) {
                copies[id as usize] = by.0;
            } else if node.operands().any(|operand| copies[operand as usize] != operand) {
                copies[id as usize] = self.builder.make(node.rename(|operand| copies[operand as usize]));
            }
        }
        values.iter().map(|value| Value(copies[value.0 as usize])).collect()
    }

    /// Returns `then` if `value` equals the number within rounding, else `otherwise`.
    pub fn select_equal(&mut self, value: Value, number: f64, then: Value, otherwise: Value) -> Value {
        let number = self.builder.constant(number);
        let is_equal = self.builder.binary(Binary::Equal, value.0, number);
        Value(self.builder.select(is_equal, then.0, otherwise.0))
    }

    /// Returns the number that a value is, if it depends on no input.
    pub fn as_constant(&self, value: Value) -> Option<f64> {
        self.builder.value(value.0)
    }

    /// Returns the positions of the inputs that a value depends on, ascending.
    pub fn inputs_of(&self, value: Value) -> Vec<usize> {
        let needed = self.builder.ancestors(value.0);
        let is_needed = |input: &Value| needed.get(input.0 as usize).copied().unwrap_or(false);
        (0..self.inputs.len()).filter(|&position| is_needed(&self.inputs[position])).collect()
    }

    /// $a + b$.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Add, a, b)
    }

    /// $a - b$.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Subtract, a, b)
    }

    /// $a b$.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Multiply, a, b)
    }

    /// $a / b$.
    pub fn div(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Divide, a, b)
    }

    /// $-a$.
    pub fn neg(&mut self, a: Value) -> Value {
        self.unary(Unary::Negate, a)
    }

    /// $\sqrt a$.
    pub fn sqrt(&mut self, a: Value) -> Value {
        self.unary(Unary::Sqrt, a)
    }

    /// $e^a$.
    pub fn exp(&mut self, a: Value) -> Value {
        self.unary(Unary::Exp, a)
    }

    /// $e^a - 1$, accurate near 0.
    pub fn expm1(&mut self, a: Value) -> Value {
        self.unary(Unary::Expm1, a)
    }

    /// The program that computes these values, in this order; what they do not need is left out.
    pub fn finish(&self, outputs: &[Value]) -> Program {
        let roots: Vec<Id> = outputs.iter().map(|value| value.0).collect();
        let (nodes, outputs) = self.builder.prune(&roots);
        let (nodes, outputs) = avoid_divisions(&nodes, &outputs);
        Program { n_inputs: self.inputs.len(), code: Code::new(&nodes, &outputs), nodes, outputs }
    }

    fn unary(&mut self, op: Unary, a: Value) -> Value {
        Value(self.builder.unary(op, a.0))
    }

    fn binary(&mut self, op: Binary, a: Value, b: Value) -> Value {
        Value(self.builder.binary(op, a.0, b.0))
    }
}
