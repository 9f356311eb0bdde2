//! HDF5 files with groups, attributes and contiguous arrays, written from begin to end.
//!
//! Superblock version 2, object headers version 2 with compact links: HDF5 1.8 and later read them. All addresses are known
//! before the first byte, because no header has a size that depends on one. Specification: *HDF5 File Format Specification*,
//! version 3.0, sections II.A, IV.A.

use std::io::{Result, Write};

/// An address that does not exist.
const UNDEFINED: u64 = u64::MAX;

/// Arrays begin at multiples of this.
const ALIGNMENT: u64 = 8;

/// Writes the bytes of an array.
pub(super) type Content<'a> = Box<dyn Fn(&mut dyn Write) -> Result<()> + 'a>;

/// The type of the numbers of an array, all with the lowest byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    F64,
    I64,
    I32,
    U8,
}

/// An array of numbers, the last index running fastest.
pub(super) struct Dataset<'a> {
    pub kind: Kind,
    pub shape: Vec<u64>,
    /// Writes as many bytes as shape and kind say.
    pub content: Content<'a>,
}

/// The value of an attribute.
pub(super) enum Attribute {
    /// One number.
    Number(i64),
    /// A list of numbers.
    Numbers(Vec<i64>),
    /// A text of a fixed length in ASCII.
    Text(&'static str),
}

/// A group of other groups and of arrays.
#[derive(Default)]
pub(super) struct Group<'a> {
    pub attributes: Vec<(&'static str, Attribute)>,
    children: Vec<(String, Node<'a>)>,
}

enum Node<'a> {
    Group(Group<'a>),
    Dataset(Dataset<'a>),
}

impl Kind {
    fn size(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::I32 => 4,
            Self::U8 => 1,
        }
    }

    /// Returns the message of the type.
    fn message(self) -> Vec<u8> {
        let size = self.size() as u8;
        match self {
            // Sign at bit 63, an exponent of 11 bits from bit 52 on with the bias 1023, a mantissa of 52 bits.
            Self::F64 => vec![0x11, 0x20, 63, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0],
            Self::I64 | Self::I32 => vec![0x10, 0x08, 0, 0, size, 0, 0, 0, 0, 0, 8 * size, 0],
            Self::U8 => vec![0x10, 0, 0, 0, size, 0, 0, 0, 0, 0, 8 * size, 0],
        }
    }
}

impl Dataset<'_> {
    fn n_bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.kind.size()
    }
}

impl<'a> Group<'a> {
    /// Adds a group; names of a group differ.
    pub fn group(&mut self, name: &str, group: Group<'a>) {
        self.children.push((name.into(), Node::Group(group)));
    }

    /// Adds an array.
    pub fn dataset(&mut self, name: &str, dataset: Dataset<'a>) {
        self.children.push((name.into(), Node::Dataset(dataset)));
    }

    /// Writes a file with this as its root.
    ///
    /// # Errors
    /// Those of `out` and of the arrays.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        // Headers come first, that of a group before those in it, then the arrays.
        let mut nodes = Vec::new();
        collect(&Place::Group(self), &mut nodes);
        let sizes: Vec<u64> = nodes.iter().map(|node| node.header(&[], 0).len() as u64).collect();
        let mut end = SUPERBLOCK;
        let mut placed = |size: u64| {
            end += size;
            end - size
        };
        let headers: Vec<u64> = sizes.iter().map(|&size| placed(size)).collect();
        let data: Vec<u64> = nodes
            .iter()
            .map(|node| {
                let begin = end.next_multiple_of(ALIGNMENT);
                if node.n_bytes() == 0 {
                    return UNDEFINED;
                }
                end = begin + node.n_bytes();
                begin
            })
            .collect();
        out.write_all(&superblock(end))?;
        for (number, node) in nodes.iter().enumerate() {
            let children: Vec<u64> =
                (0..nodes.len()).filter(|&i| nodes[i].parent == Some(number)).map(|i| headers[i]).collect();
            out.write_all(&node.header(&children, data[number]))?;
        }
        let mut at = headers.last().zip(sizes.last()).map_or(SUPERBLOCK, |(begin, size)| begin + size);
        for (node, &begin) in nodes.iter().zip(&data).filter(|(_, begin)| **begin != UNDEFINED) {
            out.write_all(&vec![0; (begin - at) as usize])?;
            if let Place::Dataset(dataset) = node.place {
                (dataset.content)(out)?;
            }
            at = begin + node.n_bytes();
        }
        Ok(())
    }
}

/// A node of the tree, and the number of the group that it is in.
struct Numbered<'a, 'g> {
    place: Place<'a, 'g>,
    parent: Option<usize>,
}

#[derive(Clone, Copy)]
enum Place<'a, 'g> {
    Group(&'g Group<'a>),
    Dataset(&'g Dataset<'a>),
}

/// Numbers the nodes, each before those in it.
fn collect<'a, 'g>(root: &Place<'a, 'g>, nodes: &mut Vec<Numbered<'a, 'g>>) {
    nodes.push(Numbered { place: *root, parent: None });
    let mut next = 0;
    while next < nodes.len() {
        if let Place::Group(group) = nodes[next].place {
            for (_, child) in &group.children {
                let place = match child {
                    Node::Group(group) => Place::Group(group),
                    Node::Dataset(dataset) => Place::Dataset(dataset),
                };
                nodes.push(Numbered { place, parent: Some(next) });
            }
        }
        next += 1;
    }
}

impl Numbered<'_, '_> {
    fn n_bytes(&self) -> u64 {
        match self.place {
            Place::Group(_) => 0,
            Place::Dataset(dataset) => dataset.n_bytes(),
        }
    }

    /// Returns the object header, with the addresses of the headers of children, zero if they are not known, and of the data.
    fn header(&self, children: &[u64], data: u64) -> Vec<u8> {
        let mut messages = Vec::new();
        let mut add = |kind: u8, content: &[u8]| {
            messages.push(kind);
            messages.extend((content.len() as u16).to_le_bytes());
            messages.push(0);
            messages.extend(content);
        };
        match self.place {
            Place::Group(group) => {
                let nowhere = UNDEFINED.to_le_bytes();
                add(0x02, &[&[0, 0][..], &nowhere, &nowhere].concat());
                add(0x0a, &[0, 0]);
                for (i, (name, _)) in group.children.iter().enumerate() {
                    let address = children.get(i).copied().unwrap_or(0).to_le_bytes();
                    let length = (name.len() as u16).to_le_bytes();
                    // A name in UTF-8 whose length has two bytes.
                    add(0x06, &[&[1, 0x11, 1][..], &length, name.as_bytes(), &address].concat());
                }
                for (name, value) in &group.attributes {
                    add(0x0c, &value.message(name));
                }
            }
            Place::Dataset(dataset) => {
                add(0x01, &dataspace(&dataset.shape));
                add(0x03, &dataset.kind.message());
                // No value is filled in, as all are written.
                add(0x05, &[3, 0x0a]);
                add(0x08, &[&[3, 1][..], &data.to_le_bytes(), &dataset.n_bytes().to_le_bytes()].concat());
            }
        }
        let mut header = b"OHDR\x02\x02".to_vec();
        header.extend((messages.len() as u32).to_le_bytes());
        header.extend(messages);
        summed(header)
    }
}

impl Attribute {
    /// Returns the message of an attribute.
    fn message(&self, name: &str) -> Vec<u8> {
        let (kind, shape, data): (_, &[u64], Vec<u8>) = match self {
            Self::Number(number) => (Kind::I64.message(), &[], number.to_le_bytes().to_vec()),
            Self::Numbers(numbers) => (
                Kind::I64.message(),
                &[numbers.len() as u64],
                numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            ),
            // Padded with zeros, of which there are none.
            Self::Text(text) => {
                let length = (text.len() as u32).to_le_bytes();
                ([&[0x13, 1, 0, 0][..], &length].concat(), &[], text.as_bytes().to_vec())
            }
        };
        let space = dataspace(shape);
        let length = |bytes: usize| (bytes as u16).to_le_bytes();
        let (of_name, of_kind, of_space) = (length(name.len() + 1), length(kind.len()), length(space.len()));
        [&[3, 0][..], &of_name, &of_kind, &of_space, &[0], name.as_bytes(), &[0], &kind, &space, &data]
            .concat()
    }
}

/// Bytes of the superblock.
const SUPERBLOCK: u64 = 48;

/// Returns the superblock of a file with an end; the header of its root follows.
fn superblock(end: u64) -> Vec<u8> {
    let mut block = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
    [0, UNDEFINED, end, SUPERBLOCK].iter().for_each(|address| block.extend(address.to_le_bytes()));
    summed(block)
}

/// Returns the message of a shape; that of one number is empty.
fn dataspace(shape: &[u64]) -> Vec<u8> {
    let mut message = vec![2, shape.len() as u8, 0, u8::from(!shape.is_empty())];
    shape.iter().for_each(|n| message.extend(n.to_le_bytes()));
    message
}

/// Adds the checksum of bytes at their end.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = lookup3(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Returns the hash `hashlittle` of Bob Jenkins (lookup3.c, public domain), by which HDF5 checks its metadata.
fn lookup3(bytes: &[u8]) -> u32 {
    let begin = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let [mut a, mut b, mut c] = [begin; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        (a, b, c) = mixed(added([a, b, c], block));
        rest = after;
    }
    if rest.is_empty() {
        return c;
    }
    [a, b, c] = added([a, b, c], rest);
    for (rotation, turn) in [14, 11, 25, 16, 4, 14, 24].into_iter().zip(0..) {
        // c from b, a from c, b from a, and again.
        match turn % 3 {
            0 => c = (c ^ b).wrapping_sub(b.rotate_left(rotation)),
            1 => a = (a ^ c).wrapping_sub(c.rotate_left(rotation)),
            _ => b = (b ^ a).wrapping_sub(a.rotate_left(rotation)),
        }
    }
    c
}

/// Adds up to 12 bytes to three words.
fn added(mut words: [u32; 3], bytes: &[u8]) -> [u32; 3] {
    for (i, &byte) in bytes.iter().enumerate() {
        words[i / 4] = words[i / 4].wrapping_add(u32::from(byte) << (8 * (i % 4)));
    }
    words
}

fn mixed([mut a, mut b, mut c]: [u32; 3]) -> (u32, u32, u32) {
    for [first, second, third] in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    (a, b, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_published_test() {
        // lookup3.c, driver5.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
