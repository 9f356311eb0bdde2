//! Several outputs of named inputs, computed together.

mod builder;
mod reciprocal;
mod split;

pub use builder::{ProgramBuilder, Value};
pub use split::Split;

use crate::cuda;
use crate::graph::evaluate;
use crate::node::{Id, Node, Variable};
use crate::tape::{Code, TapeScratch};

/// Formulas of named inputs with several outputs; what they share is computed once. Made by a [`ProgramBuilder`].
///
/// ```
/// use femtile_expression::{ProgramBuilder, ProgramInput, TapeScratch};
/// let mut builder = ProgramBuilder::new(&["V", "w"])?;
/// builder.define("a", "0.1")?;
/// builder.define("excitation", "V*(V - a)*(1 - V)")?;
/// let rate_of_v = builder.expression("excitation - w")?;
/// let rate_of_w = builder.expression("0.01*(V - 2*w)")?;
/// let program = builder.finish(&[rate_of_v, rate_of_w]);
///
/// let (v, mut rates_of_v, mut rates_of_w) = ([0.0, 0.1, 1.0], [0.0; 3], [0.0; 3]);
/// let inputs = [ProgramInput::Values(&v), ProgramInput::Uniform(0.5)];
/// program.run(&mut [&mut rates_of_v, &mut rates_of_w], &inputs, &mut TapeScratch::default());
/// assert_eq!(rates_of_v, [-0.5, -0.5, -0.5]);
/// # Ok::<(), femtile_expression::ExpressionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    n_inputs: usize,
    nodes: Vec<Node>,
    outputs: Vec<Id>,
    code: Code,
}

/// The values of one input of a [`Program`] at some points.
#[derive(Debug, Clone, Copy)]
pub enum ProgramInput<'a> {
    /// The same at all points.
    Uniform(f64),
    /// A value for each point.
    Values(&'a [f64]),
}

/// The numbers of a CUDA function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// `float`
    F32,
    /// `double`
    F64,
}

impl Program {
    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Whether an output depends on the input at a position.
    pub fn reads(&self, input: usize) -> bool {
        self.nodes
            .iter()
            .any(|node| matches!(node, Node::Variable(Variable::Other(own)) if usize::from(*own) == input))
    }

    /// Number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Number of operations and calls of functions at a point.
    pub fn n_operations(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_operation()).count()
    }

    /// Computes the outputs at one point.
    ///
    /// # Shapes
    /// `inputs: [n_inputs]`, `outputs: [n_outputs]`
    /// # Panics
    /// When the lengths differ.
    pub fn eval(&self, inputs: &[f64], outputs: &mut [f64]) {
        self.check(inputs.len(), outputs.len());
        let mut values = vec![0.0; self.nodes.len()];
        evaluate(&self.nodes, [f64::NAN; 3], f64::NAN, inputs, &mut values);
        for (output, &root) in outputs.iter_mut().zip(&self.outputs) {
            *output = values[root as usize];
        }
    }

    /// Computes the outputs at many points, with the same bits as [`Program::eval`].
    ///
    /// # Shapes
    /// `outputs: [n_outputs][n]` with any n, `inputs: [n_inputs][n]`, where they are not uniform.
    /// # Panics
    /// When the lengths differ.
    pub fn run(&self, outputs: &mut [&mut [f64]], inputs: &[ProgramInput<'_>], scratch: &mut TapeScratch) {
        self.check(inputs.len(), outputs.len());
        let n = outputs.first().map_or(0, |output| output.len());
        for (i, input) in inputs.iter().enumerate() {
            if let ProgramInput::Values(values) = input {
                assert!(values.len() == n, "Program: {} values of input {i} for {n} points", values.len());
            }
        }
        let input = |variable| match variable {
            Variable::Other(position) => inputs[usize::from(position)],
            _ => ProgramInput::Uniform(f64::NAN),
        };
        self.code.run(outputs, &input, scratch);
    }

    /// Text of a CUDA C function `void name(T* out, const T* in)` that computes the outputs at one point, where `T` is
    /// `double` or `float`.
    ///
    /// It calls functions of [`Expression::CUDA_HEADER`](crate::Expression::CUDA_HEADER), which comes before it. All
    /// inputs are read before the first output is written, so `out` and `in` may be one array. Arrays of a fixed size
    /// that are local to a kernel stay in registers. Products may be fused with sums. The same text is C++ for a host
    /// where `__device__` means nothing and `__forceinline__` means `inline`.
    pub fn cuda_function(&self, name: &str, precision: Precision) -> String {
        cuda::program_function(name, &self.nodes, &self.outputs, precision)
    }

    fn check(&self, n_inputs: usize, n_outputs: usize) {
        assert!(n_inputs == self.n_inputs, "Program: {n_inputs} inputs, not {}", self.n_inputs);
        assert!(n_outputs == self.outputs.len(), "Program: {n_outputs} outputs, not {}", self.outputs.len());
    }
}
