//! Maps from numbers to colours, uniform to the eye.

/// Red, green and blue.
pub type Colour = [u8; 3];

/// A colour map by its colours at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColourMap {
    /// The name.
    pub name: &'static str,
    /// Its colours, from the least value to the largest.
    pub colours: &'static [Colour],
}

/// Colours of a picture: few enough for small files, too many to be seen as bands.
const LEVELS: f64 = 255.0;

impl ColourMap {
    /// From dark violet to yellow.
    pub const VIRIDIS: Self = Self {
        name: "viridis",
        colours: &[
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
        ],
    };

    /// From dark blue to yellow, the same to eyes that do not tell red from green.
    pub const CIVIDIS: Self = Self {
        name: "cividis",
        colours: &[
            [0, 34, 78],
            [18, 53, 112],
            [59, 73, 108],
            [87, 93, 109],
            [112, 113, 115],
            [138, 134, 120],
            [165, 156, 116],
            [195, 179, 105],
            [225, 204, 85],
            [254, 232, 56],
        ],
    };

    /// From blue over grey to red, for values of both signs.
    pub const COOLWARM: Self = Self {
        name: "coolwarm",
        colours: &[
            [59, 76, 192],
            [98, 130, 234],
            [141, 176, 254],
            [184, 208, 249],
            [221, 221, 221],
            [245, 196, 173],
            [244, 154, 123],
            [222, 96, 77],
            [180, 4, 38],
        ],
    };

    /// From black to white.
    pub const GREYS: Self = Self { name: "greys", colours: &[[25, 25, 25], [240, 240, 240]] };

    /// All maps, the default first.
    pub const ALL: [Self; 4] = [Self::VIRIDIS, Self::CIVIDIS, Self::COOLWARM, Self::GREYS];

    /// Returns the colour at a share of the scale; values outside have the colours of its ends.
    pub fn at(&self, share: f64) -> Colour {
        let share = (share.clamp(0.0, 1.0) * LEVELS).round() / LEVELS;
        let place = share * (self.colours.len() - 1) as f64;
        let below = (place as usize).min(self.colours.len() - 2);
        std::array::from_fn(|i| {
            let [a, b] = [self.colours[below][i], self.colours[below + 1][i]].map(f64::from);
            (a + (place - below as f64) * (b - a)).round() as u8
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_map_are_its_first_and_last_colour() {
        for map in ColourMap::ALL {
            assert_eq!((map.at(-1.0), map.at(2.0)), (map.colours[0], *map.colours.last().unwrap()));
        }
    }

    #[test]
    fn viridis_and_cividis_grow_lighter_all_the_way() {
        let light = |[r, g, b]: Colour| 0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b);
        for map in [ColourMap::VIRIDIS, ColourMap::CIVIDIS, ColourMap::GREYS] {
            let lights: Vec<f64> = (0..=40).map(|i| light(map.at(f64::from(i) / 40.0))).collect();
            assert!(lights.windows(2).all(|pair| pair[1] > pair[0] - 0.5), "{}: {lights:?}", map.name);
        }
    }
}
