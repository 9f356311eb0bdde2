//! Sorting of items by a small number of classes.

use femtile_device::parallel;

/// Items per batch of a thread.
const THINGS: usize = 1 << 14;

/// Returns the numbers below `n` class by class, ascending in each, and how many each has; numbers of class `N` are left out.
pub(super) fn by_class<const N: usize>(
    n: usize,
    class: impl Fn(usize) -> usize + Sync,
) -> (Vec<u32>, [usize; N]) {
    let counts = counts(n, &class);
    let sizes = sizes(&counts);
    let mut all = vec![0; sizes.iter().sum()];
    fill(&mut all, &counts, class, |number| number as u32);
    (all, sizes)
}

/// Writes items to `to` class by class, in their order within each class, and returns the size of each class.
/// `to` has room for all.
pub(super) fn sort_by_class<const N: usize>(
    to: &mut [u32],
    class: impl Fn(usize) -> usize + Sync,
    thing: impl Fn(usize) -> u32 + Sync,
) -> [usize; N] {
    let counts = counts(to.len(), &class);
    fill(to, &counts, class, thing);
    sizes(&counts)
}

/// How many of each class each block has.
fn counts<const N: usize>(n: usize, class: impl Fn(usize) -> usize + Sync) -> Vec<[usize; N]> {
    let count = |block: usize| {
        let mut counts = [0; N];
        for thing in block * THINGS..((block + 1) * THINGS).min(n) {
            let class = class(thing);
            (0..N).for_each(|of| counts[of] += usize::from(class == of));
        }
        counts
    };
    parallel::map(n.div_ceil(THINGS), 1, count)
}

fn sizes<const N: usize>(counts: &[[usize; N]]) -> [usize; N] {
    std::array::from_fn(|class| counts.iter().map(|counts| counts[class]).sum())
}

/// The places of each class of a block.
type Block<'a, const N: usize> = [Option<&'a mut [u32]>; N];

fn fill<const N: usize>(
    to: &mut [u32],
    counts: &[[usize; N]],
    class: impl Fn(usize) -> usize + Sync,
    thing: impl Fn(usize) -> u32 + Sync,
) {
    let lengths = (0..N).flat_map(|class| counts.iter().map(move |counts| counts[class]));
    let mut pieces = cut(to, lengths).into_iter();
    let mut blocks: Vec<Block<'_, N>> = counts.iter().map(|_| [const { None }; N]).collect();
    for class in 0..N {
        blocks.iter_mut().for_each(|block| block[class] = pieces.next());
    }
    let blocks = blocks.into_iter().zip(counts).enumerate().collect();
    parallel::for_each_item(blocks, 1, |(block, (to, counts)): (usize, (Block<'_, N>, &[usize; N]))| {
        let mut to = to.map(|piece| piece.into_iter().flatten());
        let mut left: usize = counts.iter().sum();
        for number in block * THINGS.. {
            if left == 0 {
                break;
            }
            if let Some(to) = to.get_mut(class(number)).and_then(Iterator::next) {
                *to = thing(number);
                left -= 1;
            }
        }
    });
}

/// Cuts a slice into consecutive pieces of these lengths.
pub(super) fn cut<T>(mut all: &mut [T], lengths: impl IntoIterator<Item = usize>) -> Vec<&mut [T]> {
    let piece = |length| all.split_off_mut(..length).unwrap_or_default();
    lengths.into_iter().map(piece).collect()
}
