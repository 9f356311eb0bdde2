//! A disc of triangles without a pole: a square grid bent round, and rings around it.

use std::f64::consts::FRAC_PI_4;

/// A triangulated disc.
pub(super) struct Disc {
    /// The nodes: the square row by row, then ring after ring.
    pub nodes: Vec<DiscNode>,
    /// Counter-clockwise triangles.
    pub triangles: Vec<[u32; 3]>,
    /// Edges around the disc, which lies on their left.
    pub rim: Vec<[u32; 2]>,
}

/// Position of a node of a disc.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiscNode {
    /// Position along the radius, counted in cells: `n / 2` at the edge of the square, one more for each
    /// ring.
    pub radius: f64,
    /// Angle around the middle.
    pub angle: f64,
}

/// Nodes of a disc of `n × n` squares and `n_rings` rings, in floating point.
pub(super) fn n_disc_nodes(n: f64, n_rings: f64) -> f64 {
    (n + 1.0) * (n + 1.0) + 4.0 * n * n_rings
}

/// A disc of an even number `n` of squares across and `n_rings` rings of `4n` quadrilaterals.
///
/// Squares are cut towards the middle, so that no triangle is flat at the four corners of the square, at
/// which two edges become one arc.
pub(super) fn disc(n: usize, n_rings: usize) -> Disc {
    let row = n + 1;
    let half = n as f64 / 2.0;
    let mut nodes: Vec<DiscNode> =
        (0..row * row).map(|i| bend((i % row) as f64 - half, (i / row) as f64 - half, half)).collect();
    let mut triangles = Vec::with_capacity(2 * n * n + 8 * n * n_rings);
    for j in 0..n {
        for i in 0..n {
            // The corners of a square, x + 2y, mirrored so that corner 0 is the innermost.
            let mirror = usize::from(2 * i < n) + 2 * usize::from(2 * j < n);
            let corner = |c: usize| {
                let c = c ^ mirror;
                ((i + (c & 1)) + row * (j + (c >> 1))) as u32
            };
            for [a, b, c] in [[0, 1, 3], [0, 3, 2]].map(|t| t.map(corner)) {
                triangles.push(if matches!(mirror, 1 | 2) { [a, c, b] } else { [a, b, c] });
            }
        }
    }
    let mut ring = square_rim(n);
    for number in 1..=n_rings {
        let first = nodes.len() as u32;
        let outer: Vec<u32> = (first..first + ring.len() as u32).collect();
        for &inner in &ring {
            let angle = nodes[inner as usize].angle;
            nodes.push(DiscNode { radius: half + number as f64, angle });
        }
        for k in 0..ring.len() {
            let next = (k + 1) % ring.len();
            triangles.push([ring[k], outer[k], outer[next]]);
            triangles.push([ring[k], outer[next], ring[next]]);
        }
        ring = outer;
    }
    let rim = (0..ring.len()).map(|k| [ring[k], ring[(k + 1) % ring.len()]]).collect();
    Disc { nodes, triangles, rim }
}

/// Nodes around a square of `n` cells, counter-clockwise from its lower left corner.
fn square_rim(n: usize) -> Vec<u32> {
    let node = |i: usize, j: usize| (i + (n + 1) * j) as u32;
    let lower = (0..n).map(|i| node(i, 0));
    let right = (0..n).map(|j| node(n, j));
    let upper = (0..n).map(|i| node(n - i, n));
    let left = (0..n).map(|j| node(0, n - j));
    lower.chain(right).chain(upper).chain(left).collect()
}

/// Bends the square of half width `half` to the disc of that radius.
///
/// A ring of the square is blended between a square (inside) and a circle with equal angles (rim).
fn bend(x: f64, y: f64, half: f64) -> DiscNode {
    let level = x.abs().max(y.abs());
    if level == 0.0 {
        return DiscNode { radius: 0.0, angle: 0.0 };
    }
    let t = level / half;
    let (cx, cy) = (tangent(x / level), tangent(y / level));
    let length = cx.hypot(cy);
    let blend = |square: f64, circle: f64| (1.0 - t) * square / 2f64.sqrt() + t * circle;
    let (px, py) = (blend(x, level * cx / length), blend(y, level * cy / length));
    DiscNode { radius: px.hypot(py), angle: py.atan2(px) }
}

/// Spaces points of the interval from -1 to 1 so that they see the middle of a square at equal angles.
pub(super) fn tangent(t: f64) -> f64 {
    if t.abs() == 1.0 { t } else { (FRAC_PI_4 * t).tan() }
}
