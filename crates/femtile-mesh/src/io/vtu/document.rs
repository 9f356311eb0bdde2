//! The XML of a VTU file: pieces, their arrays, and where the bytes of each array stand.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// What is wrong, with the byte where it was found.
pub(super) type Problem = (usize, String);

/// The head of a file, without the values of its arrays.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    /// Version of the format: 0.1 where the file says nothing.
    pub version: (u32, u32),
    pub big_endian: bool,
    pub wide_header: bool,
    pub compressor: Option<String>,
    pub pieces: Vec<Piece<'a>>,
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

/// One array: its type and where its values are.
#[derive(Debug, Clone)]
pub(super) struct DataArray<'a> {
    /// `PointData`, `CellData`, `Points` or `Cells`.
    pub group: String,
    pub name: String,
    pub kind: String,
    pub n_components: usize,
    pub format: String,
    pub offset: usize,
    pub text: &'a [u8],
    /// Byte of the file at which the element stands.
    pub place: usize,
}

/// Reads the XML of `bytes`; appended raw data, which is not XML, is cut off first.
pub(super) fn document(bytes: &[u8]) -> Result<Document<'_>, Problem> {
    let mut document = Document::default();
    let xml = cut_appended(bytes, &mut document)?;
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().check_end_names = false;
    let mut group = String::new();
    let mut open: Option<usize> = None;
    loop {
        let place = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|e| (reader.error_position() as usize, e.to_string()))?;
        match event {
            Event::Eof => break,
            Event::Start(element) => {
                start(&mut document, &mut group, &element, place)?;
                if element.name().as_ref() == "DataArray" {
                    open = Some(reader.buffer_position() as usize);
                }
            }
            Event::Empty(element) => start(&mut document, &mut group, &element, place)?,
            Event::End(element) => match element.name().as_ref() {
                "DataArray" => {
                    let array = document.pieces.last_mut().and_then(|piece| piece.arrays.last_mut());
                    if let (Some(begin), Some(array)) = (open.take(), array) {
                        // Information keys, which some arrays carry, follow the values.
                        let inner = &xml[begin.min(place)..place];
                        let end = inner.iter().position(|&b| b == b'<').unwrap_or(inner.len());
                        array.text = &inner[..end];
                    }
                }
                "PointData" | "CellData" | "Points" | "Cells" => group.clear(),
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

fn start(
    document: &mut Document<'_>,
    group: &mut String,
    element: &BytesStart<'_>,
    place: usize,
) -> Result<(), Problem> {
    let attribute = |name: &str| attribute(element, name, place);
    match element.name().as_ref() {
        "VTKFile" => {
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
        "Piece" => {
            let n_points = number(attribute("NumberOfPoints")?, "NumberOfPoints", place)?;
            let n_cells = number(attribute("NumberOfCells")?, "NumberOfCells", place)?;
            document.pieces.push(Piece { n_points, n_cells, arrays: Vec::new() });
        }
        name @ ("PointData" | "CellData" | "Points" | "Cells") => {
            *group = name.to_string();
        }
        "DataArray" if !group.is_empty() => {
            let components = attribute("NumberOfComponents")?;
            let offset = attribute("offset")?;
            let array = DataArray {
                group: group.clone(),
                name: attribute("Name")?.unwrap_or_default(),
                kind: attribute("type")?.unwrap_or_default(),
                n_components: components.map_or(Ok(1), |n| number(Some(n), "NumberOfComponents", place))?,
                format: attribute("format")?.unwrap_or_else(|| "ascii".into()),
                offset: offset.map_or(Ok(0), |n| number(Some(n), "offset", place))?,
                text: &[],
                place,
            };
            let Some(piece) = document.pieces.last_mut() else {
                return Err((place, "a DataArray stands outside of any Piece".into()));
            };
            piece.arrays.push(array);
        }
        _ => {}
    }
    Ok(())
}

/// `2.1` as (2, 1); what is no number counts as 0.
fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.trim().parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn attribute(element: &BytesStart<'_>, name: &str, place: usize) -> Result<Option<String>, Problem> {
    let attribute = element.try_get_attribute(name).map_err(|e| (place, e.to_string()))?;
    let Some(attribute) = attribute else { return Ok(None) };
    let text = quick_xml::escape::unescape(&attribute.value).map_err(|e| (place, e.to_string()))?;
    Ok(Some(text.into_owned()))
}

fn number(text: Option<String>, name: &str, place: usize) -> Result<usize, Problem> {
    let text = text.ok_or_else(|| (place, format!("{name} is missing")))?;
    text.trim().parse().map_err(|_| (place, format!("{name} is `{text}`, not a number")))
}
