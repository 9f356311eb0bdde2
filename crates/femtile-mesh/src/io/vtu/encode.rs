//! Arrays of a VTU file and the document around them.

use std::io::Write;
use std::ops::Range;

use femtile_device::parallel;
use flate2::write::ZlibEncoder;

use super::options::Compression;
use crate::io::name::xml_name;
use crate::io::sum::Summed;

/// Bytes of one compressed block: small enough to stay in cache, large enough to compress well.
const BLOCK_BYTES: usize = 1 << 15;

/// Bytes that threads make while those before are written.
const PIECE_BYTES: usize = 1 << 22;

/// Writes the bytes of an array from some byte on into a slice. The slice begins and ends at values.
pub(super) type Source<'a> = dyn Fn(usize, &mut [u8]) + Sync + 'a;

/// One array of the file: its XML attributes and a source of its bytes.
pub(super) struct Array<'a> {
    pub name: String,
    pub kind: &'static str,
    pub n_components: usize,
    pub bytes: Box<Source<'a>>,
    pub n_bytes: usize,
    /// True if the values follow from a solution: their bytes stand after those of all other arrays.
    pub is_late: bool,
}

/// The counts of a document and how it is written.
pub(super) struct Head {
    pub version: &'static str,
    pub n_points: usize,
    pub n_cells: usize,
    pub compression: Compression,
}

/// A source of the bytes of values; `values` returns them from a given value on.
pub(super) fn source<'a, const N: usize, I: Iterator<Item = [u8; N]>>(
    values: impl Fn(usize) -> I + Sync + 'a,
) -> Box<Source<'a>> {
    Box::new(move |first, bytes| {
        let to = bytes.as_chunks_mut::<N>().0;
        to.iter_mut().zip(values(first / N)).for_each(|(to, value)| *to = value);
    })
}

/// A source of the bytes of stored values and of those that follow them; `rest` returns the latter from a
/// given value on.
pub(super) fn stored<'a, const N: usize, T: Copy + Sync, I: Iterator<Item = [u8; N]>>(
    values: &'a [T],
    encode: impl Fn(T) -> [u8; N] + Sync + 'a,
    rest: impl Fn(usize) -> I + Sync + 'a,
) -> Box<Source<'a>> {
    Box::new(move |first, bytes| {
        let (first, to) = (first / N, bytes.as_chunks_mut::<N>().0);
        let own = &values[first.min(values.len())..];
        let (begin, end) = to.split_at_mut(own.len().min(to.len()));
        begin.iter_mut().zip(own).for_each(|(to, &value)| *to = encode(value));
        end.iter_mut().zip(rest(first.saturating_sub(values.len()))).for_each(|(to, value)| *to = value);
    })
}

impl Array<'_> {
    /// Returns ranges of `size` bytes, the last one shorter.
    fn ranges(&self, size: usize) -> impl Iterator<Item = Range<usize>> {
        let n_bytes = self.n_bytes;
        (0..n_bytes).step_by(size).map(move |begin| begin..(begin + size).min(n_bytes))
    }

    /// Returns the bytes of a range, produced by all threads.
    fn fill(&self, bytes: &mut Vec<u8>, range: Range<usize>) {
        bytes.resize(range.len(), 0);
        parallel::for_chunks_mut(bytes, BLOCK_BYTES, |begin, bytes| (self.bytes)(range.start + begin, bytes));
    }

    /// Writes all bytes; the next piece is produced while the previous one is written.
    fn write(&self, out: &mut Summed<'_>) -> std::io::Result<()> {
        let [mut ready, mut next] = [Vec::new(), Vec::new()];
        for range in self.ranges(PIECE_BYTES) {
            out.write_beside(&ready, || self.fill(&mut next, range))?;
            std::mem::swap(&mut ready, &mut next);
        }
        out.write_beside(&ready, || ())
    }

    /// Compresses all bytes, a block each, by all threads.
    fn compressed(&self, compression: Compression) -> std::io::Result<Compressed> {
        let ranges: Vec<Range<usize>> = self.ranges(BLOCK_BYTES).collect();
        let compress = |bytes: &mut Vec<u8>, block: usize| {
            let range = ranges[block].clone();
            bytes.resize(range.len(), 0);
            (self.bytes)(range.start, bytes);
            if compression == Compression::Lz4 {
                return Ok(lz4_flex::block::compress(bytes));
            }
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes)?;
            encoder.finish()
        };
        let blocks = parallel::map_with(ranges.len(), 1, Vec::new, compress);
        Ok(Compressed { blocks: blocks.into_iter().collect::<std::io::Result<_>>()?, n_bytes: self.n_bytes })
    }
}

/// Compresses an array in separate blocks of [`BLOCK_BYTES`].
struct Compressed {
    blocks: Vec<Vec<u8>>,
    /// Bytes of the array as it was.
    n_bytes: usize,
}

impl Compressed {
    /// Bytes that it takes in the file.
    fn len(&self) -> usize {
        8 * (3 + self.blocks.len()) + self.blocks.iter().map(Vec::len).sum::<usize>()
    }

    /// Writes number of blocks, block size, size of the last one if it is short and compressed sizes, then
    /// the blocks.
    fn write(self, out: &mut Summed<'_>) -> std::io::Result<()> {
        let head = [self.blocks.len(), BLOCK_BYTES, self.n_bytes % BLOCK_BYTES];
        let sizes = self.blocks.iter().map(Vec::len);
        for number in head.into_iter().chain(sizes) {
            out.write_all(&(number as u64).to_le_bytes())?;
        }
        self.blocks.into_iter().try_for_each(|block| out.write_all(&block))
    }
}

/// Writes the whole file: heads of arrays in XML, then their bytes, those of late arrays last.
pub(super) fn write_document(
    out: &mut Summed<'_>,
    head: &Head,
    groups: &[(&str, Vec<Array<'_>>)],
) -> std::io::Result<()> {
    let arrays = || in_order(groups).map(|(_, array)| array);
    if head.compression == Compression::None {
        write_begin(out, head, groups)?;
        return write_end(out, arrays().filter(|array| array.is_late));
    }
    // Heads of arrays say where their bytes stand, so all have to be compressed first.
    let compressed = arrays().map(|array| array.compressed(head.compression));
    let compressed: Vec<Compressed> = compressed.collect::<Result<_, _>>()?;
    let sizes: Vec<usize> = compressed.iter().map(Compressed::len).collect();
    write_heads(out, head, groups, &sizes)?;
    compressed.into_iter().try_for_each(|array| array.write(out))?;
    write_end(out, std::iter::empty())
}

/// Writes the headers of all arrays without compression and the bytes of arrays that are not late.
pub(super) fn write_begin(
    out: &mut Summed<'_>,
    head: &Head,
    groups: &[(&str, Vec<Array<'_>>)],
) -> std::io::Result<()> {
    let sizes: Vec<usize> = in_order(groups).map(|(_, array)| 8 + array.n_bytes).collect();
    write_heads(out, head, groups, &sizes)?;
    in_order(groups).filter(|(_, array)| !array.is_late).try_for_each(|(_, array)| write_sized(out, array))
}

/// Writes the bytes of late arrays and the end of the file.
pub(super) fn write_end<'a>(
    out: &mut Summed<'_>,
    mut late: impl Iterator<Item = &'a Array<'a>>,
) -> std::io::Result<()> {
    late.try_for_each(|array| write_sized(out, array))?;
    writeln!(out, "\n</AppendedData>\n</VTKFile>")
}

fn write_sized(out: &mut Summed<'_>, array: &Array<'_>) -> std::io::Result<()> {
    out.write_all(&(array.n_bytes as u64).to_le_bytes())?;
    array.write(out)
}

/// Arrays in the order of their bytes, with their places in the order of their heads.
fn in_order<'g, 'a>(groups: &'g [(&str, Vec<Array<'a>>)]) -> impl Iterator<Item = (usize, &'g Array<'a>)> {
    let of = |is_late| {
        let arrays = groups.iter().flat_map(|(_, arrays)| arrays).enumerate();
        arrays.filter(move |(_, array)| array.is_late == is_late)
    };
    of(false).chain(of(true))
}

/// Writes the XML up to the first byte of an array; `sizes` are those of arrays in the order of their bytes.
fn write_heads(
    out: &mut Summed<'_>,
    head: &Head,
    groups: &[(&str, Vec<Array<'_>>)],
    sizes: &[usize],
) -> std::io::Result<()> {
    let Head { version, n_points, n_cells, compression } = *head;
    let (mut offsets, mut offset) = (vec![0; sizes.len()], 0);
    for ((place, _), size) in in_order(groups).zip(sizes) {
        offsets[place] = offset;
        offset += size;
    }
    let compressor =
        compression.compressor().map(|name| format!(" compressor=\"{name}\"")).unwrap_or_default();
    writeln!(out, "<?xml version=\"1.0\"?>")?;
    writeln!(
        out,
        "<VTKFile type=\"UnstructuredGrid\" version=\"{version}\" byte_order=\"LittleEndian\" header_type=\"UInt64\"{compressor}>"
    )?;
    writeln!(out, "<UnstructuredGrid>\n<Piece NumberOfPoints=\"{n_points}\" NumberOfCells=\"{n_cells}\">")?;
    let mut offsets = offsets.into_iter();
    for (group, arrays) in groups {
        writeln!(out, "<{group}>")?;
        for (Array { name, kind, n_components, .. }, offset) in arrays.iter().zip(&mut offsets) {
            let name = xml_name(name);
            writeln!(
                out,
                "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{n_components}\" \
                 format=\"appended\" offset=\"{offset}\"/>"
            )?;
        }
        writeln!(out, "</{group}>")?;
    }
    write!(out, "</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_")
}

/// Writes the file that names pieces: the arrays of each by group, then the names of their files.
pub(super) fn write_index(
    out: &mut Summed<'_>,
    version: &str,
    groups: [(&str, &[Array<'_>]); 2],
    pieces: &[String],
) -> std::io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\"?>")?;
    writeln!(
        out,
        "<VTKFile type=\"PUnstructuredGrid\" version=\"{version}\" byte_order=\"LittleEndian\" header_type=\"UInt64\">"
    )?;
    writeln!(out, "<PUnstructuredGrid GhostLevel=\"0\">")?;
    for (group, arrays) in groups {
        writeln!(out, "<{group}>")?;
        for Array { name, kind, n_components, .. } in arrays {
            let name = xml_name(name);
            writeln!(
                out,
                "<PDataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{n_components}\"/>"
            )?;
        }
        writeln!(out, "</{group}>")?;
    }
    writeln!(
        out,
        "<PPoints>\n<PDataArray type=\"Float64\" Name=\"Points\" NumberOfComponents=\"3\"/>\n</PPoints>"
    )?;
    pieces.iter().try_for_each(|piece| writeln!(out, "<Piece Source=\"{}\"/>", xml_name(piece)))?;
    writeln!(out, "</PUnstructuredGrid>\n</VTKFile>")
}
