//! A perceptually uniform scale of colours, viridis.

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

/// Ten colours of viridis at equal distances.
const ANCHORS: [Colour; 10] = [
    [68, 1, 84],
    [72, 40, 120],
    [62, 74, 137],
    [49, 104, 142],
    [38, 130, 142],
    [31, 158, 137],
    [53, 183, 121],
    [109, 205, 89],
    [180, 222, 44],
    [253, 231, 37],
];
/// Colours of the scale: few enough for small files, too many to be seen as bands.
const LEVELS: f64 = 128.0;
/// The factor of a surface that is seen from its edge.
const DARKEST: f64 = 0.55;
/// The background.
pub(super) const PAPER: Colour = [255; 3];
/// Letters.
pub(super) const INK: Colour = [40; 3];

/// Returns the colour at a share of the scale, with light between 0 and 1; values outside have the colours of its ends.
pub(super) fn colour(share: f64, light: f64) -> Colour {
    let share = (share.clamp(0.0, 1.0) * LEVELS).round() / LEVELS;
    let place = share * (ANCHORS.len() - 1) as f64;
    let below = (place as usize).min(ANCHORS.len() - 2);
    let factor = DARKEST + (1.0 - DARKEST) * light.clamp(0.0, 1.0);
    std::array::from_fn(|i| {
        let [a, b] = [ANCHORS[below][i], ANCHORS[below + 1][i]].map(f64::from);
        (factor * (a + (place - below as f64) * (b - a))).round() as u8
    })
}
