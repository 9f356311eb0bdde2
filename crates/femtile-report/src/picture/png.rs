//! PNG files.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::raster::Image;

/// Bytes of a pixel.
const PIXEL: usize = 3;

/// Encodes pixels.
pub(super) fn encode(image: &Image) -> Vec<u8> {
    let [width, height] = image.size;
    let mut header = [width as u32, height as u32].map(u32::to_be_bytes).concat();
    // Eight bits a colour, three colours, one method of compression and of filters, no interlacing.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, b"IHDR", &header);
    chunk(&mut file, b"IDAT", &compressed(image));
    chunk(&mut file, b"IEND", &[]);
    file
}

/// The rows, each with the number of its filter before it.
fn compressed(image: &Image) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let width = image.size[0].max(1);
    let mut above = vec![0; PIXEL * width];
    let written = image.pixels.chunks(width).try_for_each(|row| {
        let row = row.as_flattened();
        let filtered = filtered(row, &above);
        above.copy_from_slice(row);
        encoder.write_all(&filtered)
    });
    // Writing to a vector does not fail.
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}

/// Returns a row by the filter whose differences are smallest: those to nothing, the left or the row above.
fn filtered(row: &[u8], above: &[u8]) -> Vec<u8> {
    let left = |i: usize| if i < PIXEL { 0 } else { row[i - PIXEL] };
    let by = |filter: u8| -> Vec<u8> {
        let difference = |i: usize| match filter {
            0 => row[i],
            1 => row[i].wrapping_sub(left(i)),
            _ => row[i].wrapping_sub(above[i]),
        };
        std::iter::once(filter).chain((0..row.len()).map(difference)).collect()
    };
    let size = |bytes: &Vec<u8>| {
        bytes[1..].iter().map(|byte| u64::from(byte.cast_signed().unsigned_abs())).sum::<u64>()
    };
    [by(0), by(1), by(2)].into_iter().min_by_key(size).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Reads the pixels of a file.
    fn decoded(png: &[u8]) -> Image {
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, height) = (number(16), number(20));
        let mut data = Vec::new();
        let mut at = 8;
        while at < png.len() {
            if &png[at + 4..at + 8] == b"IDAT" {
                data.extend_from_slice(&png[at + 8..at + 8 + number(at)]);
            }
            at += 12 + number(at);
        }
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(data.as_slice()).read_to_end(&mut rows).unwrap();
        assert_eq!(rows.len(), height * (PIXEL * width + 1));
        let mut above = vec![0_u8; PIXEL * width];
        let mut pixels = Vec::new();
        for row in rows.chunks(PIXEL * width + 1) {
            let mut bytes = row[1..].to_vec();
            for i in 0..bytes.len() {
                let left = if i < PIXEL { 0 } else { bytes[i - PIXEL] };
                let from = [0, left, above[i]][usize::from(row[0])];
                bytes[i] = bytes[i].wrapping_add(from);
            }
            pixels.extend(bytes.chunks(PIXEL).map(|c| [c[0], c[1], c[2]]));
            above = bytes;
        }
        Image { size: [width, height], pixels }
    }

    #[test]
    fn pixels_are_read_as_they_were_written() {
        for size in [[1, 1], [7, 5], [64, 3]] {
            let pixel = |i: usize| [i * 3, i * i, 255 - i % 7].map(|x| x as u8);
            let image = Image { size, pixels: (0..size[0] * size[1]).map(pixel).collect() };
            assert_eq!(decoded(&encode(&image)), image);
        }
    }
}
