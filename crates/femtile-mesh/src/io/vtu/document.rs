//! The XML of a VTU file: pieces, their arrays, and the position of the bytes of each array.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::array::Kind;
use crate::io::name::printable;

/// A fault and its position in bytes.
pub(super) type Problem = (usize, String);

/// The head of a file, without the values of its arrays.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    /// Version of the format: 0.1 by default.
    pub version: (u32, u32),
    pub big_endian: bool,
    pub wide_header: bool,
    pub compressor: Option<String>,
    pub pieces: Vec<Piece<'a>>,
    /// True if arrays of time steps after the first one are passed over.
    pub has_later_steps: bool,
    /// Bytes after the underscore of the appended data, and whether they are base64.
    pub appended: Option<(&'a [u8], bool)>,
}

/// One part of the grid.
#[derive(Debug, Default)]
pub(super) struct Piece<'a> {
    pub n_points: usize,
    pub n_cells: usize,
    pub arrays: Vec<DataArray<'a>>,
}

/// The owner of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    PointData,
    CellData,
    Points,
    Cells,
}

impl Group {
    fn parse(element: &str) -> Option<Self> {
        match element {
            "PointData" => Some(Self::PointData),
            "CellData" => Some(Self::CellData),
            "Points" => Some(Self::Points),
            "Cells" => Some(Self::Cells),
            _ => None,
        }
    }
}

/// Storage of the values of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format<'a> {
    /// Within the element, as text.
    Ascii(&'a [u8]),
    /// Within the element, as base64.
    Binary(&'a [u8]),
    /// In the appended data, from this byte on.
    Appended(usize),
}

/// One array of numbers: its type and the position of its values.
#[derive(Debug, Clone)]
pub(super) struct DataArray<'a> {
    pub group: Group,
    pub name: String,
    pub kind: Kind,
    pub n_components: usize,
    pub format: Format<'a>,
    /// Byte of the file at which the element begins.
    pub place: usize,
}

/// The mark with which some editors begin a file in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the XML of `bytes`; appended raw data, which is not XML, is cut off first.
pub(super) fn document(bytes: &[u8]) -> Result<Document<'_>, Problem> {
    let Some(rest) = bytes.strip_prefix(BYTE_ORDER_MARK) else { return without_mark(bytes) };
    let shift = |(place, message)| (place + BYTE_ORDER_MARK.len(), message);
    let mut document = without_mark(rest).map_err(shift)?;
    let arrays = document.pieces.iter_mut().flat_map(|piece| &mut piece.arrays);
    arrays.for_each(|array| array.place += BYTE_ORDER_MARK.len());
    Ok(document)
}

fn without_mark(bytes: &[u8]) -> Result<Document<'_>, Problem> {
    let mut document = Document::default();
    let xml = cut_appended(bytes, &mut document)?;
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().check_end_names = false;
    let mut group = None;
    let mut open: Option<usize> = None;
    loop {
        let place = reader.buffer_position() as usize;
        let event = reader
            .read_event()
            .map_err(|e| (reader.error_position() as usize, printable(&e.to_string()).into_owned()))?;
        match event {
            Event::Eof => break,
            Event::Start(element) => {
                let is_array = start(&mut document, group, &element, place)?;
                if is_array {
                    open = Some(reader.buffer_position() as usize);
                }
                group = Group::parse(element.name().as_ref()).or(group);
            }
            Event::Empty(element) => _ = start(&mut document, group, &element, place)?,
            Event::End(element) => match element.name().as_ref() {
                "DataArray" => {
                    let array = document.pieces.last_mut().and_then(|piece| piece.arrays.last_mut());
                    if let (Some(begin), Some(array)) = (open.take(), array) {
                        // Information keys, which some arrays carry, follow the values.
                        let inner = &xml[begin.min(place)..place];
                        let end = inner.iter().position(|&b| b == b'<').unwrap_or(inner.len());
                        match &mut array.format {
                            Format::Ascii(text) | Format::Binary(text) => *text = &inner[..end],
                            Format::Appended(_) => {}
                        }
                    }
                }
                name if Group::parse(name).is_some() => group = None,
                _ => {}
            },
            _ => {}
        }
    }
    Ok(document)
}

fn cut_appended<'a>(bytes: &'a [u8], document: &mut Document<'a>) -> Result<&'a [u8], Problem> {
    let tag = b"<AppendedData";
    let Some(begin) = bytes.windows(tag.len()).position(|window| window == tag) else {
        return Ok(bytes);
    };
    let missing = || (begin, "the appended data has no `_` before its first byte".to_string());
    let close = bytes[begin..].iter().position(|&b| b == b'>').ok_or_else(missing)? + begin;
    let mark = bytes[close..].iter().position(|&b| b == b'_').ok_or_else(missing)? + close;
    let base64 = bytes[begin..close].windows(6).any(|window| window == b"base64");
    document.appended = Some((&bytes[mark + 1..], base64));
    Ok(&bytes[..begin])
}

/// Records the content of an element; true if it is an array that is kept.
fn start(
    document: &mut Document<'_>,
    group: Option<Group>,
    element: &BytesStart<'_>,
    place: usize,
) -> Result<bool, Problem> {
    let attribute = |name: &str| attribute(element, name, place);
    match (element.name().as_ref(), group) {
        ("VTKFile", _) => {
            if let Some(kind) = attribute("type")?.filter(|kind| kind != "UnstructuredGrid") {
                return Err((
                    place,
                    format!("the file holds a {kind}; only an UnstructuredGrid can be read"),
                ));
            }
            document.version = attribute("version")?.map_or((0, 1), |text| version(&text));
            document.big_endian = attribute("byte_order")?.is_some_and(|order| order == "BigEndian");
            document.wide_header = attribute("header_type")?.is_some_and(|kind| kind == "UInt64");
            document.compressor = attribute("compressor")?.filter(|name| !name.is_empty());
        }
        ("Piece", _) => {
            let n_points = number(attribute("NumberOfPoints")?, "NumberOfPoints", place)?;
            let n_cells = number(attribute("NumberOfCells")?, "NumberOfCells", place)?;
            document.pieces.push(Piece { n_points, n_cells, arrays: Vec::new() });
        }
        // Where arrays have time steps, VTK shows the first one.
        ("DataArray", Some(_)) if attribute("TimeStep")?.is_some_and(|step| step.trim() != "0") => {
            document.has_later_steps = true;
        }
        ("DataArray", Some(group)) => {
            let Some(array) = data_array(element, group, place)? else { return Ok(false) };
            let Some(piece) = document.pieces.last_mut() else {
                return Err((place, "a DataArray stands outside of any Piece".into()));
            };
            piece.arrays.push(array);
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}

/// Returns the header of an array; none for data that are not numbers, such as strings, which are skipped.
fn data_array<'a>(
    element: &BytesStart<'_>,
    group: Group,
    place: usize,
) -> Result<Option<DataArray<'a>>, Problem> {
    let attribute = |name: &str| attribute(element, name, place);
    let name = attribute("Name")?.unwrap_or_default();
    let kind = attribute("type")?.unwrap_or_default();
    let Some(kind) = Kind::parse(&kind) else {
        return match group {
            Group::PointData | Group::CellData => Ok(None),
            Group::Points | Group::Cells => Err((place, format!("array `{name}` has unknown type `{kind}`"))),
        };
    };
    let components = attribute("NumberOfComponents")?;
    let n_components = components.map_or(Ok(1), |n| number(Some(n), "NumberOfComponents", place))?;
    let format = match attribute("format")?.as_deref() {
        None | Some("ascii") => Format::Ascii(&[]),
        Some("binary") => Format::Binary(&[]),
        Some("appended") => {
            let offset = attribute("offset")?;
            Format::Appended(offset.map_or(Ok(0), |n| number(Some(n), "offset", place))?)
        }
        Some(other) => return Err((place, format!("array `{name}` has unknown format `{other}`"))),
    };
    Ok(Some(DataArray { group, name, kind, n_components, format, place }))
}

/// `2.1` as (2, 1); a part that is not a number counts as 0.
fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.trim().parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

pub(super) fn attribute(
    element: &BytesStart<'_>,
    name: &str,
    place: usize,
) -> Result<Option<String>, Problem> {
    let attribute =
        element.try_get_attribute(name).map_err(|e| (place, printable(&e.to_string()).into_owned()))?;
    let Some(attribute) = attribute else { return Ok(None) };
    let text = quick_xml::escape::unescape(&attribute.value)
        .map_err(|e| (place, printable(&e.to_string()).into_owned()))?;
    Ok(Some(printable(&text).into_owned()))
}

fn number(text: Option<String>, name: &str, place: usize) -> Result<usize, Problem> {
    let text = text.ok_or_else(|| (place, format!("{name} is missing")))?;
    text.trim().parse().map_err(|_| (place, format!("{name} is `{text}`, not a number")))
}
