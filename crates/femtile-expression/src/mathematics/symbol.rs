use std::fmt;

use super::mathml::{identifier, number, row};

/// The name of a value in formulas for readers: `u`, `F[0, 1]`, `grad(u)[1]`, `u_t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    name: String,
    indices: Vec<usize>,
    /// The axis or the time by which it is a derivative.
    by: Option<char>,
    is_variation: bool,
}

impl Symbol {
    /// Names a number.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), indices: Vec::new(), by: None, is_variation: false }
    }

    /// Names an entry of a vector or a matrix, numbered from 0.
    #[must_use]
    pub fn entry(self, indices: &[usize]) -> Self {
        Self { indices: indices.to_vec(), ..self }
    }

    /// Names the derivative by `x`, `y`, `z` or `t`.
    #[must_use]
    pub fn derivative(self, by: char) -> Self {
        Self { by: Some(by), ..self }
    }

    /// Names the variation: that of u is du in texts and δu in MathML.
    #[must_use]
    pub fn variation(self) -> Self {
        Self { is_variation: true, ..self }
    }

    /// Returns the name without indices.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it is written as a fraction, which needs parentheses as the base of a power.
    pub(super) fn is_fraction(&self) -> bool {
        self.by.is_some()
    }

    /// Returns it as one element of MathML.
    pub fn mathml(&self) -> String {
        let separator = if self.indices.iter().any(|&i| i > 9) { "<mo>,</mo>" } else { "" };
        let indices: Vec<String> = self.indices.iter().map(|&i| number(i as f64)).collect();
        let name = identifier(&self.name, &indices.join(separator));
        let name = if self.is_variation { row(&format!("<mi>δ</mi>{name}")) } else { name };
        match self.by {
            None => name,
            Some(by) => {
                let numerator = row(&format!("<mi>∂</mi>{name}"));
                format!("<mfrac>{numerator}<mrow><mi>∂</mi><mi>{by}</mi></mrow></mfrac>")
            }
        }
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variation = if self.is_variation { "d" } else { "" };
        let mut indices = self.indices.clone();
        match self.by {
            None => write!(f, "{variation}{}", self.name)?,
            Some('t') => write!(f, "{variation}{}_t", self.name)?,
            Some(axis) => {
                write!(f, "grad({variation}{})", self.name)?;
                indices.extend("xyz".find(axis));
            }
        }
        if indices.is_empty() {
            return Ok(());
        }
        let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
        write!(f, "[{}]", indices.join(", "))
    }
}
