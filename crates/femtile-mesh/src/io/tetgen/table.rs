//! One file of the family: a header of counts, then a record for each node, cell or facet.

use std::path::Path;

use crate::MeshError;
use crate::io::scanner::Scanner;

/// Largest number of attributes of a record: each becomes a field, which takes memory.
const MOST_COLUMNS: usize = 1024;

/// Counts of a header and whether what follows is binary.
pub(super) struct Header {
    /// Number of records.
    pub n_records: usize,
    /// The counts after it: at most three.
    pub counts: [usize; 3],
    /// Chaste's binary form.
    pub binary: bool,
}

/// Opens a file at its header; `what` are the records, `bytes_each` the least one of them needs as text.
pub(super) fn open<'a>(
    path: &'a Path,
    bytes: &'a [u8],
    what: &str,
    bytes_each: usize,
) -> Result<(Scanner<'a>, Header), MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#');
    let n_records = scanner.count(what, bytes_each)?;
    let mut header = Header { n_records, counts: [0; 3], binary: false };
    let mut n_counts = 0;
    while let Some(word) = scanner.word_of_line() {
        if word == b"BIN" {
            header.binary = true;
            break;
        }
        let count = crate::io::number::integer(word).and_then(|count| usize::try_from(count).ok());
        let (Some(count), Some(slot)) =
            (count.filter(|&count| count <= MOST_COLUMNS), header.counts.get_mut(n_counts))
        else {
            return Err(scanner.error(format!(
                "the header should hold at most four counts and perhaps `BIN`, after the first one none above \
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

/// Records of nodes that a cell or facet has, followed by attributes.
pub(super) struct Table {
    /// `[n_records × n_nodes]`, as in the file.
    pub nodes: Vec<i64>,
    /// `[n_records × n_attributes]`.
    pub attributes: Vec<f64>,
    /// Numbers of attributes a record.
    pub n_attributes: usize,
}

/// Reads the records of a file of cells or facets.
pub(super) fn records(
    mut scanner: Scanner<'_>,
    header: &Header,
    n_nodes: usize,
    n_attributes: usize,
    what: &str,
) -> Result<Table, MeshError> {
    let n = header.n_records;
    // A number takes two bytes of text or more; as binary four for a node and eight for an attribute.
    let least = if header.binary { 4 * n_nodes + 8 * n_attributes } else { 2 * (1 + n_nodes + n_attributes) };
    scanner.announce(n, what, least)?;
    let mut table = Table {
        nodes: Vec::with_capacity(n * n_nodes),
        attributes: Vec::with_capacity(n * n_attributes),
        n_attributes,
    };
    for _ in 0..n {
        if header.binary {
            let record = scanner.take(least, what)?;
            let (nodes, attributes) = record.split_at(4 * n_nodes);
            table.nodes.extend(nodes.as_chunks().0.iter().map(|&node| i64::from(u32::from_le_bytes(node))));
            table.attributes.extend(attributes.as_chunks().0.iter().map(|&value| f64::from_le_bytes(value)));
            continue;
        }
        scanner.integer::<i64>("the number of a record")?;
        for _ in 0..n_nodes {
            table.nodes.push(scanner.integer("a node")?);
        }
        for _ in 0..n_attributes {
            table.attributes.push(scanner.real("an attribute")?);
        }
        scanner.end_of_line("a record")?;
    }
    if !header.binary && scanner.word().is_some() {
        return Err(scanner.error(format!("more than the {n} records that the first line announces")));
    }
    Ok(table)
}

impl Table {
    /// Attribute `column` as tags when all of it is whole numbers in range.
    pub(super) fn tags(&self, column: usize) -> Option<Vec<i32>> {
        let whole = |value: f64| (value == f64::from(value as i32)).then_some(value as i32);
        self.column(column).map(whole).collect()
    }

    /// One attribute of all records.
    pub(super) fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        self.attributes.iter().skip(column).step_by(self.n_attributes.max(1)).copied()
    }
}
