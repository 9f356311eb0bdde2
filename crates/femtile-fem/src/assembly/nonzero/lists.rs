//! Lists of the patch kernel: members of each patch, and the element values that each entry sums.

use femtile_device::parallel;
use femtile_mesh::{Mesh, Patches};
use femtile_sparse::EntryPositions;

use crate::assembly::sparsity::Sparsity;
use crate::incidence::Incidence;

/// Threads of a warp, which share a slice.
const WARP: usize = 32;
/// Marks a missing entry.
const NO_ENTRY: u16 = u16::MAX;
/// Words of a pack, the unit of sheets.
const PACK: usize = 4;
/// Words of a head.
const HEAD: usize = 16;
/// The word of a head with the index of the first node of the patch.
const FIRST: usize = 10;

/// The elements, rows and sums of all patches of a mesh.
///
/// A patch has the nodes of its rows first, then those of their neighbours; nodes, elements and entries have
/// numbers local to the patch. An off-diagonal entry sums the values of the elements around an edge. Its
/// *codes* are the positions of these values in the patch, two per word. Sums lie in slices of 32 lanes, the
/// longest first, column by column; padding refers to a zero. If both nodes of an edge have rows in the
/// patch, one sum serves both entries. Rows sum over their elements in the same way: four times the element
/// plus the corner.
///
/// A patch has a *head* of 16 words: the start of its sheet and its length without and with the codes of rows, in packs, and
/// a 0; then nodes, rows, elements, entries, slices of rows and of entries; the first node, row, element and entry; two
/// zeros. Its *sheet* has these parts, each on a whole pack:
///
/// | part | words |
/// |---|---|
/// | rows: first entry and how many; the one on the diagonal, first lane and fold; the place | 4 each |
/// | node of each row | 1 |
/// | starts of slices among the words of a lane, of entries, then of rows, and the end | 1 each |
/// | points of nodes, f64 | 6 each |
/// | corners of elements, 16 bits each: three times the node | 2 per element |
/// | targets of the sums of entries: the entry and the one that mirrors it | 1 per lane |
/// | codes, of entries, then of rows | 1 per lane and column |
///
/// A thread block copies the first four parts to shared memory, because it uses them several times. It reads
/// the others once.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// The heads of all patches.
    pub heads: Vec<u32>,
    /// Nodes of each patch, its rows first.
    pub nodes: Vec<u32>,
    /// The cell of each element, ascending in a patch.
    pub cells: Vec<u32>,
    /// The node of the column of each entry.
    pub columns: Vec<u16>,
    pub sheets: Vec<u32>,
    /// Shared memory of each patch.
    pub sizes: Vec<Size>,
}

/// The size of a patch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub n_nodes: usize,
    pub n_elements: usize,
    pub n_rows: usize,
    pub n_entries: usize,
    /// Words of the parts of its sheet before the points.
    pub front: usize,
    /// Packs of its sheet, without and with the codes of rows.
    pub packs: [usize; 2],
}

/// Numbers of f64 values per element: for its edges, and for reaction and load of its corners.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    pub edges: usize,
    pub reactions: usize,
    pub loads: usize,
    /// Shares of constants, if any coefficient is constant.
    pub shares: usize,
}

/// Shared memory of a block: numbers of f64 values of elements and rows, both even, and words of the front of a sheet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Workspace {
    /// Values of elements, and sums of rows over them.
    pub values: usize,
    /// Words of the front.
    pub front: usize,
    /// Points, which entries replace once elements are computed.
    pub entries: usize,
}

impl Workspace {
    /// Returns the largest of each part over all patches.
    pub fn of(values: &Values, sizes: &[Size]) -> Self {
        let most = |of: &dyn Fn(&Size) -> usize| sizes.iter().map(of).max().unwrap_or(0);
        Self {
            values: most(&|size| values.of(size).next_multiple_of(2)),
            front: most(&|size| size.front),
            entries: most(&|size| (3 * size.n_nodes).max(size.n_entries).next_multiple_of(2)),
        }
    }

    pub fn bytes(&self) -> usize {
        8 * (self.values + self.entries) + 4 * self.front
    }
}

impl Values {
    /// Returns the number of values of a patch: of its elements, and sums of its rows.
    fn of(&self, size: &Size) -> usize {
        let row_sums: usize = [self.reactions, self.loads, self.shares].map(|n| n.min(1)).iter().sum();
        let n = size.n_elements;
        self.edges * n + 1 + (self.reactions + self.loads + self.shares) * (n + 1) + row_sums * size.n_rows
    }
}

/// Input of the lists.
pub(super) struct Listing<'a> {
    pub mesh: &'a Mesh,
    pub incidence: &'a Incidence,
    pub pattern: &'a Sparsity,
    pub places: &'a EntryPositions,
}

/// The number of each node of the mesh in the current patch; [`u32::MAX`] elsewhere.
type Numbers = Vec<u32>;

impl Lists {
    /// Creates the lists of all patches; none if a patch is too large for 16 bits.
    ///
    /// # Cost
    /// One visit of each pair of corners of each element of a patch; about 60 bytes per cell.
    pub fn new(listing: &Listing<'_>, patches: &Patches) -> Option<Self> {
        let of_patch = |numbers: &mut Numbers, patch: usize| {
            numbers.resize(listing.mesh.n_nodes(), u32::MAX);
            match listing.mesh.kind.n_nodes() {
                3 => listing.patch::<3>(patches.nodes(patch), numbers),
                _ => listing.patch::<4>(patches.nodes(patch), numbers),
            }
        };
        let parts = parallel::map_with(patches.len(), 1, Numbers::new, of_patch);
        Some(Self::join(parts.into_iter().collect::<Option<_>>()?))
    }

    fn join(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        let mut n_rows = 0;
        for mut part in parts {
            let size = part.sizes[0];
            part.heads[..3]
                .copy_from_slice(&[all.sheets.len() / PACK, size.packs[0], size.packs[1]].map(|n| n as u32));
            let first = [all.nodes.len(), n_rows, all.cells.len(), all.columns.len()];
            part.heads[FIRST..FIRST + 4].copy_from_slice(&first.map(|first| first as u32));
            all.heads.extend(part.heads);
            n_rows += size.n_rows;
            all.nodes.extend(part.nodes);
            all.cells.extend(part.cells);
            all.columns.extend(part.columns);
            all.sheets.extend(part.sheets);
            all.sizes.extend(part.sizes);
        }
        all
    }
}

/// Sums in slices of 32.
#[derive(Default)]
struct Sums {
    /// Columns of each slice.
    widths: Vec<u32>,
    codes: Vec<u32>,
}

impl Sums {
    /// Stores sums in the given order, each padded to the longest of its slice.
    fn new(sums: &[&[u16]], padding: u16) -> Self {
        let (mut widths, mut words) = (Vec::new(), Vec::new());
        for slice in sums.chunks(WARP) {
            let width = slice.iter().map(|codes| codes.len().div_ceil(2)).max().unwrap_or(0);
            for j in 0..width {
                let code = |lane: usize, k: usize| {
                    u32::from(slice.get(lane).and_then(|codes| codes.get(k)).copied().unwrap_or(padding))
                };
                words.extend((0..WARP).map(|lane| code(lane, 2 * j) | code(lane, 2 * j + 1) << 16));
            }
            widths.push(width as u32);
        }
        Self { widths, codes: words }
    }
}

/// The rows of a patch and their entries, numbered in the patch.
struct Rows {
    /// The node of the column of each entry.
    columns: Vec<u16>,
    /// Start of the entries of each row, and the end of the last.
    begin: Vec<u32>,
}

impl Rows {
    fn len(&self) -> usize {
        self.begin.len() - 1
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.begin[row] as usize..self.begin[row + 1] as usize
    }

    /// Returns the entry of a row with this column.
    fn entry(&self, row: usize, column: usize) -> usize {
        let range = self.range(row);
        let found = self.columns[range.clone()].iter().position(|&c| usize::from(c) == column);
        range.start + found.unwrap_or(0)
    }
}

impl Listing<'_> {
    fn patch<const N: usize>(&self, rows: &[u32], numbers: &mut Numbers) -> Option<Lists> {
        let mut rows = rows.to_vec();
        rows.sort_unstable_by_key(|&row| self.places.place(row as usize, 0));
        let cells = self.incidence.cells_of(&rows);
        let nodes = number_nodes::<N>(&self.mesh.cells, &rows, &cells, numbers);
        let lists = self.list::<N>(&nodes, rows.len(), &cells, numbers);
        nodes.iter().for_each(|&node| numbers[node as usize] = u32::MAX);
        lists
    }

    fn list<const N: usize>(
        &self,
        nodes: &[u32],
        n_rows: usize,
        cells: &[u32],
        numbers: &Numbers,
    ) -> Option<Lists> {
        let n_edges = N * (N - 1) / 2;
        let rows = self.rows(&nodes[..n_rows], numbers);
        let fits = |n: usize| n < usize::from(NO_ENTRY);
        if !(fits(rows.columns.len()) && fits(n_edges.max(4) * cells.len()) && fits(3 * nodes.len())) {
            return None;
        }
        let all = self.mesh.cells.as_chunks::<N>().0;
        let elements: Vec<[u16; N]> =
            cells.iter().map(|&cell| all[cell as usize].map(|node| numbers[node as usize] as u16)).collect();
        let (entry_sums, targets) = edge_sums(&elements, &rows);
        let row_sums = row_sums(&elements, n_rows);
        let mut sheet = Vec::new();
        push_part(&mut sheet, self.row_records(&nodes[..n_rows], &rows));
        push_part(&mut sheet, nodes[..n_rows].iter().copied());
        let mut start = 0;
        let starts = entry_sums.widths.iter().chain(&row_sums.widths).map(|width| {
            start += width;
            start
        });
        push_part(&mut sheet, std::iter::once(0).chain(starts));
        let front = sheet.len();
        let points = nodes.iter().flat_map(|&node| self.mesh.points[node as usize]);
        push_part(&mut sheet, points.flat_map(|x| halves(x.to_bits())));
        let corners = |element: &[u16; N]| {
            element.iter().rev().fold(0, |packed, &corner| packed << 16 | u64::from(3 * corner))
        };
        push_part(&mut sheet, elements.iter().flat_map(|element| halves(corners(element))));
        push_part(&mut sheet, targets);
        push_part(&mut sheet, entry_sums.codes);
        let short = sheet.len() / PACK;
        push_part(&mut sheet, row_sums.codes);
        let packs = [short, sheet.len() / PACK];
        let n_entries = rows.columns.len();
        let slices = [row_sums.widths.len(), entry_sums.widths.len()];
        let numbers = [nodes.len(), n_rows, cells.len(), n_entries, slices[0], slices[1]];
        let mut heads = vec![0; HEAD];
        heads[PACK..FIRST].copy_from_slice(&numbers.map(|n| n as u32));
        Some(Lists {
            heads,
            nodes: nodes.to_vec(),
            cells: cells.to_vec(),
            columns: rows.columns,
            sheets: sheet,
            sizes: vec![Size {
                n_nodes: nodes.len(),
                n_elements: cells.len(),
                n_rows,
                n_entries,
                front,
                packs,
            }],
        })
    }

    fn rows(&self, nodes: &[u32], numbers: &Numbers) -> Rows {
        let (mut columns, mut begin, mut row) = (Vec::new(), vec![0], Vec::new());
        for &node in nodes {
            row.clear();
            row.extend_from_slice(self.pattern.row(node as usize));
            self.places.order(&mut row);
            columns.extend(row.iter().map(|&column| numbers[column as usize] as u16));
            begin.push(columns.len() as u32);
        }
        Rows { columns, begin }
    }

    fn row_records(&self, nodes: &[u32], rows: &Rows) -> Vec<u32> {
        let record = |(row, &node): (usize, &u32)| {
            let range = rows.range(row);
            let diagonal = rows.entry(row, row) - range.start;
            let [lane, fold] = self.places.lanes_of_row(node as usize).map(u32::from);
            let start = self.places.start(node as usize);
            [
                (range.start | range.len() << 16) as u32,
                diagonal as u32 | lane << 16 | fold << 24,
                start as u32,
                (start >> 32) as u32,
            ]
        };
        nodes.iter().enumerate().flat_map(record).collect()
    }
}

/// Appends a part to a sheet, starting and ending at a whole pack.
fn push_part(sheet: &mut Vec<u32>, words: impl IntoIterator<Item = u32>) {
    sheet.resize(sheet.len().next_multiple_of(PACK), 0);
    sheet.extend(words);
    sheet.resize(sheet.len().next_multiple_of(PACK), 0);
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Numbers the nodes of a patch, those of its rows first, the others ascending.
fn number_nodes<const N: usize>(all: &[u32], rows: &[u32], cells: &[u32], numbers: &mut Numbers) -> Vec<u32> {
    let mut nodes = rows.to_vec();
    nodes.iter().zip(0..).for_each(|(&node, number)| numbers[node as usize] = number);
    for &cell in cells {
        for node in all.as_chunks::<N>().0[cell as usize] {
            if numbers[node as usize] == u32::MAX {
                numbers[node as usize] = 0;
                nodes.push(node);
            }
        }
    }
    nodes[rows.len()..].sort_unstable();
    nodes.iter().zip(0..).for_each(|(&node, number)| numbers[node as usize] = number);
    nodes
}

/// Returns the sums of all off-diagonal entries, by ascending element, and their targets.
fn edge_sums<const N: usize>(elements: &[[u16; N]], rows: &Rows) -> (Sums, Vec<u32>) {
    // The sum of each entry, and the entries of each sum.
    let mut sum_of = vec![u32::MAX; rows.columns.len()];
    let mut targets: Vec<[u16; 2]> = Vec::new();
    for row in 0..rows.len() {
        for entry in rows.range(row) {
            let column = usize::from(rows.columns[entry]);
            if column == row || sum_of[entry] != u32::MAX {
                continue;
            }
            let mirrored = (column < rows.len()).then(|| rows.entry(column, row));
            sum_of[entry] = targets.len() as u32;
            if let Some(mirrored) = mirrored {
                sum_of[mirrored] = targets.len() as u32;
            }
            targets.push([entry as u16, mirrored.map_or(NO_ENTRY, |entry| entry as u16)]);
        }
    }
    let mut codes: Vec<(u32, u16)> = Vec::with_capacity(8 * elements.len());
    for (e, corners) in elements.iter().enumerate() {
        let mut edge = 0;
        for a in 0..N {
            for b in a + 1..N {
                let (i, j) = (usize::from(corners[a]), usize::from(corners[b]));
                let (row, column) = if i < rows.len() { (i, j) } else { (j, i) };
                // A cell that has a node twice is degenerate; the kernel refuses it.
                if row < rows.len() && row != column {
                    codes.push((sum_of[rows.entry(row, column)], (edge * elements.len() + e) as u16));
                }
                edge += 1;
            }
        }
    }
    codes.sort_by_key(|&(sum, _)| sum);
    let padding = (N * (N - 1) / 2 * elements.len()) as u16;
    let (of_sum, codes): (Vec<u32>, Vec<u16>) = codes.into_iter().unzip();
    let mut rest = codes.as_slice();
    let mut sums: Vec<(&[u16], u32)> = of_sum
        .chunk_by(|a, b| a == b)
        .map(|group| {
            let (codes, after) = rest.split_at(group.len());
            rest = after;
            let [entry, mirrored] = targets[group[0] as usize].map(u32::from);
            (codes, entry | mirrored << 16)
        })
        .collect();
    sums.sort_by_key(|(codes, _)| std::cmp::Reverse(codes.len()));
    let (sums, mut targets): (Vec<&[u16]>, Vec<u32>) = sums.into_iter().unzip();
    targets.resize(targets.len().next_multiple_of(WARP), u32::MAX);
    (Sums::new(&sums, padding), targets)
}

/// Returns the sums of rows over their elements, by ascending element.
fn row_sums<const N: usize>(elements: &[[u16; N]], n_rows: usize) -> Sums {
    let mut codes: Vec<Vec<u16>> = vec![Vec::new(); n_rows];
    for (e, corners) in elements.iter().enumerate() {
        for (a, &corner) in corners.iter().enumerate() {
            if let Some(codes) = codes.get_mut(usize::from(corner)) {
                codes.push((4 * e + a) as u16);
            }
        }
    }
    let sums: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
    Sums::new(&sums, (4 * elements.len()) as u16)
}
