//! A bounding-box tree over the cells of a mesh, to find the cells at points.

use femtile_device::parallel;
use rayon::prelude::*;

/// Children of a node.
const WIDTH: usize = 8;
/// Bits of each coordinate of a Morton code.
const BITS: u32 = 21;

/// An axis-parallel bounding box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The lower corner.
    pub lower: [f64; 3],
    /// The upper corner.
    pub upper: [f64; 3],
}

/// Boxes along a Morton curve through their centres; eight neighbours share a parent.
#[derive(Debug)]
pub struct BoxTree {
    /// The item of each box of the first level.
    items: Vec<u32>,
    /// Levels from single boxes to one with at most one parent.
    levels: Vec<Vec<Bounds>>,
}

impl Bounds {
    /// The empty box.
    pub const EMPTY: Self = Self { lower: [f64::INFINITY; 3], upper: [f64::NEG_INFINITY; 3] };

    /// Returns the smallest box around this one and a point.
    pub fn with(self, point: [f64; 3]) -> Self {
        self.union(Self { lower: point, upper: point })
    }

    /// Returns the smallest box around both.
    fn union(self, other: Self) -> Self {
        Self {
            lower: std::array::from_fn(|a| self.lower[a].min(other.lower[a])),
            upper: std::array::from_fn(|a| self.upper[a].max(other.upper[a])),
        }
    }

    /// Returns the box with its sides moved outwards along each axis.
    pub fn widened(self, by: [f64; 3]) -> Self {
        Self {
            lower: std::array::from_fn(|a| self.lower[a] - by[a]),
            upper: std::array::from_fn(|a| self.upper[a] + by[a]),
        }
    }

    /// Returns the lengths along the axes.
    pub fn size(&self) -> [f64; 3] {
        std::array::from_fn(|a| self.upper[a] - self.lower[a])
    }

    /// Returns whether a point lies in the closed box; false if a coordinate is NaN.
    pub fn contains(&self, point: [f64; 3]) -> bool {
        (0..3).all(|a| point[a] >= self.lower[a] && point[a] <= self.upper[a])
    }

    /// Returns whether both have a point together.
    fn meets(&self, other: &Self) -> bool {
        (0..3).all(|a| self.lower[a] <= other.upper[a] && other.lower[a] <= self.upper[a])
    }

    /// Returns the distance from a point, zero inside.
    pub fn distance(&self, point: [f64; 3]) -> f64 {
        let beyond = |a: usize| (self.lower[a] - point[a]).max(point[a] - self.upper[a]).max(0.0);
        (0..3).map(|a| beyond(a).powi(2)).sum::<f64>().sqrt()
    }
}

impl BoxTree {
    /// Builds the tree of boxes, whose positions are the items.
    ///
    /// # Cost
    /// One sort of the boxes; 55 bytes each.
    pub fn new(boxes: &[Bounds]) -> Self {
        let all = boxes.iter().fold(Bounds::EMPTY, |all, b| all.union(*b));
        let size = all.size();
        let key = |b: &Bounds| {
            (0..3).fold(0, |key, a| {
                let share = (0.5 * (b.lower[a] + b.upper[a]) - all.lower[a]) / size[a];
                let steps = (share * f64::from(1 << BITS)) as u64;
                key | spread(steps.min((1 << BITS) - 1)) << a
            })
        };
        let mut keyed = parallel::map(boxes.len(), 1, |i| (key(&boxes[i]), i as u32));
        keyed.par_sort_unstable();
        let items: Vec<u32> = keyed.into_iter().map(|(_, item)| item).collect();
        let mut levels = vec![items.iter().map(|&item| boxes[item as usize]).collect::<Vec<_>>()];
        while let Some(last) = levels.last().filter(|level| level.len() > WIDTH) {
            let parent = |children: &[Bounds]| children.iter().fold(Bounds::EMPTY, |all, b| all.union(*b));
            levels.push(last.chunks(WIDTH).map(parent).collect());
        }
        Self { items, levels }
    }

    /// Returns the smallest item whose box contains the point and for which `found` returns a result, with that result.
    pub fn first<R>(&self, point: [f64; 3], found: impl Fn(u32) -> Option<R>) -> Option<(u32, R)> {
        let mut best: Option<(u32, R)> = None;
        let top = self.levels.len() - 1;
        let mut open: Vec<(usize, usize)> = (0..self.levels[top].len()).map(|at| (top, at)).collect();
        while let Some((level, at)) = open.pop() {
            if !self.levels[level][at].contains(point) {
                continue;
            }
            if level > 0 {
                let end = ((at + 1) * WIDTH).min(self.levels[level - 1].len());
                open.extend((at * WIDTH..end).map(|child| (level - 1, child)));
                continue;
            }
            let item = self.items[at];
            if best.as_ref().is_none_or(|(before, _)| item < *before)
                && let Some(result) = found(item)
            {
                best = Some((item, result));
            }
        }
        best
    }
}

impl BoxTree {
    /// Returns the items whose boxes meet a box, ascending.
    pub fn meeting(&self, bounds: Bounds) -> Vec<u32> {
        let (mut found, top) = (Vec::new(), self.levels.len() - 1);
        let mut open: Vec<(usize, usize)> = (0..self.levels[top].len()).map(|at| (top, at)).collect();
        while let Some((level, at)) = open.pop() {
            if !self.levels[level][at].meets(&bounds) {
                continue;
            }
            if level > 0 {
                let end = ((at + 1) * WIDTH).min(self.levels[level - 1].len());
                open.extend((at * WIDTH..end).map(|child| (level - 1, child)));
                continue;
            }
            found.push(self.items[at]);
        }
        found.sort_unstable();
        found
    }

    /// Returns the item that is nearest to a point by `distance`, which is no smaller than that of its box; the smallest of several
    /// items. None without items.
    pub fn nearest(&self, point: [f64; 3], distance: impl Fn(u32) -> f64) -> Option<(u32, f64)> {
        let mut best: Option<(u32, f64)> = None;
        let top = self.levels.len() - 1;
        let bound = |level: usize, at: usize| (self.levels[level][at].distance(point), level, at);
        let mut open: Vec<(f64, usize, usize)> =
            (0..self.levels[top].len()).map(|at| bound(top, at)).collect();
        open.sort_by(|a, b| b.0.total_cmp(&a.0));
        while let Some((lower, level, at)) = open.pop() {
            if best.is_some_and(|(_, found)| lower > found) {
                continue;
            }
            if level > 0 {
                let end = ((at + 1) * WIDTH).min(self.levels[level - 1].len());
                let first = open.len();
                open.extend((at * WIDTH..end).map(|child| bound(level - 1, child)));
                // The nearest child is visited first.
                open[first..].sort_by(|a, b| b.0.total_cmp(&a.0));
                continue;
            }
            let item = self.items[at];
            let found = distance(item);
            if best.is_none_or(|(before, least)| found < least || found == least && item < before) {
                best = Some((item, found));
            }
        }
        best
    }
}

/// Returns the bits of a coordinate, three apart.
fn spread(coordinate: u64) -> u64 {
    (0..BITS).fold(0, |key, bit| key | (coordinate >> bit & 1) << (3 * bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_box_around_a_point_is_that_of_a_search_through_all() {
        for n in [1usize, 7, 8, 9, 64, 65, 700] {
            let coordinate = |i: usize, a: usize| ((i * [37, 61, 89][a]) % 101) as f64 / 100.0;
            let boxes: Vec<Bounds> = (0..n)
                .map(|i| {
                    let lower: [f64; 3] = std::array::from_fn(|a| coordinate(i, a));
                    Bounds { lower, upper: lower.map(|x| x + 0.02 + (i % 5) as f64 * 0.05) }
                })
                .collect();
            let tree = BoxTree::new(&boxes);
            let mut n_found = 0;
            for k in 0..500 {
                let point: [f64; 3] = std::array::from_fn(|a| ((k * [11, 17, 29][a]) % 113) as f64 / 110.0);
                let around = Bounds::EMPTY.with(point).widened([0.01, 0.03, 0.05]);
                let meets = |item: &u32| {
                    let other = &boxes[*item as usize];
                    (0..3).all(|a| around.lower[a].max(other.lower[a]) <= around.upper[a].min(other.upper[a]))
                };
                assert_eq!(tree.meeting(around), (0..n as u32).filter(meets).collect::<Vec<_>>());
                let is_wanted = |item: u32| item % 3 != 1;
                let expected =
                    (0..n as u32).find(|&item| is_wanted(item) && boxes[item as usize].contains(point));
                let distance = |item: u32| boxes[item as usize].distance(point);
                let least = (0..n as u32).map(|item| (item, distance(item)));
                let least = least.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
                assert_eq!(tree.nearest(point, distance), least);
                let found = tree.first(point, |item| is_wanted(item).then_some(2 * item));
                assert_eq!(found, expected.map(|item| (item, 2 * item)));
                n_found += usize::from(expected.is_some());
            }
            assert!(n < 700 || n_found > 50, "{n} boxes: {n_found} points are in one");
            assert_eq!(tree.first([f64::NAN, 0.5, 0.5], Some), None);
        }
    }
}
