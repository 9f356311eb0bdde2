//! Coefficients compiled for evaluation at many points.

use femtile_expression::{Expression, Inputs, Tape, TapeScratch};
use femtile_mesh::{Field, Mesh};

use super::unknown::UNKNOWN;
use super::{Coefficient, PointFunction, field_tensor, multiple_of_identity};
use crate::FormError;

/// Points of cells, in structure-of-arrays form for the tapes of expressions.
#[derive(Debug, Clone)]
pub struct Points {
    /// First coordinates.
    pub x: Vec<f64>,
    /// Second coordinates.
    pub y: Vec<f64>,
    /// Third coordinates.
    pub z: Vec<f64>,
    /// The cell of each point.
    pub cells: Vec<u32>,
    /// The value of the unknown function at each point; empty if no formula needs it.
    pub unknown: Vec<f64>,
    /// The time; NaN if no formula needs it.
    pub time: f64,
}

impl Default for Points {
    fn default() -> Self {
        let [x, y, z, unknown] = [const { Vec::new() }; 4];
        Self { x, y, z, cells: Vec::new(), unknown, time: f64::NAN }
    }
}

impl Points {
    /// Removes all points.
    pub fn clear(&mut self) {
        self.x.clear();
        self.y.clear();
        self.z.clear();
        self.cells.clear();
        self.unknown.clear();
    }

    /// Appends points of one cell.
    pub fn extend(&mut self, cell: u32, points: &[[f64; 3]]) {
        self.extend_with(cell, |axis| points.iter().map(move |point| point[axis]));
    }

    /// Appends points of one cell, given by their coordinates along each axis.
    pub fn extend_with<I: Iterator<Item = f64>>(&mut self, cell: u32, along: impl Fn(usize) -> I) {
        for (axis, to) in [&mut self.x, &mut self.y, &mut self.z].into_iter().enumerate() {
            to.extend(along(axis));
        }
        self.cells.resize(self.x.len(), cell);
    }

    /// Appends one point of a cell.
    pub fn push(&mut self, cell: u32, point: [f64; 3]) {
        self.x.push(point[0]);
        self.y.push(point[1]);
        self.z.push(point[2]);
        self.cells.push(cell);
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the coordinates of point `i`.
    pub fn point(&self, i: usize) -> [f64; 3] {
        [self.x[i], self.y[i], self.z[i]]
    }

    /// Returns the points with the given positions.
    fn select(&self, positions: &[usize]) -> Self {
        let pick = |all: &[f64]| positions.iter().map(|&i| all[i]).collect();
        let cells = positions.iter().map(|&i| self.cells[i]).collect();
        let unknown = if self.unknown.is_empty() { Vec::new() } else { pick(&self.unknown) };
        Self { x: pick(&self.x), y: pick(&self.y), z: pick(&self.z), cells, unknown, time: self.time }
    }

    /// Returns the value of the unknown function at point `i`, if it is known.
    pub fn unknown(&self, i: usize) -> Option<f64> {
        self.unknown.get(i).copied()
    }
}

/// A coefficient with compiled formulas and checked shape.
pub struct Compiled<'a> {
    field: &'static str,
    tags: &'a [i32],
    is_scalar: bool,
    tree: Tree<'a>,
}

/// A compiled formula.
struct Formula {
    tape: Tape,
    uses_unknown: bool,
}

impl Formula {
    fn new(expression: &Expression) -> Self {
        Self { tape: expression.tape(), uses_unknown: expression.uses(UNKNOWN) }
    }

    /// Evaluates the formula at points; NaN if it needs an unknown function that the points do not have.
    fn eval(&self, out: &mut [f64], points: &Points, scratch: &mut TapeScratch) {
        if self.uses_unknown && points.unknown.len() != points.len() {
            return out.fill(f64::NAN);
        }
        let Points { x, y, z, unknown, time, .. } = points;
        let others: &[&[f64]] = if self.uses_unknown { &[unknown] } else { &[] };
        self.tape.eval_block_with(out, &Inputs { x, y, z, t: *time, others }, scratch);
    }
}

enum Tree<'a> {
    Constant(f64),
    Tensor([[f64; 3]; 3]),
    Expression(Formula),
    TensorExpression(Box<[[Formula; 3]; 3]>),
    ByTag(Vec<(i32, Tree<'a>)>),
    CellField(&'a Field),
    Function(&'a PointFunction),
}

impl<'a> Compiled<'a> {
    /// Compiles a coefficient that must be a scalar.
    pub fn scalar(
        field: &'static str,
        coefficient: &'a Coefficient,
        mesh: &'a Mesh,
    ) -> Result<Self, FormError> {
        if !coefficient.is_scalar() {
            let message = "it is a tensor, but must be a scalar".into();
            return Err(FormError::Shape { field, message });
        }
        Self::tensor(field, coefficient, mesh)
    }

    /// Compiles a coefficient that may be a scalar or a tensor.
    pub fn tensor(
        field: &'static str,
        coefficient: &'a Coefficient,
        mesh: &'a Mesh,
    ) -> Result<Self, FormError> {
        let tree = compile(field, coefficient, mesh.n_cells())?;
        Ok(Self { field, tags: &mesh.cell_tags, is_scalar: coefficient.is_scalar(), tree })
    }

    /// Returns whether it is a scalar everywhere.
    pub fn is_scalar(&self) -> bool {
        self.is_scalar
    }

    /// Evaluates scalars at points and checks that they are finite.
    pub fn eval_scalar(
        &self,
        out: &mut [f64],
        points: &Points,
        scratch: &mut TapeScratch,
    ) -> Result<(), FormError> {
        self.scalar_tree(&self.tree, out, points, scratch)?;
        match out.iter().position(|value| !value.is_finite()) {
            Some(i) => Err(self.not_finite(points, i, out[i])),
            None => Ok(()),
        }
    }

    /// Evaluates tensors at points and checks that the entries of the leading `dimension` block are finite.
    pub fn eval_tensor(
        &self,
        out: &mut [[[f64; 3]; 3]],
        points: &Points,
        dimension: usize,
        scratch: &mut TapeScratch,
    ) -> Result<(), FormError> {
        self.tensor_tree(&self.tree, out, points, dimension, scratch)?;
        for (i, tensor) in out.iter().enumerate() {
            let mut entries = tensor[..dimension].iter().flat_map(|row| &row[..dimension]);
            if let Some(value) = entries.find(|value| !value.is_finite()) {
                return Err(self.not_finite(points, i, *value));
            }
        }
        Ok(())
    }

    fn not_finite(&self, points: &Points, i: usize, value: f64) -> FormError {
        let cell = points.cells[i] as usize;
        FormError::NotFinite {
            field: self.field,
            cell,
            point: points.point(i),
            value,
            unknown: points.unknown(i),
        }
    }

    fn scalar_tree(
        &self,
        tree: &Tree<'_>,
        out: &mut [f64],
        points: &Points,
        scratch: &mut TapeScratch,
    ) -> Result<(), FormError> {
        match tree {
            Tree::Constant(value) => out.fill(*value),
            Tree::Expression(formula) => formula.eval(out, points, scratch),
            Tree::Function(function) => {
                out.iter_mut().enumerate().for_each(|(i, out)| *out = function.at(points.point(i)));
            }
            Tree::CellField(field) => {
                out.iter_mut().zip(&points.cells).for_each(|(out, &cell)| *out = field.values[cell as usize]);
            }
            Tree::ByTag(parts) => {
                return self.by_tag(parts, points, |part, points, positions| {
                    let mut values = vec![0.0; positions.len()];
                    self.scalar_tree(part, &mut values, points, scratch)?;
                    positions.iter().zip(values).for_each(|(&i, value)| out[i] = value);
                    Ok(())
                });
            }
            // Refused when the coefficient was compiled.
            Tree::Tensor(_) | Tree::TensorExpression(_) => out.fill(f64::NAN),
        }
        Ok(())
    }

    fn tensor_tree(
        &self,
        tree: &Tree<'_>,
        out: &mut [[[f64; 3]; 3]],
        points: &Points,
        dimension: usize,
        scratch: &mut TapeScratch,
    ) -> Result<(), FormError> {
        match tree {
            Tree::Constant(value) => out.fill(multiple_of_identity(*value)),
            Tree::Tensor(tensor) => out.fill(*tensor),
            Tree::Expression(formula) => {
                let mut values = vec![0.0; out.len()];
                formula.eval(&mut values, points, scratch);
                out.iter_mut().zip(values).for_each(|(out, value)| *out = multiple_of_identity(value));
            }
            Tree::TensorExpression(formulas) => {
                let mut values = vec![0.0; out.len()];
                out.fill([[0.0; 3]; 3]);
                for (i, row) in formulas[..dimension].iter().enumerate() {
                    for (j, formula) in row[..dimension].iter().enumerate() {
                        formula.eval(&mut values, points, scratch);
                        out.iter_mut().zip(&values).for_each(|(out, value)| out[i][j] = *value);
                    }
                }
            }
            Tree::Function(function) => {
                let value = |i| multiple_of_identity(function.at(points.point(i)));
                out.iter_mut().enumerate().for_each(|(i, out)| *out = value(i));
            }
            Tree::CellField(field) => {
                let cells = out.iter_mut().zip(&points.cells);
                cells.for_each(|(out, &cell)| *out = field_tensor(field, cell as usize));
            }
            Tree::ByTag(parts) => {
                return self.by_tag(parts, points, |part, points, positions| {
                    let mut values = vec![[[0.0; 3]; 3]; positions.len()];
                    self.tensor_tree(part, &mut values, points, dimension, scratch)?;
                    positions.iter().zip(values).for_each(|(&i, value)| out[i] = value);
                    Ok(())
                });
            }
        }
        Ok(())
    }

    /// Evaluates the points of each tag with its coefficient.
    fn by_tag(
        &self,
        parts: &[(i32, Tree<'_>)],
        points: &Points,
        mut eval: impl FnMut(&Tree<'_>, &Points, &[usize]) -> Result<(), FormError>,
    ) -> Result<(), FormError> {
        let tag = |cell: u32| self.tags.get(cell as usize).copied().unwrap_or(0);
        let mut n_found = 0;
        for (part_tag, part) in parts {
            let positions: Vec<usize> =
                (0..points.len()).filter(|&i| tag(points.cells[i]) == *part_tag).collect();
            if !positions.is_empty() {
                n_found += positions.len();
                eval(part, &points.select(&positions), &positions)?;
            }
        }
        if n_found == points.len() {
            return Ok(());
        }
        let known = |tag: i32| parts.iter().any(|(known, _)| *known == tag);
        let unknown = points.cells.iter().copied().find(|&cell| !known(tag(cell))).unwrap_or(0);
        let known: Vec<String> = parts.iter().map(|(tag, _)| tag.to_string()).collect();
        Err(FormError::MissingTag {
            field: self.field,
            cell: unknown as usize,
            tag: tag(unknown),
            known: known.join(", "),
        })
    }
}

fn compile<'a>(
    field: &'static str,
    coefficient: &'a Coefficient,
    n_cells: usize,
) -> Result<Tree<'a>, FormError> {
    if let Some(value) = coefficient.as_constant() {
        return Ok(Tree::Constant(value));
    }
    Ok(match coefficient {
        Coefficient::Constant(value) => Tree::Constant(*value),
        Coefficient::Tensor(tensor) => Tree::Tensor(*tensor),
        Coefficient::Expression(expression) => Tree::Expression(Formula::new(expression)),
        Coefficient::Function(function) => Tree::Function(function),
        Coefficient::TensorExpression(entries) => {
            Tree::TensorExpression(Box::new(std::array::from_fn(|i| {
                std::array::from_fn(|j| Formula::new(&entries[i][j]))
            })))
        }
        Coefficient::ByTag(parts) => {
            let parts = parts.iter().map(|(&tag, part)| Ok((tag, compile(field, part, n_cells)?)));
            Tree::ByTag(parts.collect::<Result<_, FormError>>()?)
        }
        Coefficient::CellField(values) => {
            check_field(field, values, n_cells)?;
            Tree::CellField(values)
        }
    })
}

fn check_field(field: &'static str, values: &Field, n_cells: usize) -> Result<(), FormError> {
    let n_components = values.n_components;
    if !matches!(n_components, 1 | 3 | 6 | 9) {
        let message = format!(
            "a cell field of {n_components} components; 1 (scalar), 3 (diagonal), 6 (symmetric) and 9 (by rows) fit"
        );
        return Err(FormError::Shape { field, message });
    }
    if values.values.len() != n_components * n_cells {
        let message = format!(
            "a cell field of {} values; {n_cells} cells need {}",
            values.values.len(),
            n_components * n_cells
        );
        return Err(FormError::Shape { field, message });
    }
    Ok(())
}
