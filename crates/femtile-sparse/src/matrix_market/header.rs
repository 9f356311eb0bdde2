//! The header of a file: banner, comments, counts.

use std::fmt;

use super::MatrixMarketError;
use super::lines::{Lines, quoted, words};
use super::value::whole;

const BANNER: &str = "%%MatrixMarket matrix coordinate real general";

/// Matrices of up to this many rows and columns are read however few entries they have.
const SIZE_ALWAYS: usize = 1 << 20;
/// A matrix of more rows or columns must have an entry for this many of them: memory is taken for all.
const SIZE_PER_ENTRY: usize = 4;
/// Bytes of comments that are kept, line breaks and a word for each line included.
const MOST_COMMENTS: usize = 1 << 18;

/// The layout of the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Row, column and value of each entry.
    Coordinate,
    /// All values, column after column.
    Array,
}

/// The field of a file: the kind of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Real numbers.
    Real,
    /// Whole numbers.
    Integer,
    /// None: places alone, and every value is taken as one.
    Pattern,
}

/// The symmetry of a file, and the triangles that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symmetry {
    /// All entries are in the file.
    #[default]
    General,
    /// $A = A^\mathsf{T}$; the lower triangle and the diagonal are in the file.
    Symmetric,
    /// $A = -A^\mathsf{T}$; the lower triangle is in the file.
    SkewSymmetric,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::Pattern => "pattern",
        })
    }
}

impl fmt::Display for Symmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::SkewSymmetric => "skew-symmetric",
        })
    }
}

/// The header of a file.
#[derive(Debug)]
pub(super) struct Header {
    pub layout: Layout,
    pub field: Field,
    pub symmetry: Symmetry,
    pub comments: Vec<String>,
    pub n_rows: usize,
    pub n_cols: usize,
    /// Entries that the file announces, or those of an array of its shape.
    pub n_entries: usize,
    /// The line of the counts.
    pub line: usize,
}

impl Header {
    /// Reads up to the counts, which are the current line then.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Self, MatrixMarketError> {
        let (layout, field, symmetry) = banner(lines)?;
        let comments = comments(lines)?;
        let [n_rows, n_cols, n_entries] = counts(lines, layout, symmetry)?;
        Ok(Self { layout, field, symmetry, comments, n_rows, n_cols, n_entries, line: lines.number() })
    }
}

fn banner(lines: &mut Lines<'_>) -> Result<(Layout, Field, Symmetry), MatrixMarketError> {
    if !lines.advance()? {
        return Err(lines.error("the file is empty".into()));
    }
    let banner: Vec<_> = words(lines.text()).map(<[u8]>::to_ascii_lowercase).collect();
    let [mark, object, layout, field, symmetry] = banner.as_slice() else {
        return Err(no_banner(lines));
    };
    if mark != b"%%matrixmarket" {
        return Err(no_banner(lines));
    }
    if object != b"matrix" {
        return Err(wrong(lines, object, "matrix"));
    }
    let layout = match layout.as_slice() {
        b"coordinate" => Layout::Coordinate,
        b"array" => Layout::Array,
        _ => return Err(wrong(lines, layout, "coordinate or array")),
    };
    let field = match field.as_slice() {
        b"real" | b"double" => Field::Real,
        b"integer" => Field::Integer,
        b"pattern" if layout == Layout::Coordinate => Field::Pattern,
        b"pattern" => return Err(lines.error("an array cannot be a pattern; write `coordinate`".into())),
        b"complex" => {
            return Err(lines.unsupported("complex matrices", "write the real and imaginary parts apart"));
        }
        _ => return Err(wrong(lines, field, "real, integer or pattern")),
    };
    let symmetry = match symmetry.as_slice() {
        b"general" => Symmetry::General,
        b"symmetric" => Symmetry::Symmetric,
        b"skew-symmetric" if field == Field::Pattern => {
            return Err(lines.error("a pattern has no signs, so it cannot be skew-symmetric".into()));
        }
        b"skew-symmetric" => Symmetry::SkewSymmetric,
        b"hermitian" => {
            return Err(
                lines.unsupported("hermitian matrices", "a real one is symmetric: write that in the banner")
            );
        }
        _ => return Err(wrong(lines, symmetry, "general, symmetric or skew-symmetric")),
    };
    Ok((layout, field, symmetry))
}

fn no_banner(lines: &Lines<'_>) -> MatrixMarketError {
    let text = lines.text().trim_ascii();
    lines.error(format!("{} is no banner such as `{BANNER}`; is this a Matrix Market file?", quoted(text)))
}

fn wrong(lines: &Lines<'_>, word: &[u8], right: &str) -> MatrixMarketError {
    lines.error(format!("the banner says {} where {right} is needed", quoted(word)))
}

/// The comments below the banner; the line behind them is the current one then.
fn comments(lines: &mut Lines<'_>) -> Result<Vec<String>, MatrixMarketError> {
    let (mut comments, mut n_kept) = (Vec::new(), 0);
    while lines.advance()? {
        let text = lines.text().trim_ascii();
        if let Some(comment) = text.strip_prefix(b"%") {
            let comment = comment.strip_prefix(b" ").unwrap_or(comment);
            n_kept += comment.len() + size_of::<String>();
            if n_kept <= MOST_COMMENTS {
                comments.push(String::from_utf8_lossy(comment).into_owned());
            }
        } else if !text.is_empty() {
            return Ok(comments);
        }
    }
    Err(lines.error("the file ends here, without the line of counts; it was cut short".into()))
}

/// Rows, columns and entries from the current line.
fn counts(lines: &Lines<'_>, layout: Layout, symmetry: Symmetry) -> Result<[usize; 3], MatrixMarketError> {
    let found: Option<Vec<_>> = words(lines.text()).map(whole).collect();
    let shown = || quoted(lines.text().trim_ascii());
    let [n_rows, n_cols, n_entries] = match (layout, found.as_deref()) {
        (Layout::Coordinate, Some(&[n_rows, n_cols, n_entries])) => [n_rows, n_cols, n_entries],
        (Layout::Array, Some(&[n_rows, n_cols])) => {
            let n_entries = array_entries(n_rows, n_cols, symmetry);
            [n_rows, n_cols, n_entries.ok_or_else(|| lines.error(format!("{} is too large", shown())))?]
        }
        (Layout::Coordinate, _) => {
            return Err(lines.error(format!("{} should be three counts: rows, columns, entries", shown())));
        }
        (Layout::Array, _) => {
            return Err(lines.error(format!("{} should be two counts: rows, columns", shown())));
        }
    };
    if n_rows.max(n_cols) as u64 > 1 << 32 {
        return Err(lines.error(format!("{n_rows} × {n_cols} is too large: at most 2³² rows and columns")));
    }
    if symmetry != Symmetry::General && n_rows != n_cols {
        return Err(lines.error(format!(
            "a {symmetry} matrix of {n_rows} × {n_cols} is not square; if it holds all entries, write \
             `general` in the banner"
        )));
    }
    refuse_empty(lines, "rows", n_rows, n_entries)?;
    refuse_empty(lines, "columns", n_cols, n_entries)?;
    Ok([n_rows, n_cols, n_entries])
}

/// Refuses a size that would take memory that no byte of the file stands for.
fn refuse_empty(lines: &Lines<'_>, what: &str, n: usize, n_entries: usize) -> Result<(), MatrixMarketError> {
    if n <= SIZE_ALWAYS || n / SIZE_PER_ENTRY <= n_entries {
        return Ok(());
    }
    Err(lines.error(format!(
        "nearly all of {n} {what} are empty: {n_entries} entries are announced; check the counts, or renumber the \
         {what} that have entries"
    )))
}

fn array_entries(n_rows: usize, n_cols: usize, symmetry: Symmetry) -> Option<usize> {
    match symmetry {
        Symmetry::General => n_rows.checked_mul(n_cols),
        Symmetry::Symmetric => Some(n_rows.checked_mul(n_rows.checked_add(1)?)? / 2),
        Symmetry::SkewSymmetric => Some(n_rows.checked_mul(n_rows.saturating_sub(1))? / 2),
    }
}
