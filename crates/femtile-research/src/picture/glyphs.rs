//! Letters of 5 × 7 dots.

/// Pixels of a dot, across and down.
const DOT: usize = 2;
/// Pixels from one letter to the next.
pub(super) const WIDTH: usize = 6 * DOT;
/// Pixels of a letter from top to bottom.
pub(super) const HEIGHT: usize = 7 * DOT;

/// Rows of a letter from the top, five bits each; none for other characters than digits, `.`, `-`, `=`, `t`, `m`, `s` and `V`.
const fn rows(letter: char) -> Option<[u8; 7]> {
    Some(match letter {
        '0' => [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
        '1' => [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
        '2' => [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111],
        '3' => [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110],
        '4' => [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
        '5' => [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
        '6' => [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
        '7' => [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
        '8' => [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
        '9' => [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
        '.' => [0, 0, 0, 0, 0, 0b01100, 0b01100],
        '-' => [0, 0, 0, 0b11111, 0, 0, 0],
        '=' => [0, 0, 0b11111, 0, 0b11111, 0, 0],
        't' => [0b01000, 0b01000, 0b11100, 0b01000, 0b01000, 0b01001, 0b00110],
        'm' => [0, 0, 0b11010, 0b10101, 0b10101, 0b10101, 0b10101],
        's' => [0, 0, 0b01111, 0b10000, 0b01110, 0b00001, 0b11110],
        'V' => [0b10001, 0b10001, 0b10001, 0b01010, 0b01010, 0b00100, 0b00100],
        _ => return None,
    })
}

/// Returns the pixels of a letter, column and row from its upper left corner.
pub(super) fn pixels(letter: char) -> impl Iterator<Item = [usize; 2]> {
    let rows = rows(letter).unwrap_or_default();
    (0..HEIGHT).flat_map(move |row| {
        let bits = rows[row / DOT];
        (0..5 * DOT)
            .filter(move |column| bits >> (4 - column / DOT) & 1 == 1)
            .map(move |column| [column, row])
    })
}
