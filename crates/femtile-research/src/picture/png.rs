//! PNG files.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::raster::Raster;

/// Encodes pixels.
pub(super) fn encode(raster: &Raster) -> Vec<u8> {
    let [width, height] = raster.size;
    let mut header = [width as u32, height as u32].map(u32::to_be_bytes).concat();
    // Eight bits a colour, three colours, one method of compression and of filters, no interlacing.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, b"IHDR", &header);
    chunk(&mut file, b"IDAT", &compressed(raster));
    chunk(&mut file, b"IEND", &[]);
    file
}

/// The rows, each with the number of its filter before it: none.
fn compressed(raster: &Raster) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let written = raster
        .pixels
        .chunks(raster.size[0].max(1))
        .try_for_each(|row| encoder.write_all(&[0]).and_then(|()| encoder.write_all(row.as_flattened())));
    // Writing to a vector does not fail.
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    let mut checksum = flate2::Crc::new();
    checksum.update(name);
    checksum.update(data);
    file.extend((data.len() as u32).to_be_bytes());
    file.extend(name);
    file.extend(data);
    file.extend(checksum.sum().to_be_bytes());
}
