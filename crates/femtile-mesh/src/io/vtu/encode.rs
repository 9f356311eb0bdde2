//! Arrays of a VTU file and the document around them.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Bytes of one compressed block: small enough to stay in cache, large enough to compress well.
const BLOCK_BYTES: usize = 1 << 15;

/// Takes the bytes of an array, block after block.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) -> std::io::Result<()> + 'a;

/// Gives all bytes of an array to a sink.
pub(super) type Source<'a> = dyn Fn(&mut Sink<'_>) -> std::io::Result<()> + 'a;

/// One array of the file: its XML attributes and a source of its bytes.
pub(super) struct Array<'a> {
    pub name: String,
    pub kind: &'static str,
    pub n_components: usize,
    pub bytes: Box<Source<'a>>,
    pub n_bytes: usize,
}

/// The counts of a document and how it is written.
pub(super) struct Head {
    pub version: &'static str,
    pub n_points: usize,
    pub n_cells: usize,
    pub compress: bool,
}

/// Gives all bytes to `sink` in blocks of [`BLOCK_BYTES`], the last one shorter.
pub(super) fn sink_all<const N: usize>(
    sink: &mut Sink<'_>,
    values: impl Iterator<Item = [u8; N]>,
) -> std::io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    for value in values {
        block.extend_from_slice(&value);
        if block.len() >= BLOCK_BYTES {
            sink(&block)?;
            block.clear();
        }
    }
    if block.is_empty() { Ok(()) } else { sink(&block) }
}

/// Writes the whole file: heads of arrays in XML, then their bytes.
pub(super) fn write_document(
    out: &mut dyn Write,
    head: &Head,
    groups: &[(&str, Vec<Array<'_>>)],
) -> std::io::Result<()> {
    let Head { version, n_points, n_cells, compress } = *head;
    let compressed: Option<Vec<Vec<u8>>> = if compress {
        let arrays = groups.iter().flat_map(|(_, arrays)| arrays);
        Some(arrays.map(compressed).collect::<Result<_, _>>()?)
    } else {
        None
    };
    let compressor = if compress { " compressor=\"vtkZLibDataCompressor\"" } else { "" };
    writeln!(out, "<?xml version=\"1.0\"?>")?;
    writeln!(
        out,
        "<VTKFile type=\"UnstructuredGrid\" version=\"{version}\" byte_order=\"LittleEndian\" header_type=\"UInt64\"{compressor}>"
    )?;
    writeln!(out, "<UnstructuredGrid>\n<Piece NumberOfPoints=\"{n_points}\" NumberOfCells=\"{n_cells}\">")?;
    let (mut offset, mut index) = (0, 0);
    for (group, arrays) in groups {
        writeln!(out, "<{group}>")?;
        for Array { name, kind, n_components, n_bytes, .. } in arrays {
            let name = quick_xml::escape::escape(name.as_str());
            writeln!(
                out,
                "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{n_components}\" \
                 format=\"appended\" offset=\"{offset}\"/>"
            )?;
            offset += compressed.as_ref().map_or(8 + n_bytes, |arrays| arrays[index].len());
            index += 1;
        }
        writeln!(out, "</{group}>")?;
    }
    write!(out, "</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_")?;
    match compressed {
        Some(arrays) => arrays.iter().try_for_each(|bytes| out.write_all(bytes))?,
        None => {
            for array in groups.iter().flat_map(|(_, arrays)| arrays) {
                out.write_all(&(array.n_bytes as u64).to_le_bytes())?;
                (array.bytes)(&mut |bytes| out.write_all(bytes))?;
            }
        }
    }
    writeln!(out, "\n</AppendedData>\n</VTKFile>")
}

/// Header (number of blocks, block size, size of the last one where it is short, compressed sizes), then blocks.
fn compressed(array: &Array<'_>) -> std::io::Result<Vec<u8>> {
    let (mut sizes, mut data, mut last) = (Vec::new(), Vec::new(), 0);
    (array.bytes)(&mut |block| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(block)?;
        let bytes = encoder.finish()?;
        sizes.push(bytes.len() as u64);
        data.extend_from_slice(&bytes);
        last = block.len();
        Ok(())
    })?;
    let short = if last == BLOCK_BYTES { 0 } else { last };
    let mut result = Vec::with_capacity(24 + 8 * sizes.len() + data.len());
    for number in [sizes.len() as u64, BLOCK_BYTES as u64, short as u64].into_iter().chain(sizes) {
        result.extend_from_slice(&number.to_le_bytes());
    }
    result.extend_from_slice(&data);
    Ok(result)
}
