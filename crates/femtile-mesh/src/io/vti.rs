//! Values at the nodes of a box as VTK image data, for ParaView.

use std::path::Path;

use super::name::xml_name;
use super::write_atomically;
use crate::MeshError;

/// Positions of the nodes of a box: evenly spaced, x fastest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Image {
    /// Nodes along x, y, z; 1 along a missing axis.
    pub nodes: [usize; 3],
    /// The first node.
    pub origin: [f64; 3],
    /// Distance of neighbours along x, y, z.
    pub spacing: [f64; 3],
}

/// Writes values at all nodes under a name. The file appears only when it is complete.
///
/// # Errors
/// [`MeshError::Invalid`] when there is not a value for each node, [`MeshError::Io`] when the file cannot be written.
pub fn write(path: &Path, image: &Image, name: &str, values: &[f64]) -> Result<(), MeshError> {
    let n: usize = image.nodes.iter().product();
    if values.len() != n || n == 0 {
        let message = format!("`{name}` has {} values for {n} nodes", values.len());
        return Err(MeshError::Invalid { field: "values", message });
    }
    let extent = image.nodes.map(|n| format!("0 {}", n - 1)).join(" ");
    let numbers = |values: [f64; 3]| values.map(|value| value.to_string()).join(" ");
    let (origin, spacing) = (numbers(image.origin), numbers(image.spacing));
    let shown = xml_name(name);
    let head = format!(
        r#"<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="{extent}" Origin="{origin}" Spacing="{spacing}">
    <Piece Extent="{extent}">
      <PointData Scalars="{shown}">
        <DataArray type="Float64" Name="{shown}" format="appended" offset="0"/>
      </PointData>
      <CellData/>
    </Piece>
  </ImageData>
  <AppendedData encoding="raw">
    _"#
    );
    write_atomically(path, |out| {
        out.write_all(head.as_bytes())?;
        out.write_all(&(8 * n as u64).to_le_bytes())?;
        for value in values {
            out.write_all(&value.to_le_bytes())?;
        }
        out.write_all(b"\n  </AppendedData>\n</VTKFile>\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_escaped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.vti");
        let image = Image { nodes: [1; 3], origin: [0.0; 3], spacing: [1.0; 3] };
        write(&path, &image, "a<\u{1b}\">", &[1.0]).unwrap();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(text.contains(r#"Name="a&lt;\u{1b}&quot;&gt;""#), "{text}");
    }

    #[test]
    fn the_bytes_behind_the_underscore_are_a_length_and_the_values() {
        let path = tempfile::tempdir().unwrap().path().join("u.vti");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let image = Image { nodes: [3, 2, 1], origin: [0.5, -1.0, 0.0], spacing: [0.25, 1.0, 1.0] };
        let values = [1.0, 2.0, 3.0, -4.0, 5.5, 6.0];
        write(&path, &image, "u", &values).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(r#"WholeExtent="0 2 0 1 0 0" Origin="0.5 -1 0" Spacing="0.25 1 1""#));
        let start = bytes.windows(6).position(|six| six == b"\n    _").unwrap() + 6;
        assert_eq!(bytes[start..start + 8], 48_u64.to_le_bytes());
        let found =
            bytes[start + 8..].chunks_exact(8).take(6).map(|b| f64::from_le_bytes(b.try_into().unwrap()));
        assert!(found.eq(values));
        assert!(bytes.ends_with(b"\n  </AppendedData>\n</VTKFile>\n"));
        assert!(write(&path, &image, "u", &values[1..]).is_err());
    }
}
