//! Vectors and matrices of numbers: shapes and their algebra, which dissolves into nodes of the graph at once.

use std::fmt;

use crate::derivative::directional_derivative_in;
use crate::graph::Builder;
use crate::node::{Binary, Id};
use crate::program::Value;

/// The shape of an [`Array`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One number.
    Number,
    /// A vector with its number of entries.
    Vector(usize),
    /// A matrix with its numbers of rows and columns.
    Matrix(usize, usize),
}

impl Shape {
    /// Returns the number of entries.
    pub fn n_entries(self) -> usize {
        match self {
            Self::Number => 1,
            Self::Vector(n) => n,
            Self::Matrix(rows, columns) => rows * columns,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("a number"),
            Self::Vector(n) => write!(f, "a vector of {n}"),
            Self::Matrix(rows, columns) => write!(f, "a matrix of {rows} × {columns}"),
        }
    }
}

/// Numbers of a [`ProgramBuilder`](crate::ProgramBuilder) in a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    shape: Shape,
    entries: Vec<Value>,
}

impl From<Value> for Array {
    fn from(value: Value) -> Self {
        Self { shape: Shape::Number, entries: vec![value] }
    }
}

impl Array {
    /// Puts entries into a shape; those of a matrix by rows.
    ///
    /// # Panics
    /// When there are more or fewer than the shape has.
    pub fn new(shape: Shape, entries: Vec<Value>) -> Self {
        assert!(entries.len() == shape.n_entries(), "Array: {} entries for {shape}", entries.len());
        Self { shape, entries }
    }

    /// Returns its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns its entries, those of a matrix by rows.
    pub fn entries(&self) -> &[Value] {
        &self.entries
    }

    pub(crate) fn number(id: Id) -> Self {
        Value(id).into()
    }

    pub(crate) fn as_number(&self) -> Option<Id> {
        (self.shape == Shape::Number).then(|| self.entries[0].0)
    }

    fn of(shape: Shape, ids: impl IntoIterator<Item = Id>) -> Self {
        Self::new(shape, ids.into_iter().map(Value).collect())
    }

    fn ids(&self) -> impl Iterator<Item = Id> {
        self.entries.iter().map(|value| value.0)
    }

    /// Rows and columns; a vector is a column.
    fn size(&self) -> [usize; 2] {
        match self.shape {
            Shape::Number => [1, 1],
            Shape::Vector(n) => [n, 1],
            Shape::Matrix(rows, columns) => [rows, columns],
        }
    }

    fn at(&self, row: usize, column: usize) -> Id {
        self.entries[row * self.size()[1] + column].0
    }
}

/// Functions of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrayFunction {
    Gradient,
    Divergence,
    Determinant,
    Inverse,
    Trace,
    Symmetric,
    Deviator,
}

/// How numbers change from point to point, for `grad` and `div`.
#[derive(Debug, Clone)]
pub(crate) struct SpaceDerivative {
    pub dimension: usize,
    /// In cylindrical axes (r, axis, around) the reciprocal of r: nothing changes around the axis but the direction of r.
    pub curvature: Option<Id>,
    /// Inputs that change, with their derivatives along each axis.
    pub slopes: Vec<(Id, Vec<Id>)>,
    /// Inputs whose derivatives are not known, with the reason.
    pub unknown: Vec<(Id, String)>,
}

/// The remedy for an operation that does not fit its operands.
pub(crate) type Advice = String;

/// The entrywise operation of two arrays of one shape.
pub(crate) fn entrywise(builder: &mut Builder, op: Binary, a: &Array, b: &Array) -> Result<Array, Advice> {
    if a.shape != b.shape {
        return Err(
            "both sides need the same shape; a multiple of the unit matrix is written c*identity".to_owned()
        );
    }
    let ids: Vec<Id> = a.ids().zip(b.ids()).map(|(a, b)| builder.binary(op, a, b)).collect();
    Ok(Array::of(a.shape, ids))
}

/// $AB$ of matrices and vectors, which are columns; multiples of an array.
pub(crate) fn product(builder: &mut Builder, a: &Array, b: &Array) -> Result<Array, Advice> {
    if let Some(factor) = a.as_number() {
        return Ok(each(b, |id| builder.binary(Binary::Multiply, factor, id)));
    }
    if let Some(factor) = b.as_number() {
        return Ok(each(a, |id| builder.binary(Binary::Multiply, id, factor)));
    }
    let ([rows, inner], [other, columns]) = (a.size(), b.size());
    if inner != other {
        return Err(match (a.shape, b.shape) {
            (Shape::Vector(_), Shape::Vector(_)) => {
                "the scalar product is written a.b, the matrix of all products a*b'".to_owned()
            }
            _ => format!("the left side has {inner} columns and the right side {other} rows"),
        });
    }
    check_size(builder, rows * inner * columns)?;
    let mut ids = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let pairs: Vec<(Id, Id)> = (0..inner).map(|k| (a.at(row, k), b.at(k, column))).collect();
            ids.push(sum_of_products(builder, pairs));
        }
    }
    Ok(Array::of(
        match (rows, columns, b.shape) {
            (1, 1, _) => Shape::Number,
            (_, _, Shape::Vector(_)) => Shape::Vector(rows),
            _ => Shape::Matrix(rows, columns),
        },
        ids,
    ))
}

/// An array divided by a number.
pub(crate) fn quotient(builder: &mut Builder, a: &Array, b: &Array) -> Result<Array, Advice> {
    match b.as_number() {
        Some(divisor) => Ok(each(a, |id| builder.binary(Binary::Divide, id, divisor))),
        None => Err("only a number divides; the inverse of a matrix is inv(A)".to_owned()),
    }
}

/// $a\cdot b = \sum_i a_i b_i$ of vectors.
pub(crate) fn dot(builder: &mut Builder, a: &Array, b: &Array) -> Result<Array, Advice> {
    match (a.shape, b.shape) {
        (Shape::Vector(n), Shape::Vector(m)) if n == m => Ok(contraction(builder, a, b)),
        (Shape::Matrix(..), Shape::Matrix(..)) => Err("of two matrices it is written A:B".to_owned()),
        (Shape::Matrix(..), _) | (_, Shape::Matrix(..)) => {
            Err("a matrix times a vector is written A*b, from the left A'*b".to_owned())
        }
        (Shape::Number, _) | (_, Shape::Number) => Err("a product with a number is written *".to_owned()),
        _ => Err("both vectors need the same length".to_owned()),
    }
}

/// $A : B = \sum_{ij} A_{ij} B_{ij}$ of matrices.
pub(crate) fn double_dot(builder: &mut Builder, a: &Array, b: &Array) -> Result<Array, Advice> {
    match (a.shape, b.shape) {
        (Shape::Matrix(..), Shape::Matrix(..)) if a.shape == b.shape => Ok(contraction(builder, a, b)),
        (Shape::Vector(_), Shape::Vector(_)) => Err("of two vectors it is written a.b".to_owned()),
        _ => Err("it takes two matrices of one shape; a quotient is written /".to_owned()),
    }
}

/// The transpose; that of a vector is a row.
pub(crate) fn transpose(a: &Array) -> Array {
    let [rows, columns] = a.size();
    if a.shape == Shape::Number {
        return a.clone();
    }
    let ids = (0..columns).flat_map(|column| (0..rows).map(move |row| a.at(row, column)));
    Array::of(Shape::Matrix(columns, rows), ids)
}

/// The entry at one index of a vector or two of a matrix, from 0.
pub(crate) fn entry(a: &Array, indices: &[usize]) -> Result<Array, Advice> {
    let outside = |n: usize| format!("its entries are numbered from 0 to {}", n.saturating_sub(1));
    let at = match (a.shape, indices) {
        (Shape::Vector(n), &[i]) if i < n => i,
        (Shape::Vector(n), [_]) => return Err(outside(n)),
        (Shape::Matrix(rows, columns), &[i, j]) if i < rows && j < columns => i * columns + j,
        (Shape::Matrix(rows, columns), [_, _]) => {
            return Err(format!("it has {rows} rows and {columns} columns, numbered from 0"));
        }
        (Shape::Vector(_), _) => return Err("an entry of a vector has one index".to_owned()),
        (Shape::Matrix(..), _) => {
            return Err("an entry of a matrix has two indices, as in A[0, 1]".to_owned());
        }
        (Shape::Number, _) => return Err("a number has no entries".to_owned()),
    };
    Ok(Array::number(a.entries[at].0))
}

/// The array of some parts of one shape: a vector of numbers, a matrix of vectors that are its rows.
pub(crate) fn stack(parts: &[Array]) -> Result<Array, Advice> {
    let shape = match parts.first().map(|first| first.shape) {
        Some(Shape::Number) => Shape::Vector(parts.len()),
        Some(Shape::Vector(n)) => Shape::Matrix(parts.len(), n),
        _ => return Err("it holds numbers, or vectors that are its rows".to_owned()),
    };
    if parts.iter().any(|part| part.shape != parts[0].shape) {
        return Err("all of its entries need one shape".to_owned());
    }
    Ok(Array::of(shape, parts.iter().flat_map(Array::ids)))
}

/// The array with an operation on each entry.
pub(crate) fn each(a: &Array, operation: impl FnMut(Id) -> Id) -> Array {
    Array::of(a.shape, a.ids().map(operation))
}

/// Evaluates a function of an array.
pub(crate) fn apply(
    builder: &mut Builder,
    function: ArrayFunction,
    a: &Array,
    space: Option<&SpaceDerivative>,
) -> Result<Array, Advice> {
    let square = |what: &str| match a.shape {
        Shape::Matrix(n, m) if n == m => Ok(n),
        _ => Err(format!("{what} takes a square matrix")),
    };
    Ok(match function {
        ArrayFunction::Gradient => match a.shape {
            Shape::Number | Shape::Vector(_) => gradient(builder, a, space)?,
            Shape::Matrix(..) => return Err("grad takes a number or a vector".to_owned()),
        },
        ArrayFunction::Divergence => divergence(builder, a, space)?,
        ArrayFunction::Trace => {
            let n = square("tr")?;
            Array::number(sum(builder, (0..n).map(|i| a.at(i, i)).collect()))
        }
        ArrayFunction::Determinant => match square("det")? {
            n @ 1..=3 => Array::number(determinant(builder, a, n)),
            _ => return Err("det takes matrices of up to 3 × 3".to_owned()),
        },
        ArrayFunction::Inverse => match square("inv")? {
            n @ 1..=3 => inverse(builder, a, n),
            _ => return Err("inv takes matrices of up to 3 × 3".to_owned()),
        },
        ArrayFunction::Symmetric => {
            square("sym")?;
            let doubled = entrywise(builder, Binary::Add, a, &transpose(a))?;
            let half = builder.constant(0.5);
            each(&doubled, |id| builder.binary(Binary::Multiply, half, id))
        }
        ArrayFunction::Deviator => {
            let n = square("dev")?;
            let trace = sum(builder, (0..n).map(|i| a.at(i, i)).collect());
            let count = builder.constant(n as f64);
            let mean = builder.binary(Binary::Divide, trace, count);
            let mut deviator = a.clone();
            for i in 0..n {
                deviator.entries[i * n + i] = Value(builder.binary(Binary::Subtract, a.at(i, i), mean));
            }
            deviator
        }
    })
}

/// Derivatives along the axes: of a number a vector, of a vector the matrix $\partial a_i/\partial x_j$.
fn gradient(builder: &mut Builder, a: &Array, space: Option<&SpaceDerivative>) -> Result<Array, Advice> {
    let Some(space) = space else { return Err("there are no functions of space here".to_owned()) };
    let d = space.dimension;
    check_size(builder, a.entries.len() * d)?;
    let mut ids = Vec::with_capacity(a.entries.len() * d);
    for id in a.ids() {
        let needed = builder.ancestors(id);
        let is_needed = |input: Id| needed.get(input as usize).copied().unwrap_or(false);
        if let Some((_, reason)) = space.unknown.iter().find(|(input, _)| is_needed(*input)) {
            return Err(reason.clone());
        }
        for axis in 0..d {
            let direction: Vec<(Id, Id)> =
                space.slopes.iter().map(|(input, slopes)| (*input, slopes[axis])).collect();
            ids.push(directional_derivative_in(builder, id, &direction));
        }
    }
    let shape = match a.shape {
        Shape::Number => Shape::Vector(d),
        Shape::Vector(n) => Shape::Matrix(n, d),
        Shape::Matrix(rows, columns) => Shape::Matrix(rows * columns, d),
    };
    if let (Shape::Vector(3), Some(curvature)) = (a.shape, space.curvature) {
        // Around the axis the first and the last axis turn into each other.
        let [hoop, turn] = [0, 2].map(|i| builder.binary(Binary::Multiply, a.at(i, 0), curvature));
        ids[8] = builder.binary(Binary::Add, ids[8], hoop);
        ids[2] = builder.binary(Binary::Subtract, ids[2], turn);
    }
    Ok(Array::of(shape, ids))
}

/// $\sum_j \partial a_j/\partial x_j$ of a vector, of a matrix by rows.
fn divergence(builder: &mut Builder, a: &Array, space: Option<&SpaceDerivative>) -> Result<Array, Advice> {
    let slopes = gradient(builder, a, space)?;
    let d = slopes.size()[1];
    let (rows, columns) = match a.shape {
        Shape::Vector(n) => (1, n),
        Shape::Matrix(rows, columns) => (rows, columns),
        Shape::Number => return Err("div takes a vector or a matrix".to_owned()),
    };
    if columns != d {
        return Err(format!("div takes vectors of {d} entries, one for each axis"));
    }
    let mut sums: Vec<Id> = (0..rows)
        .map(|row| sum(builder, (0..d).map(|axis| slopes.at(row * columns + axis, axis)).collect()))
        .collect();
    if let (Shape::Matrix(..), Some(curvature)) = (a.shape, space.and_then(|space| space.curvature)) {
        let mut add = |row: usize, op, id| {
            let term = builder.binary(Binary::Multiply, id, curvature);
            sums[row] = builder.binary(op, sums[row], term);
        };
        (0..rows).for_each(|row| add(row, Binary::Add, a.at(row, 0)));
        if rows == 3 {
            add(0, Binary::Subtract, a.at(2, 2));
            add(2, Binary::Add, a.at(0, 2));
        }
    }
    Ok(match a.shape {
        Shape::Matrix(rows, _) => Array::of(Shape::Vector(rows), sums),
        _ => Array::number(sums[0]),
    })
}

/// Refuses work that a short text can ask for without end: many entries, or derivatives of derivatives.
fn check_size(builder: &Builder, n_operations: usize) -> Result<(), Advice> {
    const MOST: usize = 100_000;
    match builder.n_nodes() + n_operations <= MOST {
        true => Ok(()),
        false => Err(format!("the formula would have more than {MOST} operations")),
    }
}

/// Sum of the products of all entries.
fn contraction(builder: &mut Builder, a: &Array, b: &Array) -> Array {
    Array::number(sum_of_products(builder, a.ids().zip(b.ids()).collect()))
}

fn sum_of_products(builder: &mut Builder, pairs: Vec<(Id, Id)>) -> Id {
    let products = pairs.into_iter().map(|(a, b)| builder.binary(Binary::Multiply, a, b)).collect();
    sum(builder, products)
}

fn sum(builder: &mut Builder, terms: Vec<Id>) -> Id {
    let zero = builder.constant(0.0);
    terms.into_iter().reduce(|a, b| builder.binary(Binary::Add, a, b)).unwrap_or(zero)
}

/// $ad - bc$.
fn minor(builder: &mut Builder, [a, b, c, d]: [Id; 4]) -> Id {
    let (left, right) = (builder.binary(Binary::Multiply, a, d), builder.binary(Binary::Multiply, b, c));
    builder.binary(Binary::Subtract, left, right)
}

/// The cofactor of an entry of a matrix of 3 × 3, by cyclic indices, which have the sign in them.
fn cofactor(builder: &mut Builder, a: &Array, row: usize, column: usize) -> Id {
    let [i, k] = [(row + 1) % 3, (row + 2) % 3];
    let [j, l] = [(column + 1) % 3, (column + 2) % 3];
    minor(builder, [a.at(i, j), a.at(i, l), a.at(k, j), a.at(k, l)])
}

fn determinant(builder: &mut Builder, a: &Array, n: usize) -> Id {
    let beyond: Option<Vec<Id>> = (0..n).map(|i| builder.beyond_one(a.at(i, i))).collect();
    if let Some(diagonal) = beyond {
        return determinant_beyond_identity(builder, a, &diagonal);
    }
    match n {
        1 => a.at(0, 0),
        2 => minor(builder, [a.at(0, 0), a.at(0, 1), a.at(1, 0), a.at(1, 1)]),
        _ => {
            let pairs = (0..3).map(|column| (a.at(0, column), cofactor(builder, a, 0, column))).collect();
            sum_of_products(builder, pairs)
        }
    }
}

/// $\det(I + H) = 1 + (\operatorname{tr} H + \text{minors of } H + \det H)$, which keeps the digits of a small H; `diagonal` is that
/// of H.
fn determinant_beyond_identity(builder: &mut Builder, a: &Array, diagonal: &[Id]) -> Id {
    let n = diagonal.len();
    let mut h = a.clone();
    diagonal.iter().enumerate().for_each(|(i, &id)| h.entries[i * n + i] = Value(id));
    let mut terms = diagonal.to_vec();
    for i in 0..n {
        for j in i + 1..n {
            terms.push(minor(builder, [h.at(i, i), h.at(i, j), h.at(j, i), h.at(j, j)]));
        }
    }
    if n == 3 {
        let pairs = (0..3).map(|column| (h.at(0, column), cofactor(builder, &h, 0, column))).collect();
        terms.push(sum_of_products(builder, pairs));
    }
    let (one, small) = (builder.constant(1.0), sum(builder, terms));
    builder.binary(Binary::Add, one, small)
}

/// The matrix of cofactors, transposed, over the determinant.
fn inverse(builder: &mut Builder, a: &Array, n: usize) -> Array {
    let determinant = determinant(builder, a, n);
    let one = builder.constant(1.0);
    let adjugate: Vec<Id> = match n {
        1 => vec![one],
        2 => {
            let [b, c] = [a.at(0, 1), a.at(1, 0)].map(|id| builder.negate(id));
            vec![a.at(1, 1), b, c, a.at(0, 0)]
        }
        _ => (0..9).map(|at| cofactor(builder, a, at % 3, at / 3)).collect(),
    };
    Array::of(a.shape, adjugate.into_iter().map(|id| builder.binary(Binary::Divide, id, determinant)))
}
