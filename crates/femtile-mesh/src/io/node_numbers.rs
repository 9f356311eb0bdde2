//! Maps the node or element numbers of a file to their order in it.

use femtile_device::parallel;

/// Finds nodes by number: through a table if the numbers are dense, else by bisection.
#[derive(Debug)]
pub(super) enum NodeNumbers {
    /// Node of number `first + i` is `i`, for `n` nodes.
    Ascending { first: u64, n: u32 },
    /// Node of number `first + i`, or [`MISSING`].
    Table { first: u64, nodes: Vec<u32> },
    /// Numbers in ascending order with their nodes.
    Sorted(Vec<(u64, u32)>),
}

const MISSING: u32 = u32::MAX;

impl NodeNumbers {
    /// Takes the number of each node.
    ///
    /// # Errors
    /// The number that two nodes share.
    pub(super) fn new(numbers: &[u64]) -> Result<Self, u64> {
        if let (Some(&first), Ok(n)) = (numbers.first(), u32::try_from(numbers.len()))
            && parallel::all(numbers.len(), parallel::CHEAP, |i| {
                numbers[i].checked_sub(first) == Some(i as u64)
            })
        {
            return Ok(Self::Ascending { first, n });
        }
        let first = numbers.iter().copied().min().unwrap_or(0);
        let span = numbers.iter().copied().max().unwrap_or(0) - first;
        if span / 4 <= numbers.len() as u64 {
            let mut nodes = vec![MISSING; span as usize + 1];
            for (node, &number) in numbers.iter().enumerate() {
                let slot = &mut nodes[(number - first) as usize];
                if *slot != MISSING {
                    return Err(number);
                }
                *slot = node as u32;
            }
            return Ok(Self::Table { first, nodes });
        }
        let mut sorted = Vec::with_capacity(numbers.len());
        sorted.extend(numbers.iter().zip(0u32..).map(|(&number, node)| (number, node)));
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(pair[0].0),
            None => Ok(Self::Sorted(sorted)),
        }
    }

    /// Passes on all numbers with their nodes.
    pub(super) fn for_each(&self, mut each: impl FnMut(u64, u32)) {
        match self {
            Self::Ascending { first, n } => (0..*n).for_each(|node| each(first + u64::from(node), node)),
            Self::Table { first, nodes } => {
                let numbered = (*first..).zip(nodes).filter(|(_, node)| **node != MISSING);
                numbered.for_each(|(number, &node)| each(number, node));
            }
            Self::Sorted(sorted) => sorted.iter().for_each(|&(number, node)| each(number, node)),
        }
    }

    /// The node of a number.
    pub(super) fn find(&self, number: u64) -> Option<u32> {
        match self {
            Self::Ascending { first, n } => {
                number.checked_sub(*first).filter(|node| *node < u64::from(*n)).map(|node| node as u32)
            }
            Self::Table { first, nodes } => {
                let slot = usize::try_from(number.checked_sub(*first)?).ok()?;
                nodes.get(slot).copied().filter(|&node| node != MISSING)
            }
            Self::Sorted(sorted) => {
                let at = sorted.binary_search_by_key(&number, |&(number, _)| number).ok()?;
                Some(sorted[at].1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_number_is_found_and_no_other(
            numbers in prop::collection::hash_set(prop_oneof![0u64..50, any::<u64>()], 0..20),
            other in prop_oneof![0u64..60, any::<u64>()],
        ) {
            let numbers: Vec<u64> = numbers.into_iter().collect();
            let map = NodeNumbers::new(&numbers).unwrap();
            for (node, &number) in numbers.iter().enumerate() {
                prop_assert_eq!(map.find(number), Some(node as u32));
            }
            prop_assert_eq!(map.find(other).is_some(), numbers.contains(&other));
        }

        #[test]
        fn a_number_given_twice_is_named(first in any::<u64>(), second in any::<u64>()) {
            prop_assert_eq!(NodeNumbers::new(&[first, second, first]).unwrap_err(), first);
        }
    }
}
