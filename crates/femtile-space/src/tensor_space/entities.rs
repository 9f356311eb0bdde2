//! Vertices, edges, faces and interiors of squares and cubes.
//!
//! A cell of dimension d has $3^d$ entities; entity $t_0 + 3 t_1 + 9 t_2$ lies at the lower end of axis a if $t_a = 0$,
//! at the upper end if $t_a = 2$, and extends along the axis if $t_a = 1$.

/// Returns the digits of an entity.
#[inline]
pub(super) const fn digits(entity: usize) -> [usize; 3] {
    [entity % 3, entity / 3 % 3, entity / 9]
}

/// Returns the number of axes along which an entity extends.
pub(super) fn dimension(entity: usize, d: usize) -> usize {
    digits(entity)[..d].iter().filter(|&&digit| digit == 1).count()
}

/// Returns the entities of a cell that extend along `extent` axes.
pub(super) fn of_dimension(extent: usize, d: usize) -> Vec<usize> {
    (0..3usize.pow(d as u32)).filter(|&entity| dimension(entity, d) == extent).collect()
}

/// Returns the corners of an entity, by their bits: the lowest axis along which it extends runs fastest.
pub(super) fn corners(entity: usize, d: usize) -> Vec<usize> {
    let mut corners = vec![0];
    for (axis, digit) in digits(entity).into_iter().take(d).enumerate() {
        match digit {
            0 => {}
            2 => corners.iter_mut().for_each(|corner| *corner |= 1 << axis),
            _ => {
                let upper: Vec<usize> = corners.iter().map(|corner| corner | 1 << axis).collect();
                corners.extend(upper);
            }
        }
    }
    corners
}
