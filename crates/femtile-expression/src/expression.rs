use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::str::FromStr;

use crate::array::{Array, Shape};
use crate::cuda;
use crate::derivative;
use crate::display;
use crate::error::ExpressionError;
use crate::graph::{Builder, Graph};
use crate::names::{Names, Scope};
use crate::node::{Binary, Node, Unary, Variable};
use crate::parser::{self, Sort};
use crate::tape::Tape;

/// A number that depends on the coordinates, such as `sin(pi*x)*y`.
///
/// Kept simplified and with every repeated part once; two expressions are equal when they simplify to the same
/// operations in the same order. `Display` writes a text that parses back to an equal expression, as long as that
/// text keeps the parser's limits (10,000 terms, 200 levels). Cheap to clone and to send to other threads.
///
/// ```
/// use femtile_expression::{Expression, Variable};
/// let u: Expression = "x^2*sin(pi*y)".parse()?;
/// assert_eq!(u.derivative(Variable::X).to_string(), "2*x*sin(pi*y)");
/// assert_eq!(u.eval([3.0, 0.5, 0.0]), 9.0);
/// # Ok::<(), femtile_expression::ExpressionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    graph: Graph,
}

impl Expression {
    /// Reads an expression; the grammar is in the documentation of this crate.
    ///
    /// # Errors
    /// [`ExpressionError`] with the bytes that it is about: an unknown name (with the nearest known one), a missing
    /// operand, operator or parenthesis, a wrong number of arguments, a comparison where a number is expected, more
    /// than 10,000 terms or 200 levels of nesting.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        Self::parse_with(text, &Names::default())
    }

    /// Reads an expression that may depend on the time `t` as well.
    ///
    /// Its value is NaN until [`Expression::at_time`] or an evaluation has given the time.
    ///
    /// ```
    /// # use femtile_expression::Expression;
    /// let u = Expression::parse_in_time("x*exp(-t)")?;
    /// assert_eq!(u.at_time(0.0).to_string(), "x");
    /// # Ok::<(), femtile_expression::ExpressionError>(())
    /// ```
    /// # Errors
    /// As [`Expression::parse`].
    pub fn parse_in_time(text: &str) -> Result<Self, ExpressionError> {
        Self::parse_with(text, &Names { time: true, others: &[] })
    }

    /// Reads an expression that may use the time and further inputs by name.
    ///
    /// Input `i` of [`Names::others`] is [`Variable::Other`]`(i)`. Expressions that are added, multiplied or divided
    /// should have been read with the same names, since inputs are told apart by position.
    ///
    /// ```
    /// # use femtile_expression::{Expression, Names, Variable};
    /// let sigma = Expression::parse_with("1 + u^2", &Names { time: false, others: &["u"] })?;
    /// assert_eq!(sigma.eval_with([0.0; 3], 0.0, &[3.0]), 10.0);
    /// assert_eq!(sigma.derivative(Variable::Other(0)).to_string(), "2*u");
    /// # Ok::<(), femtile_expression::ExpressionError>(())
    /// ```
    /// # Errors
    /// As [`Expression::parse`]; an error about one of the names has an empty span at 0.
    pub fn parse_with(text: &str, names: &Names<'_>) -> Result<Self, ExpressionError> {
        let mut builder = Builder::with_others(names.others);
        let mut scope = Scope::of_points(names.time);
        for (i, name) in names.others.iter().enumerate() {
            let position =
                u16::try_from(i).map_err(|_| *ExpressionError::new(0..0, "more than 65,536 names"))?;
            let input = Array::number(builder.variable(Variable::Other(position)));
            scope.bind(name, input).map_err(|error| *error)?;
        }
        match parser::parse(text, Sort::Number, &mut builder, &scope) {
            Ok(root) => Ok(Self { graph: builder.finish(root) }),
            Err(error) => Err(*error),
        }
    }

    /// Reads a vector or a matrix of expressions that may depend on the time: its shape and its entries, those of a matrix by rows.
    ///
    /// ```
    /// # use femtile_expression::{Expression, Shape};
    /// let (shape, entries) = Expression::parse_array("2*[x, t*y]")?;
    /// assert_eq!(shape, Shape::Vector(2));
    /// assert_eq!(entries[1].at_time(3.0).eval([0.0, 1.0, 0.0]), 6.0);
    /// # Ok::<(), femtile_expression::ExpressionError>(())
    /// ```
    /// # Errors
    /// As [`Expression::parse`], and for shapes that do not fit.
    pub fn parse_array(text: &str) -> Result<(Shape, Vec<Self>), ExpressionError> {
        let (mut builder, mut scope) = (Builder::default(), Scope::of_points(true));
        scope.has_arrays = true;
        let array = parser::parse_array(text, &mut builder, &scope).map_err(|error| *error)?;
        let entries = array.entries().iter().map(|entry| Self { graph: builder.finish(entry.0) }).collect();
        Ok((array.shape(), entries))
    }

    /// The same with a number for the time.
    ///
    /// # Cost
    /// Linear in the number of operations.
    pub fn at_time(&self, t: f64) -> Self {
        if !self.uses(Variable::T) {
            return self.clone();
        }
        let mut builder = self.graph.empty_builder();
        let mut ids = Vec::with_capacity(self.graph.nodes().len());
        for &node in self.graph.nodes() {
            let id = match node {
                Node::Variable(Variable::T) => builder.constant(t),
                other => builder.make(other.rename(|id| ids[id as usize])),
            };
            ids.push(id);
        }
        Self { graph: builder.finish(ids[ids.len() - 1]) }
    }

    /// The same with a multiple of a variable in its place.
    ///
    /// # Cost
    /// Linear in the number of operations.
    pub fn with_multiple(&self, variable: Variable, factor: f64) -> Self {
        let mut builder = self.graph.empty_builder();
        let mut ids = Vec::with_capacity(self.graph.nodes().len());
        for &node in self.graph.nodes() {
            let id = match node {
                Node::Variable(own) if own == variable => {
                    let [factor, own] = [builder.constant(factor), builder.variable(own)];
                    builder.binary(Binary::Multiply, factor, own)
                }
                other => builder.make(other.rename(|id| ids[id as usize])),
            };
            ids.push(id);
        }
        Self { graph: builder.finish(ids[ids.len() - 1]) }
    }

    /// The expression that has this value everywhere.
    pub fn constant(value: f64) -> Self {
        let mut builder = Builder::default();
        let root = builder.constant(value);
        Self { graph: builder.finish(root) }
    }

    /// The expression that is one variable.
    pub fn variable(variable: Variable) -> Self {
        let mut builder = Builder::default();
        let root = builder.variable(variable);
        Self { graph: builder.finish(root) }
    }

    /// Its value, if it depends on no variable.
    pub fn as_constant(&self) -> Option<f64> {
        let depends = self.graph.nodes().iter().any(|node| matches!(node, Node::Variable(_)));
        (!depends).then(|| self.eval([0.0; 3]))
    }

    /// Its partial derivative by one variable.
    ///
    /// Exact wherever the expression is differentiable. At kinks and jumps it is one of the one-sided derivatives or
    /// their middle: the slope of `sign`, `floor` and `ceil` is 0 everywhere, that of `abs` is `sign` (0 at 0),
    /// `min`, `max` and `if` give the slope of the branch that is taken. Where the slope is infinite (`sqrt` at 0) or
    /// its formula is 0/0 (`hypot`, `atan2` at the origin; `a^b` with `b` not constant at `a` = 0) the value is an
    /// infinity or NaN.
    ///
    /// # Cost
    /// Linear in the number of operations; the parts of the original are shared, not repeated.
    pub fn derivative(&self, variable: Variable) -> Self {
        Self { graph: derivative::derivative(&self.graph, variable) }
    }

    /// Its value at a point, for a single point; for many use [`Expression::tape`], whose values are the same bits.
    ///
    /// The time and other inputs have no value here: NaN.
    pub fn eval(&self, point: [f64; 3]) -> f64 {
        self.graph.eval(point, f64::NAN, &[])
    }

    /// Its value at a point and a time, with the values of the other inputs in the order of their names.
    ///
    /// An input without a value is NaN.
    pub fn eval_with(&self, point: [f64; 3], time: f64, others: &[f64]) -> f64 {
        self.graph.eval(point, time, others)
    }

    /// The number of names besides the coordinates and the time that it was read with, used or not.
    pub fn n_others(&self) -> usize {
        self.graph.others().len()
    }

    /// Returns `true` where the expression depends on a variable after simplification: `0*x` does not.
    pub fn uses(&self, variable: Variable) -> bool {
        self.graph.uses(variable)
    }

    /// Compiles it for evaluation at many points.
    pub fn tape(&self) -> Tape {
        Tape::new(&self.graph)
    }

    /// Functions that the text of [`Expression::cuda_function`] calls: it comes after this one.
    pub const CUDA_HEADER: &'static str = cuda::HEADER;

    /// Text of a CUDA C function `double name(double x, double y, double z)` that computes it.
    ///
    /// A parameter `double t` follows where the expression depends on the time, then one for each of the other names
    /// that it was read with, used or not, in their order: `double other_0, double other_1, …`.
    ///
    /// The same text is C++ for a host where `__device__` means nothing and `__forceinline__` means `inline`. Its
    /// values differ from those of [`Expression::eval`] by what the mathematical libraries differ, and by nothing
    /// where only arithmetic is used.
    ///
    /// ```
    /// # use femtile_expression::Expression;
    /// let text = Expression::parse("x^2 + sin(y)")?.cuda_function("source");
    /// assert!(text.starts_with("__device__ __forceinline__ double source(double x, double y, double z) {"));
    /// # Ok::<(), femtile_expression::ExpressionError>(())
    /// ```
    pub fn cuda_function(&self, name: &str) -> String {
        cuda::function(name, &self.graph)
    }

    /// Text of a CUDA C function `void name(double* out, double x, double y, double z)` that puts the value of each
    /// expression into an array and computes once what they share; else as [`Expression::cuda_function`], with `t`
    /// where any of them depends on the time and the longest of their lists of names.
    pub fn cuda_array_function(name: &str, expressions: &[&Self]) -> String {
        let graphs: Vec<&Graph> = expressions.iter().map(|expression| &expression.graph).collect();
        cuda::array_function(name, &graphs)
    }

    /// Its nodes in the order of evaluation; the last is the whole.
    pub(crate) fn nodes(&self) -> &[Node] {
        self.graph.nodes()
    }

    fn combine(&self, op: Binary, other: &Self) -> Self {
        let mut builder = Builder::default();
        let left = builder.import(&self.graph)[self.graph.root() as usize];
        let right = builder.import(&other.graph)[other.graph.root() as usize];
        let root = builder.binary(op, left, right);
        Self { graph: builder.finish(root) }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display::write(&self.graph, f)
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        Self::parse(text)
    }
}

impl Neg for &Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        let mut builder = Builder::default();
        let inner = builder.import(&self.graph)[self.graph.root() as usize];
        let root = builder.unary(Unary::Negate, inner);
        Expression { graph: builder.finish(root) }
    }
}

impl Add for &Expression {
    type Output = Expression;

    fn add(self, other: &Expression) -> Expression {
        self.combine(Binary::Add, other)
    }
}

impl Sub for &Expression {
    type Output = Expression;

    fn sub(self, other: &Expression) -> Expression {
        self.combine(Binary::Subtract, other)
    }
}

impl Mul for &Expression {
    type Output = Expression;

    fn mul(self, other: &Expression) -> Expression {
        self.combine(Binary::Multiply, other)
    }
}

impl Div for &Expression {
    type Output = Expression;

    fn div(self, other: &Expression) -> Expression {
        self.combine(Binary::Divide, other)
    }
}
