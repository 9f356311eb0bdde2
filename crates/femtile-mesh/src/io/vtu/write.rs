use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::io::atomic::write_atomically;
use crate::{CellKind, Field, Mesh, MeshError};

/// Bytes of one compressed block: small enough to stay in cache, large enough to compress well.
const BLOCK_BYTES: usize = 1 << 15;

/// How a VTU file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Compress with zlib: files a third of the size, written several times slower.
    pub compress: bool,
    /// Write tagged facets as cells too, after the cells of the mesh.
    pub facets: bool,
}

/// Takes the bytes of an array, block after block.
type Sink<'a> = dyn FnMut(&[u8]) -> std::io::Result<()> + 'a;

/// Gives all bytes of an array to a sink.
type Source<'a> = dyn Fn(&mut Sink<'_>) -> std::io::Result<()> + 'a;

/// One array of the file: its XML attributes and a source of its bytes.
struct Array<'a> {
    name: String,
    kind: &'static str,
    n_components: usize,
    bytes: Box<Source<'a>>,
    n_bytes: usize,
}

/// Writes the mesh with its own fields and tags and further fields, uncompressed, for ParaView.
///
/// Cell tags go into the cell array `tag`. The file appears under its name only when it is complete.
///
/// # Errors
/// [`MeshError::Invalid`] when a field has not one entry for each node or cell, [`MeshError::Io`] when
/// the file cannot be written.
pub fn write(
    path: &Path,
    mesh: &Mesh,
    point_data: &[(&str, &Field)],
    cell_data: &[(&str, &Field)],
) -> Result<(), MeshError> {
    write_with(path, mesh, point_data, cell_data, WriteOptions::default())
}

/// Writes as [`write()`] does, with options.
///
/// # Errors
/// Those of [`write()`].
pub fn write_with(
    path: &Path,
    mesh: &Mesh,
    point_data: &[(&str, &Field)],
    cell_data: &[(&str, &Field)],
    options: WriteOptions,
) -> Result<(), MeshError> {
    let n_facets = if options.facets { mesh.facets.tags.len() } else { 0 };
    let n_cells = mesh.n_cells() + n_facets;
    let own = mesh.node_fields.iter().map(|(name, field)| (name.as_str(), field));
    let points = fields("point_data", own.chain(point_data.iter().copied()), mesh.n_nodes(), 0)?;
    let own = mesh.cell_fields.iter().map(|(name, field)| (name.as_str(), field));
    let mut cells = fields("cell_data", own.chain(cell_data.iter().copied()), mesh.n_cells(), n_facets)?;
    if !mesh.cell_tags.is_empty() || n_facets > 0 {
        cells.push(tags(mesh, n_facets));
    }
    let coordinates = Array {
        name: "Points".into(),
        kind: "Float64",
        n_components: 3,
        n_bytes: mesh.n_nodes() * 24,
        bytes: Box::new(|sink| sink_all(sink, mesh.points.iter().flatten().map(|x| x.to_le_bytes()))),
    };
    let topology = topology(mesh, n_facets);
    let groups =
        [("PointData", points), ("CellData", cells), ("Points", vec![coordinates]), ("Cells", topology)];
    write_atomically(path, |out| write_document(out, mesh.n_nodes(), n_cells, &groups, options.compress))
}

fn fields<'a>(
    what: &'static str,
    fields: impl Iterator<Item = (&'a str, &'a Field)>,
    n: usize,
    n_padding: usize,
) -> Result<Vec<Array<'a>>, MeshError> {
    let mut arrays: Vec<Array<'a>> = Vec::new();
    for (name, field) in fields {
        if field.n_components == 0 || field.values.len() != n * field.n_components {
            let (found, wide) = (field.values.len(), field.n_components);
            let message = format!("`{name}` has {found} values for {n} × {wide}");
            return Err(MeshError::Invalid { field: what, message });
        }
        let padding = n_padding * field.n_components;
        let values = move || field.values.iter().copied().chain(std::iter::repeat_n(f64::NAN, padding));
        arrays.retain(|array| array.name != name);
        arrays.push(Array {
            name: name.into(),
            kind: "Float64",
            n_components: field.n_components,
            n_bytes: 8 * (field.values.len() + padding),
            bytes: Box::new(move |sink| sink_all(sink, values().map(f64::to_le_bytes))),
        });
    }
    Ok(arrays)
}

fn tags(mesh: &Mesh, n_facets: usize) -> Array<'_> {
    let untagged = if mesh.cell_tags.is_empty() { mesh.n_cells() } else { 0 };
    let of_facets = &mesh.facets.tags[..n_facets];
    Array {
        name: "tag".into(),
        kind: "Int32",
        n_components: 1,
        n_bytes: 4 * (mesh.n_cells() + n_facets),
        bytes: Box::new(move |sink| {
            let cells = mesh.cell_tags.iter().copied().chain(std::iter::repeat_n(0, untagged));
            sink_all(sink, cells.chain(of_facets.iter().copied()).map(i32::to_le_bytes))
        }),
    }
}

fn topology(mesh: &Mesh, n_facets: usize) -> Vec<Array<'_>> {
    let facet = mesh.kind.facet_kind().filter(|_| n_facets > 0);
    let per_facet = facet.map_or(0, CellKind::n_nodes);
    let (per_cell, n_cells) = (mesh.kind.n_nodes(), mesh.n_cells());
    let of_facets = &mesh.facets.nodes[..per_facet * n_facets];
    let array =
        |name: &str, kind, n_bytes, bytes| Array { name: name.into(), kind, n_components: 1, n_bytes, bytes };
    vec![
        array(
            "connectivity",
            "Int64",
            8 * (mesh.cells.len() + of_facets.len()),
            Box::new(move |sink| {
                let nodes = mesh.cells.iter().chain(of_facets);
                sink_all(sink, nodes.map(|&node| u64::from(node).to_le_bytes()))
            }),
        ),
        array(
            "offsets",
            "Int64",
            8 * (n_cells + n_facets),
            Box::new(move |sink| {
                let cells = (1..=n_cells).map(move |i| i * per_cell);
                let facets = (1..=n_facets).map(move |i| n_cells * per_cell + i * per_facet);
                sink_all(sink, cells.chain(facets).map(|end| (end as u64).to_le_bytes()))
            }),
        ),
        array(
            "types",
            "UInt8",
            n_cells + n_facets,
            Box::new(move |sink| {
                let cells = std::iter::repeat_n([mesh.kind.vtk_type()], n_cells);
                let facets = std::iter::repeat_n([facet.map_or(0, CellKind::vtk_type)], n_facets);
                sink_all(sink, cells.chain(facets))
            }),
        ),
    ]
}

/// Gives all bytes to `sink` in blocks of [`BLOCK_BYTES`], the last one shorter.
fn sink_all<const N: usize>(
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

fn write_document(
    out: &mut dyn Write,
    n_points: usize,
    n_cells: usize,
    groups: &[(&str, Vec<Array<'_>>)],
    compress: bool,
) -> std::io::Result<()> {
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
        "<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\"{compressor}>"
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
