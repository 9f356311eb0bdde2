//! Some of many numbers.

use femtile_device::parallel;

use super::classes::cut;

/// Numbers of a word.
pub(super) const BITS: usize = u64::BITS as usize;
/// Words per batch of a thread.
const WORDS: usize = 1 << 10;

/// A set of numbers below a bound, one bit each, with the rank of each member in the set.
#[derive(Debug)]
pub(super) struct Subset {
    words: Vec<u64>,
    /// How many members there are in the words before.
    before: Vec<u32>,
    n: usize,
}

impl Subset {
    /// Takes the bits of the numbers, lowest first.
    pub(super) fn new(words: Vec<u64>) -> Self {
        let mut n = 0;
        let mut before = Vec::with_capacity(words.len());
        for word in &words {
            before.push(n as u32);
            n += word.count_ones() as usize;
        }
        Self { words, before, n }
    }

    /// Whether it has a number.
    pub(super) fn has(&self, number: u32) -> bool {
        self.words[number as usize / BITS] >> (number as usize % BITS) & 1 == 1
    }

    /// How many members are below a number.
    pub(super) fn place(&self, number: u32) -> u32 {
        let (word, bit) = (number as usize / BITS, number as usize % BITS);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }

    /// All members, ascending.
    pub(super) fn members(&self) -> Vec<u32> {
        let mut members = vec![0; self.n];
        let ends = self.before.iter().map(|&before| before as usize).step_by(WORDS).skip(1).chain([self.n]);
        let lengths = ends.scan(0, |begin, end| Some(end - std::mem::replace(begin, end)));
        let blocks = cut(&mut members, lengths).into_iter().zip(self.words.chunks(WORDS)).enumerate();
        parallel::for_each_item(blocks.collect(), 1, |(block, (to, words))| {
            write_members(block * WORDS, words, to);
        });
        members
    }
}

/// Writes the members that words have, the first of which has this number.
fn write_members(first: usize, words: &[u64], to: &mut [u32]) {
    let mut to = to.iter_mut();
    for (word, &bits) in (first..).zip(words) {
        let of_word = to.by_ref().take(bits.count_ones() as usize);
        of_word.fold(bits, |left, to| {
            *to = (word * BITS) as u32 + left.trailing_zeros();
            left & (left - 1)
        });
    }
}
