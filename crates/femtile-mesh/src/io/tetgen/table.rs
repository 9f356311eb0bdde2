//! One file of the family: a header of counts, then a record for each node, cell or facet.

use std::path::Path;

use crate::io::number;
use crate::io::scanner::{Scanner, show};
use crate::{MeshError, Place};

/// Largest number of attributes of a record: each becomes a field, which takes memory.
const MOST_COLUMNS: usize = 1024;

/// Counts of a header and whether the rest is binary.
pub(super) struct Header {
    /// Number of records.
    pub n_records: usize,
    /// The counts after it: at most three.
    pub counts: [usize; 3],
    /// Chaste's binary form.
    pub binary: bool,
    /// Chaste's mark of quadrilaterals and hexahedra.
    pub is_product: bool,
}

/// Opens a file at its header. `what` names the records; `bytes_each` is the least size of a record as text.
pub(super) fn open<'a>(
    path: &'a Path,
    bytes: &'a [u8],
    what: &str,
    bytes_each: usize,
) -> Result<(Scanner<'a>, Header), MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#').by_lines();
    scanner.next_line();
    let n_records = scanner.count(what, bytes_each)?;
    let mut header = Header { n_records, counts: [0; 3], binary: false, is_product: false };
    let mut n_counts = 0;
    while let Some(word) = scanner.word_of_line() {
        if word == b"BIN" {
            header.binary = true;
            break;
        }
        if word == b"HEX" {
            header.is_product = true;
            continue;
        }
        let count = number::whole(word).and_then(|count| usize::try_from(count).ok());
        let (Some(count), Some(slot)) =
            (count.filter(|&count| count <= MOST_COLUMNS), header.counts.get_mut(n_counts))
        else {
            return Err(scanner.error(format!(
                "the header should hold at most four counts and perhaps `BIN` or `HEX`, after the first one none above \
                 {MOST_COLUMNS}"
            )));
        };
        *slot = count;
        n_counts += 1;
    }
    if header.binary {
        scanner.rest_of_line();
    }
    Ok((scanner, header))
}

/// Passes over the rest of a record and returns how many columns it has beyond those of the header.
///
/// # Errors
/// [`MeshError::Parse`] for words that are not numbers.
pub(super) fn further_columns(scanner: &mut Scanner<'_>, what: &str) -> Result<usize, MeshError> {
    let mut n_columns = 0;
    while let Some(word) = scanner.word_of_line() {
        if number::real(word).is_none() {
            return Err(scanner.error(format!("`{}` follows {what} on its line", show(word))));
        }
        n_columns += 1;
    }
    Ok(n_columns)
}

/// The note about columns beyond those of the header: markers that it does not announce, neighbours, other nodes.
pub(super) fn note_of_columns(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("`{name}` has more columns than its first line announces: these are left out, as TetGen does")
}

/// Records of nodes that a cell or facet has, followed by attributes.
pub(super) struct Table<'a> {
    /// At the first record.
    begin: Scanner<'a>,
    is_binary: bool,
    /// `[n_records × n_nodes]`, as in the file.
    pub nodes: Vec<i64>,
    /// `[n_records × n_attributes]`.
    pub attributes: Vec<f64>,
    /// Numbers of attributes a record.
    pub n_attributes: usize,
    /// True if records have columns that the header does not announce.
    pub has_further_columns: bool,
}

/// Reads the records of a file of cells or facets.
pub(super) fn records<'a>(
    mut scanner: Scanner<'a>,
    header: &Header,
    n_nodes: usize,
    n_attributes: usize,
    what: &str,
) -> Result<Table<'a>, MeshError> {
    let n = header.n_records;
    // A number takes two bytes of text or more; as binary four for a node and eight for an attribute.
    let least = if header.binary { 4 * n_nodes + 8 * n_attributes } else { 2 * (1 + n_nodes + n_attributes) };
    scanner.announce(n, what, least)?;
    let mut table = Table {
        begin: scanner.clone(),
        is_binary: header.binary,
        nodes: Vec::with_capacity(n * n_nodes),
        attributes: Vec::with_capacity(n * n_attributes),
        n_attributes,
        has_further_columns: false,
    };
    for _ in 0..n {
        if header.binary {
            let record = scanner.take(least, what)?;
            let (nodes, attributes) = record.split_at(4 * n_nodes);
            table.nodes.extend(nodes.as_chunks().0.iter().map(|&node| i64::from(u32::from_le_bytes(node))));
            table.attributes.extend(attributes.as_chunks().0.iter().map(|&value| f64::from_le_bytes(value)));
            continue;
        }
        scanner.next_line();
        scanner.integer::<i64>("the number of a record")?;
        for _ in 0..n_nodes {
            table.nodes.push(scanner.integer("a node")?);
        }
        for _ in 0..n_attributes {
            table.attributes.push(scanner.real("an attribute")?);
        }
        table.has_further_columns |= further_columns(&mut scanner, "a record")? > 0;
    }
    if !header.binary && scanner.word().is_some() {
        return Err(scanner.error(format!("more than the {n} records that the first line announces")));
    }
    Ok(table)
}

impl Table<'_> {
    /// Attribute `column` as tags, or the first record if it is not a whole number in range.
    pub(super) fn tags(&self, column: usize) -> Result<Vec<i32>, usize> {
        let whole = |(record, value)| {
            if value == f64::from(value as i32) { Ok(value as i32) } else { Err(record) }
        };
        self.column(column).enumerate().map(whole).collect()
    }

    /// The fault of a record, with its line and its number in the file; `message` follows the number.
    pub(super) fn error(&self, what: &str, record: usize, message: &str) -> MeshError {
        let mut at = self.begin.clone();
        if self.is_binary {
            let message = format!("{what} {record} (from 0) {message}");
            return MeshError::Parse { path: at.path().into(), place: Place::Whole, message };
        }
        for _ in 0..record {
            at.next_line();
            at.rest_of_line();
        }
        at.next_line();
        let number = show(at.word_of_line().unwrap_or_default());
        at.error(format!("{what} {number} {message}"))
    }

    /// One attribute of all records.
    pub(super) fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        self.attributes.iter().skip(column).step_by(self.n_attributes.max(1)).copied()
    }
}
