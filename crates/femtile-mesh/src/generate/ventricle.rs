use super::Counts;
use super::disc::{Disc, disc, n_disc_nodes};
use super::grid::{even_count, length_is_positive, tag_facets, ticks};
use super::layers::Layers;
use super::tabulate::tabulate;
use crate::interrupt::Interrupt;
use crate::{CellKind, Field, IsInterrupted, Mesh, MeshError};

/// Semi-axes of the inner wall in mm: across, along.
const ENDOCARDIUM: [f64; 2] = [7.0, 17.0];
/// Semi-axes of the outer wall in mm: across, along.
const EPICARDIUM: [f64; 2] = [10.0, 20.0];
/// Height of the plane that cuts the ellipsoids off, in mm.
const BASE: f64 = 5.0;
/// Angle of the fibres to the circumference on the inner wall, and with the other sign on the outer one.
const FIBRE_ANGLE: f64 = std::f64::consts::FRAC_PI_3;
/// Squares across the apex for edges of 1 mm around the middle of the wall.
const SQUARES_PER_MM: f64 = 13.35;
/// Rings for each square across: cells along the wall are then about as long as around it.
const RINGS_PER_SQUARE: f64 = 2.06;

/// The idealised left ventricle.
#[derive(Debug, Clone, PartialEq)]
pub struct VentricleConfig {
    /// Length of an edge, about, in millimetres.
    pub h_mm: f64,
}

impl Default for VentricleConfig {
    fn default() -> Self {
        Self { h_mm: 1.0 }
    }
}

impl VentricleConfig {
    /// Squares across the apex, rings around it, layers of the wall.
    fn divisions(&self) -> [f64; 3] {
        let n = even_count(SQUARES_PER_MM / self.h_mm);
        let n_layers = ((EPICARDIUM[0] - ENDOCARDIUM[0]) / self.h_mm).round().max(1.0);
        [n, (RINGS_PER_SQUARE * n).ceil(), n_layers]
    }

    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`ventricle`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        length_is_positive("h_mm", self.h_mm)?;
        let [n, n_rings, n_layers] = self.divisions();
        let n_nodes = n_disc_nodes(n, n_rings) * (n_layers + 1.0);
        let n_cells = 6.0 * n_layers * (n * n + 4.0 * n * n_rings);
        Counts::of("h_mm", CellKind::Tetrahedron, n_nodes, n_cells)
    }
}

/// An idealised left ventricle of tetrahedra, in millimetres: half an ellipsoidal shell, its apex below.
///
/// Endocardium semi-axes 7, 7, 17, epicardium 10, 10, 20, cut off at the plane z = 5:
/// $$ x = r_s(t) \sin u \cos v, \quad y = r_s(t) \sin u \sin v, \quad z = r_l(t) \cos u, \quad
///    r_s = 7 + 3t,\ r_l = 17 + 3t,\ \cos u \le 5 / r_l, $$
/// with $t = 0$ at the endocardium. The apex is a square grid bent round, continued by rings, so
/// there is no pole. Tagged `endocardium` (1), `epicardium` (2), `base` (3). Cell fields: `fibre`, unit
/// vectors that turn from +60° at the endocardium to −60° at the epicardium against the circumference,
/// positive towards the base; `transmural`, $t$ at the centroid.
///
/// # Units
/// Millimetres.
/// # Errors
/// [`MeshError::Invalid`] when `h_mm` is not positive and finite and, before anything is allocated,
/// when nodes or cells are too many to number.
/// # Source
/// `[land2015]`, problem 2, for the geometry. Differs: one fibre field per cell; the mesh is ours.
pub fn ventricle(config: &VentricleConfig) -> Result<Mesh, MeshError> {
    ventricle_interruptible(config, None)
}

/// Generates as [`ventricle`] does, and asks `is_interrupted` again and again whether to end.
///
/// # Errors
/// Those of [`ventricle`]; [`MeshError::Interrupted`].
pub fn ventricle_interruptible(
    config: &VentricleConfig,
    is_interrupted: IsInterrupted<'_>,
) -> Result<Mesh, MeshError> {
    let interrupt = Interrupt(is_interrupted);
    config.counts()?;
    let [n, n_rings, n_layers] = config.divisions().map(|n| n as usize);

    let disc = disc(n, n_rings);
    let layers = Layers { triangles: &disc.triangles, n_surface: disc.nodes.len(), n_layers };
    let points = points(&disc, (n / 2 + n_rings) as f64, n_layers, interrupt)?;
    let mut mesh = Mesh::new(points, CellKind::Tetrahedron, layers.tetrahedra(interrupt)?)?;
    interrupt.go_on()?;
    let [inner, outer] = layers.lids();
    let base = layers.walls(&disc.rim);
    tag_facets(&mut mesh, [("endocardium", inner), ("epicardium", outer), ("base", base)]);
    add_fields(&mut mesh, disc.nodes.len(), n_layers, interrupt)?;
    Ok(mesh)
}

/// Semi-axes at depth `t` of the wall.
fn semi_axes(t: f64) -> [f64; 2] {
    std::array::from_fn(|i| (1.0 - t) * ENDOCARDIUM[i] + t * EPICARDIUM[i])
}

fn points(
    disc: &Disc,
    radius: f64,
    n_layers: usize,
    interrupt: Interrupt<'_>,
) -> Result<Vec<[f64; 3]>, MeshError> {
    let n_surface = disc.nodes.len();
    let of_layer = |t| {
        let [across, along] = semi_axes(t);
        (across, along, std::f64::consts::PI - (BASE / along).acos())
    };
    let layers: Vec<_> = ticks(0.0, 1.0, n_layers).into_iter().map(of_layer).collect();
    tabulate((n_surface * (n_layers + 1), 1), interrupt, |i, point: &mut [[f64; 3]]| {
        let (across, along, opening) = layers[i / n_surface];
        let node = &disc.nodes[i % n_surface];
        // Angle from the apex; the disc is seen from below, which keeps the cells right-handed.
        let from_apex = opening * (node.radius / radius);
        let r = across * from_apex.sin();
        let z = if node.radius == radius { BASE } else { -along * from_apex.cos() };
        point[0] = [r * node.angle.cos(), -r * node.angle.sin(), z];
    })
}

fn add_fields(
    mesh: &mut Mesh,
    n_surface: usize,
    n_layers: usize,
    interrupt: Interrupt<'_>,
) -> Result<(), MeshError> {
    let depth = |cell: usize| {
        let layers: usize = mesh.cell(cell).iter().map(|&node| node as usize / n_surface).sum();
        layers as f64 / (4 * n_layers) as f64
    };
    let fibre = tabulate((mesh.n_cells(), 3), interrupt, |cell, fibre: &mut [f64]| {
        let nodes = mesh.cell(cell);
        let centroid = std::array::from_fn(|d| {
            0.25 * nodes.iter().map(|&node| mesh.points[node as usize][d]).sum::<f64>()
        });
        fibre.copy_from_slice(&fibre_at(centroid, depth(cell)));
    })?;
    let transmural = tabulate((mesh.n_cells(), 1), interrupt, |cell, t: &mut [f64]| t[0] = depth(cell))?;
    mesh.cell_fields.insert("fibre".into(), Field { n_components: 3, values: fibre });
    mesh.cell_fields.insert("transmural".into(), Field { n_components: 1, values: transmural });
    Ok(())
}

/// Direction of the fibres at a point of depth `t`: between circumference and meridian.
fn fibre_at([x, y, z]: [f64; 3], t: f64) -> [f64; 3] {
    let [across, along] = semi_axes(t);
    let (sin_v, cos_v) = y.atan2(x).sin_cos();
    let (sin_u, cos_u) = (x.hypot(y) / across).atan2(z / along).sin_cos();
    let meridian = [-across * cos_u * cos_v, -across * cos_u * sin_v, along * sin_u];
    let length = (across * cos_u).hypot(along * sin_u);
    let (sin_a, cos_a) = (FIBRE_ANGLE * (1.0 - 2.0 * t)).sin_cos();
    let circumference = [-sin_v, cos_v, 0.0];
    std::array::from_fn(|d| cos_a * circumference[d] + sin_a * meridian[d] / length)
}
