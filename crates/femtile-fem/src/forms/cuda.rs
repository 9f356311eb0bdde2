//! Coefficients on a GPU: a generated header, and the arrays that it reads.

use std::fmt::Write;

use femtile_device::cuda::{Header, Structure};
use femtile_device::{Buffer, Cuda, DeviceError};
use femtile_expression::{Expression, Variable};
use femtile_mesh::{Field, Mesh};

use super::cell_coefficients::rule_for;
use super::{Coefficient, Slopes};

/// Most fields of a form: kernel arguments have a few thousand bytes.
const MAX_FIELDS: usize = 256;
/// Longest header, which compiles within two seconds; compile time grows with the square, and the host assembles in
/// less.
const MAX_TEXT: usize = 48 << 10;

/// The header of functions used by formulas.
pub const OPERATIONS: Header = Header { name: "operations.cuh", text: Expression::CUDA_HEADER };

/// The coefficients of a form for `assembly.cu`.
///
/// Constants are data, so that new values need no compilation; formulas and tags are source text.
pub struct CudaForm<'a> {
    text: String,
    /// First the rule, for each point its weight and barycentric coordinates, then the constants of all coefficients.
    constants: Vec<f64>,
    fields: Vec<&'a Field>,
    uses_tags: bool,
    /// Evaluation of conductivity, reaction and source.
    evaluated: [Evaluated; 3],
    has_tensors: bool,
    /// Whether coefficients are evaluated at a time and a function.
    has_state: bool,
    has_drift: bool,
}

/// Evaluation of a coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluated {
    /// It is zero.
    Never,
    /// It is a constant.
    Once,
    /// Once per cell.
    ByCell,
    /// At each point of the rule.
    ByPoint,
}

impl Evaluated {
    /// Returns the numbers per cell for its corners besides the measure: one if all corners have the same.
    pub fn n_values(self, n_corners: usize) -> usize {
        match self {
            Self::Never | Self::Once => 0,
            Self::ByCell => 1,
            Self::ByPoint => n_corners,
        }
    }

    fn of(coefficient: &Coefficient) -> Self {
        match coefficient.as_constant() {
            Some(0.0) => Self::Never,
            Some(_) => Self::Once,
            _ if coefficient.is_constant_by_cell() => Self::ByCell,
            _ => Self::ByPoint,
        }
    }

    fn c_name(self) -> &'static str {
        match self {
            Self::Never => "NEVER",
            Self::Once => "ONCE",
            Self::ByCell => "BY_CELL",
            Self::ByPoint => "BY_POINT",
        }
    }
}

/// The arrays of a form on a GPU.
pub struct CudaFormData {
    constants: Buffer<f64, Cuda>,
    tags: Buffer<i32, Cuda>,
    fields: Vec<Buffer<f64, Cuda>>,
    has_state: bool,
}

impl<'a> CudaForm<'a> {
    /// Generates the form of coefficients with checked shapes; none if it is too large for a kernel, has closures, or
    /// has no conduction, which kernels report as an error.
    pub fn new(
        dimension: usize,
        sigma: &'a Coefficient,
        lambda: &'a Coefficient,
        source: &'a Coefficient,
    ) -> Option<Self> {
        Self::generate(dimension, [sigma, lambda, source], None)
    }

    /// As [`CudaForm::new`], for a linearization at a time and a function, with derivatives by u.
    pub fn linearized(
        dimension: usize,
        coefficients: [&'a Coefficient; 3],
        slopes: &'a Slopes,
    ) -> Option<Self> {
        Self::generate(dimension, coefficients, Some(slopes))
    }

    fn generate(
        dimension: usize,
        [sigma, lambda, source]: [&'a Coefficient; 3],
        slopes: Option<&'a Slopes>,
    ) -> Option<Self> {
        let has_function = [sigma, lambda, source].iter().any(|coefficient| coefficient.has_function());
        let needs_state = |own: &&Coefficient| own.uses_time() || own.uses_unknown();
        let lacks_state = slopes.is_none() && [sigma, lambda, source].iter().any(needs_state);
        if has_function || lacks_state || sigma.as_constant() == Some(0.0) {
            return None;
        }
        let rule = rule_for(dimension);
        let constants =
            rule.iter().flat_map(|(point, weight)| [weight, point[0], point[1], point[2], point[3]]);
        let mut writer = Writer {
            dimension,
            functions: String::new(),
            n_functions: 0,
            constants: constants.collect(),
            fields: Vec::new(),
            uses_tags: false,
        };
        let (value, mean) = if sigma.is_scalar() { ("double", "double") } else { ("Tensor", "Symmetric") };
        let mut bodies = String::new();
        let body = if sigma.is_scalar() { writer.scalar(sigma) } else { writer.tensor(sigma) };
        define(&mut bodies, value, "sigma_at", &body);
        define(&mut bodies, "double", "lambda_at", &writer.scalar(lambda));
        define(&mut bodies, "double", "source_at", &writer.scalar(source));
        let has_tensors = !sigma.is_scalar();
        let mut evaluated = [sigma, lambda, source].map(Evaluated::of);
        let n_points = rule.n_q();
        let given = slopes.unwrap_or(Slopes::NONE);
        writer.slopes(&mut bodies, given);
        if given.lambda.is_some() || given.source.is_some() {
            (evaluated[1], evaluated[2]) = (Evaluated::ByPoint, Evaluated::ByPoint);
        }
        let has_state = slopes.is_some();
        let reads_unknown = given.is_any() || [sigma, lambda, source].iter().any(|own| own.uses_unknown());

        let mut text = String::from(
            "#include \"operations.cuh\"\n\nstruct Form {\n    const double* constants;\n    const int* tags;\n",
        );
        if has_state {
            text.push_str("    const double* unknown;\n    double time;\n");
        }
        (0..writer.fields.len()).for_each(|k| {
            let _ = writeln!(text, "    const double* field_{k};");
        });
        let reads_cells = writer.uses_tags || !writer.fields.is_empty();
        let [sigma, lambda, source] = evaluated.map(Evaluated::c_name);
        let _ = write!(
            text,
            "}};\n\nconst u32 SIGMA = {sigma}, LAMBDA = {lambda}, SOURCE = {source}, N_POINTS = {n_points};\n\
             const bool READS_CELLS = {reads_cells}, ANY_REACTION = {has_state};\ntypedef {value} SigmaValue;\ntypedef {mean} SigmaMean;\n\n"
        );
        let unknown = if reads_unknown { "form.unknown[node]" } else { "0.0" };
        let _ = write!(
            text,
            "const bool READS_UNKNOWN = {reads_unknown};\n\n__device__ __forceinline__ double unknown_at(const Form& form, u32 node) {{\n    \
             return {unknown};\n}}\n\n"
        );
        text.push_str(&writer.functions);
        text.push_str(&bodies);
        let Writer { constants, fields, uses_tags, .. } = writer;
        let fits = fields.len() <= MAX_FIELDS && text.len() <= MAX_TEXT;
        let has_drift = given.sigma.is_some();
        fits.then_some(Self {
            text,
            constants,
            fields,
            uses_tags,
            evaluated,
            has_tensors,
            has_state,
            has_drift,
        })
    }

    /// Returns the header `form.cuh`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a coefficient is indexed by cell or by tag.
    pub fn reads_cells(&self) -> bool {
        self.uses_tags || !self.fields.is_empty()
    }

    /// Returns whether a coefficient varies within cells.
    pub fn is_evaluated_by_point(&self) -> bool {
        self.evaluated.contains(&Evaluated::ByPoint)
    }

    /// Returns whether the derivative of the conductivity makes a drift.
    pub fn has_drift(&self) -> bool {
        self.has_drift
    }

    /// Returns whether the conductivity is a tensor.
    pub fn has_tensors(&self) -> bool {
        self.has_tensors
    }

    /// Returns the evaluation of reaction and source.
    pub fn reaction_and_source(&self) -> [Evaluated; 2] {
        [self.evaluated[1], self.evaluated[2]]
    }

    /// Copies the arrays to a GPU.
    pub fn upload(&self, device: &Cuda, mesh: &Mesh) -> Result<CudaFormData, DeviceError> {
        let mut data = CudaFormData {
            constants: Buffer::zeros(device, 0)?,
            tags: Buffer::zeros(device, 0)?,
            fields: Vec::new(),
            has_state: self.has_state,
        };
        self.assign(&mut data, device, mesh)?;
        Ok(data)
    }

    /// Replaces the arrays of another form, in the same memory if lengths are equal.
    pub fn assign(&self, data: &mut CudaFormData, device: &Cuda, mesh: &Mesh) -> Result<(), DeviceError> {
        let mut tags = Vec::new();
        if self.uses_tags {
            tags.extend_from_slice(&mesh.cell_tags);
            // Cells beyond the list of tags have tag 0, as on the host.
            tags.resize(mesh.n_cells(), 0);
        }
        data.has_state = self.has_state;
        data.constants.assign(&self.constants)?;
        data.tags.assign(&tags)?;
        data.fields.truncate(self.fields.len());
        for (k, field) in self.fields.iter().enumerate() {
            match data.fields.get_mut(k) {
                Some(buffer) => buffer.assign(&field.values)?,
                None => data.fields.push(Buffer::from_host(device, &field.values)?),
            }
        }
        Ok(())
    }
}

impl CudaFormData {
    /// Returns the argument `struct Form` of a kernel.
    pub fn argument(&self) -> Structure {
        self.argument_at(f64::NAN, None)
    }

    /// Returns the argument `struct Form` of a kernel at a time and a function.
    pub fn argument_at(&self, time: f64, unknown: Option<&Buffer<f64, Cuda>>) -> Structure {
        let mut words = vec![self.constants.memory().address(), self.tags.memory().address()];
        if self.has_state {
            words.extend([unknown.map_or(0, |unknown| unknown.memory().address()), time.to_bits()]);
        }
        words.extend(self.fields.iter().map(|field| field.memory().address()));
        Structure(words)
    }
}

/// Returns the arguments that the function of some formulas takes besides the coordinates.
fn arguments(expressions: &[&Expression]) -> &'static str {
    let uses_time = expressions.iter().any(|expression| expression.uses(Variable::T));
    match (uses_time, expressions.iter().any(|expression| expression.n_others() > 0)) {
        (false, false) => "",
        (true, false) => ", form.time",
        (false, true) => ", u",
        (true, true) => ", form.time, u",
    }
}

fn define(text: &mut String, value: &str, name: &str, body: &str) {
    let _ = write!(
        text,
        "\n__device__ __forceinline__ {value} {name}(\n    const Form& form, u64 cell, int tag, double x, double y, \
         double z, double u = 0.0) {{\n    {body}\n}}\n"
    );
}

/// Data that generated statements refer to.
struct Writer<'a> {
    dimension: usize,
    functions: String,
    n_functions: usize,
    constants: Vec<f64>,
    fields: Vec<&'a Field>,
    uses_tags: bool,
}

impl<'a> Writer<'a> {
    /// Returns statements that return a scalar.
    fn scalar(&mut self, coefficient: &'a Coefficient) -> String {
        if let Some(value) = coefficient.as_constant() {
            return format!("return {};", self.constant(value));
        }
        match coefficient {
            Coefficient::Expression(expression) => {
                format!("return {};", self.formula(expression))
            }
            Coefficient::CellField(field) if field.n_components == 1 => {
                format!("return {}[cell];", self.field(field))
            }
            Coefficient::ByTag(parts) => {
                let parts = parts.iter().map(|(&tag, part)| (tag, self.scalar(part)));
                let cases: Vec<_> = parts.collect();
                self.switch(&cases, "return 0.0 / 0.0;")
            }
            // Refused when the form was compiled.
            _ => "return 0.0 / 0.0;".into(),
        }
    }

    /// Returns statements that return a tensor.
    fn tensor(&mut self, coefficient: &'a Coefficient) -> String {
        if let Some(value) = coefficient.as_constant() {
            let value = self.constant(value);
            return self.multiple(&value);
        }
        match coefficient {
            Coefficient::Constant(value) => {
                let value = self.constant(*value);
                self.multiple(&value)
            }
            Coefficient::Tensor(tensor) => {
                let entries = tensor.map(|row| row.map(|value| self.constant(value)));
                self.rows(&entries)
            }
            Coefficient::Expression(expression) => {
                let call = self.formula(expression);
                self.multiple(&call)
            }
            Coefficient::TensorExpression(entries) => {
                let d = self.dimension;
                let block: Vec<&Expression> = entries[..d].iter().flat_map(|row| &row[..d]).collect();
                let name = self.name();
                self.functions.push_str(&Expression::cuda_array_function(&name, &block));
                let more = arguments(&block);
                let of_block =
                    |i, j| if i < d && j < d { format!("entry[{}]", d * i + j) } else { String::new() };
                let rows = std::array::from_fn(|i| std::array::from_fn(|j| of_block(i, j)));
                let n = block.len();
                format!(
                    "{{\n    double entry[{n}];\n    {name}(entry, x, y, z{more});\n    {}\n    }}",
                    self.rows(&rows)
                )
            }
            Coefficient::CellField(field) => self.field_tensor(field),
            // Refused before the form was compiled.
            Coefficient::Function(_) => "return Tensor{0.0 / 0.0};".into(),
            Coefficient::ByTag(parts) => {
                let parts = parts.iter().map(|(&tag, part)| (tag, self.tensor(part)));
                let cases: Vec<_> = parts.collect();
                self.switch(&cases, "return Tensor{0.0 / 0.0};")
            }
        }
    }

    /// Returns statements for the tensor of a field in a cell, in the layouts of [`Coefficient::CellField`].
    fn field_tensor(&mut self, field: &'a Field) -> String {
        let (name, n) = (self.field(field), field.n_components);
        let at = |component: usize| format!("{name}[{n} * cell + {component}]");
        let zero = || "0.0".to_string();
        let rows = match n {
            1 => return self.multiple(&format!("{name}[cell]")),
            3 => [[at(0), zero(), zero()], [zero(), at(1), zero()], [zero(), zero(), at(2)]],
            6 => [[at(0), at(5), at(4)], [at(5), at(1), at(3)], [at(4), at(3), at(2)]],
            _ => std::array::from_fn(|i| std::array::from_fn(|j| at(3 * i + j))),
        };
        self.rows(&rows)
    }

    /// Returns statements for a multiple of the identity.
    fn multiple(&self, value: &str) -> String {
        let entry = |i, j| if i == j { "value".to_string() } else { "0.0".to_string() };
        let rows = self.rows(&std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j))));
        format!("{{\n    const double value = {value};\n    {rows}\n    }}")
    }

    /// Returns statements for a tensor of which only the leading block is used.
    fn rows(&self, entries: &[[String; 3]; 3]) -> String {
        let d = self.dimension;
        let entry = |i: usize, j: usize| if i < d && j < d { entries[i][j].as_str() } else { "0.0" };
        let all: Vec<&str> = (0..9).map(|k| entry(k / 3, k % 3)).collect();
        format!("return Tensor{{{}}};", all.join(", "))
    }

    fn switch(&mut self, cases: &[(i32, String)], otherwise: &str) -> String {
        self.uses_tags = true;
        let mut text = String::from("switch (tag) {\n");
        for (tag, body) in cases {
            let _ = writeln!(text, "    case {tag}: {body}");
        }
        let _ = write!(text, "    default: {otherwise}\n    }}");
        text
    }

    fn constant(&mut self, value: f64) -> String {
        self.constants.push(value);
        format!("form.constants[{}]", self.constants.len() - 1)
    }

    fn field(&mut self, field: &'a Field) -> String {
        self.fields.push(field);
        format!("form.field_{}", self.fields.len() - 1)
    }

    /// Returns a call of the function of a formula.
    fn formula(&mut self, expression: &Expression) -> String {
        let name = self.name();
        self.functions.push_str(&expression.cuda_function(&name));
        format!("{name}(x, y, z{})", arguments(&[expression]))
    }

    /// Writes the derivatives of coefficients: that of reaction and source, and that of the conductivity, if there is one.
    fn slopes(&mut self, bodies: &mut String, slopes: &'a Slopes) {
        for (name, slope) in [("lambda_slope_at", &slopes.lambda), ("source_slope_at", &slopes.source)] {
            if let Some(slope) = slope {
                define(bodies, "double", name, &self.scalar(slope));
            }
        }
        let call = |name: &str, slope: &Option<Coefficient>| match slope {
            Some(_) => format!("{name}(form, cell, tag, x, y, z, u)"),
            None => "0.0".into(),
        };
        let (lambda, source) =
            (call("lambda_slope_at", &slopes.lambda), call("source_slope_at", &slopes.source));
        define(bodies, "double", "reaction_slope_at", &format!("return u * {lambda} - {source};"));
        if let Some(slope) = &slopes.sigma {
            let (value, mean, body) = match slope.is_scalar() {
                true => ("double", "double", self.scalar(slope)),
                false => ("Tensor", "Symmetric", self.tensor(slope)),
            };
            let _ = write!(bodies, "\ntypedef {mean} SlopeMean;\n");
            define(bodies, value, "sigma_slope_at", &body);
        }
    }

    fn name(&mut self) -> String {
        self.n_functions += 1;
        format!("formula_{}", self.n_functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn text(sigma: &Coefficient) -> String {
        let (zero, one) = (0.0.into(), 1.0.into());
        CudaForm::new(3, sigma, &zero, &one).unwrap().text().into()
    }

    fn field(n_components: usize, value: f64) -> Coefficient {
        Coefficient::CellField(Field { n_components, values: vec![value; 9] })
    }

    #[test]
    fn other_constants_and_other_fields_leave_the_text_as_it_is() {
        assert_eq!(text(&2.0.into()), text(&3.0.into()));
        let diagonal =
            |value: f64| Coefficient::Tensor([[value, 0.0, 0.0], [0.0, value, 0.0], [0.0, 0.0, value]]);
        assert_eq!(text(&diagonal(1.0)), text(&diagonal(2.0)));
        assert_eq!(text(&field(3, 1.0)), text(&field(3, 2.0)));
        assert_ne!(text(&field(3, 1.0)), text(&field(1, 1.0)));
        assert_ne!(text(&2.0.into()), text(&diagonal(2.0)));
    }

    #[test]
    fn what_is_zero_is_never_evaluated_and_what_is_constant_once_a_cell() {
        let form = text(&2.0.into());
        assert!(form.contains("SIGMA = ONCE, LAMBDA = NEVER, SOURCE = ONCE,"), "{form}");
    }

    #[test]
    fn a_form_of_too_many_fields_or_too_long_a_formula_is_left_to_the_host() {
        let (zero, one) = (0.0.into(), 1.0.into());
        let fits = |sigma: &Coefficient| CudaForm::new(2, sigma, &zero, &one).is_some();
        let fields =
            |n: i32| Coefficient::ByTag((0..n).map(|tag| (tag, field(1, 1.0))).collect::<BTreeMap<_, _>>());
        assert!(fits(&fields(256)) && !fits(&fields(257)));
        assert!(fits(&Coefficient::Constant(1.0)) && !fits(&Coefficient::Constant(0.0)));
        let formula = |n: usize| {
            Expression::parse(&(0..n).map(|i| format!("{i}.5*sin({i}*x)")).collect::<Vec<_>>().join(" + "))
        };
        assert!(fits(&formula(100).unwrap().into()) && !fits(&formula(1000).unwrap().into()));
    }
}
