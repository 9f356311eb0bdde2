//! Memory of the emulated device, with gaps between arrays and notes on every byte.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use femtile::device::DeviceError;

/// Alignment of arrays.
const ALIGNMENT: usize = 256;
/// Bytes at least between two arrays that belong to none.
const GAP: usize = 256;
/// Bytes of a word, which has one entry in the notes.
const WORD: usize = 4;
/// Bytes of the record of who touched a word.
const GRANULE: usize = 32;
/// Arrays of this size and more give their pages back to the system.
const LARGE: usize = 64 << 10;
/// Address space for each byte of the device, so that what was given back is not given out again soon.
const SPARE: usize = 4;
/// Of a word: all bytes belong to an array; all bytes have been written as well.
const OWNED: u8 = 0x0f;
const WRITTEN: u8 = 0xff;

/// A stretch of address space, zeros until it is written; pages are taken as they are touched.
#[derive(Debug)]
struct Map {
    base: *mut u8,
    bytes: usize,
}

impl Map {
    fn new(bytes: usize) -> Result<Self, std::io::Error> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping touches nothing that exists.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), bytes })
    }

    fn fill(&mut self, from: usize, bytes: usize, value: u8) {
        debug_assert!(from + bytes <= self.bytes);
        // SAFETY: the range lies within the mapping, which nothing else refers to meanwhile.
        unsafe { ptr::write_bytes(self.base.add(from), value, bytes) };
    }

    /// Makes whole pages within a range zeros again and gives them to the system.
    fn give_back(&mut self, from: usize, bytes: usize) {
        const PAGE: usize = 64 << 10;
        let (begin, end) = (from.next_multiple_of(PAGE), (from + bytes) / PAGE * PAGE);
        if begin < end {
            // SAFETY: the range lies within the mapping; an anonymous mapping reads as zeros afterwards.
            unsafe { libc::madvise(self.base.add(begin).cast::<c_void>(), end - begin, libc::MADV_DONTNEED) };
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone and goes with it.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// An array of the device, or one that was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Array {
    pub begin: u64,
    pub bytes: usize,
    pub is_live: bool,
    /// True if it takes no memory of the GPU.
    pub is_on_host: bool,
}

/// The memory layout passed to the runtime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub memory: *mut u8,
    pub bytes: usize,
    pub state: *mut u8,
    pub granules: *mut c_void,
}

#[derive(Debug)]
pub(super) struct Memory {
    memory: Map,
    state: Map,
    granules: Map,
    /// Arrays by their offset, those that were given back until their place is used again.
    arrays: BTreeMap<usize, Array>,
    next: usize,
    used: usize,
    limit: usize,
}

// SAFETY: the mappings belong to this value alone.
unsafe impl Send for Memory {}

/// The error of a call that names memory it must not.
fn refused(action: &'static str, message: impl Into<String>) -> DeviceError {
    DeviceError::Driver { action, message: message.into() }
}

impl Memory {
    /// Reserves `limit` bytes, none of them initialized.
    pub fn new(limit: usize) -> Result<Self, std::io::Error> {
        let bytes = (limit.saturating_mul(SPARE)).max(64 << 20).next_multiple_of(64 << 10);
        Ok(Self {
            memory: Map::new(bytes)?,
            state: Map::new(bytes / WORD)?,
            granules: Map::new(bytes / WORD * GRANULE)?,
            arrays: BTreeMap::new(),
            next: GAP,
            used: 0,
            limit,
        })
    }

    /// Returns its layout for the runtime of kernels.
    pub fn layout(&self) -> Layout {
        Layout {
            memory: self.memory.base,
            bytes: self.memory.bytes,
            state: self.state.base,
            granules: self.granules.base.cast(),
        }
    }

    /// Lowers the number of bytes there are, and says what it is then.
    pub fn limit_to(&mut self, bytes: usize) -> usize {
        self.limit = self.limit.min(bytes);
        self.limit
    }

    /// Free and total bytes.
    pub fn bytes(&self) -> (usize, usize) {
        (self.limit.saturating_sub(self.used), self.limit)
    }

    /// Forgets who touched what; what was written stays known.
    pub fn forget_accesses(&mut self) {
        let bytes = self.granules.bytes;
        self.granules.give_back(0, bytes);
    }

    /// The address of a new array, whose values nobody may read before they are written.
    pub fn allocate(&mut self, bytes: usize, device: &str) -> Result<u64, DeviceError> {
        let (free, total) = self.bytes();
        let begin = (bytes <= free).then(|| self.insert(bytes, false)).flatten();
        let refusal = || DeviceError::OutOfMemory { device: device.into(), needed: bytes, free, total };
        let begin = begin.ok_or_else(refusal)?;
        self.used += bytes;
        Ok(begin)
    }

    /// Allocates as [`Memory::allocate`] does, without taking memory of the GPU.
    pub fn allocate_on_host(&mut self, bytes: usize) -> Option<u64> {
        self.insert(bytes, true)
    }

    fn insert(&mut self, bytes: usize, is_on_host: bool) -> Option<u64> {
        let offset = self.place(bytes)?;
        self.next = (offset + bytes + GAP).next_multiple_of(ALIGNMENT);
        let begin = self.memory.base as u64 + offset as u64;
        self.arrays.insert(offset, Array { begin, bytes, is_live: true, is_on_host });
        self.mark(offset, bytes, OWNED);
        Some(begin)
    }

    /// An offset where an array of `bytes` bytes touches no live one; arrays given back there are forgotten.
    fn place(&mut self, bytes: usize) -> Option<usize> {
        let end = self.memory.bytes - GAP;
        let mut offset = self.next;
        let mut has_wrapped = false;
        loop {
            if offset + bytes > end {
                if has_wrapped {
                    return None;
                }
                (offset, has_wrapped) = (GAP, true);
                continue;
            }
            let reach = offset + bytes + GAP;
            let near =
                self.arrays.range(..offset).next_back().into_iter().chain(self.arrays.range(offset..reach));
            let in_way = near.filter(|(at, array)| array.is_live && **at + array.bytes + GAP > offset);
            match in_way.map(|(at, array)| at + array.bytes).max() {
                Some(behind) => offset = (behind + GAP).next_multiple_of(ALIGNMENT),
                None => {
                    // Arrays that were given back, for live ones would be in the way.
                    while let Some((&stale, _)) = self.arrays.range(offset..reach).next() {
                        self.arrays.remove(&stale);
                    }
                    return Some(offset);
                }
            }
        }
    }

    /// Gives an array back; says whether there was one.
    pub fn free(&mut self, address: u64) -> bool {
        let offset = (address as usize).wrapping_sub(self.memory.base as usize);
        let Some(array) = self.arrays.get_mut(&offset).filter(|array| array.is_live) else { return false };
        array.is_live = false;
        let Array { bytes, is_on_host, .. } = *array;
        self.used -= if is_on_host { 0 } else { bytes };
        self.mark(offset, bytes, 0);
        if bytes >= LARGE {
            self.memory.give_back(offset, bytes);
            self.granules.give_back(offset / WORD * GRANULE, bytes / WORD * GRANULE);
        }
        true
    }

    /// The array that an address lies in, or the one before it.
    pub fn array_at(&self, address: u64) -> Option<Array> {
        let offset = (address as usize).checked_sub(self.memory.base as usize)?;
        if offset >= self.memory.bytes {
            return None;
        }
        self.arrays.range(..=offset).next_back().map(|(_, array)| *array)
    }

    /// Sets what is known of the words of a range; the last one may belong to an array in part.
    fn mark(&mut self, offset: usize, bytes: usize, state: u8) {
        let whole = bytes / WORD;
        self.state.fill(offset / WORD, whole, state);
        if !bytes.is_multiple_of(WORD) {
            let part = (1 << (bytes % WORD)) - 1;
            self.state.fill(offset / WORD + whole, 1, state & (part | part << 4));
        }
    }

    /// The offset of a range that lies within one live array.
    fn range(&self, action: &'static str, address: u64, bytes: usize) -> Result<usize, DeviceError> {
        let array = self.array_at(address).filter(|array| array.is_live);
        let inside = array.is_some_and(|array| address - array.begin + bytes as u64 <= array.bytes as u64);
        if !inside {
            return Err(refused(action, format!("{bytes} bytes at {address:#x} are not those of one array")));
        }
        Ok(address as usize - self.memory.base as usize)
    }

    /// The first byte of a range that was never written.
    fn first_unwritten(&self, offset: usize, bytes: usize) -> Option<usize> {
        let first = offset / WORD;
        let n_words = (offset + bytes).div_ceil(WORD) - first;
        // SAFETY: the words lie within an array, so they have notes, and nothing writes to these meanwhile.
        let words = unsafe { std::slice::from_raw_parts(self.state.base.add(first), n_words) };
        let is_written = |at: &usize| words[at / WORD - first] >> 4 >> (at % WORD) & 1 == 1;
        let from = words.iter().position(|&word| word != WRITTEN)?;
        ((first + from) * WORD..offset + bytes)
            .find(|at| *at >= offset && !is_written(at))
            .map(|at| at - offset)
    }

    /// Notes that a range was written; bytes of its first and last word beyond it keep what is known of them.
    fn mark_written(&mut self, offset: usize, bytes: usize) {
        for at in offset..offset + bytes {
            // SAFETY: the byte is one of an array, so its word has a note; nothing else refers to the notes meanwhile.
            unsafe { *self.state.base.add(at / WORD) |= 0x10 << (at % WORD) };
        }
    }

    /// Fills a range with zeros.
    pub fn zero(&mut self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        let offset = self.range("clearing memory", address, bytes)?;
        self.memory.fill(offset, bytes, 0);
        self.mark_whole(offset, bytes);
        Ok(())
    }

    /// Marks as `mark_written` does, fast for whole words.
    fn mark_whole(&mut self, offset: usize, bytes: usize) {
        if offset.is_multiple_of(WORD) {
            let whole = bytes / WORD;
            self.state.fill(offset / WORD, whole, WRITTEN);
            self.mark_written(offset + whole * WORD, bytes % WORD);
        } else {
            self.mark_written(offset, bytes);
        }
    }

    /// Copies into a range.
    pub fn upload(&mut self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        let offset = self.range("copying to the GPU", to, from.len())?;
        // SAFETY: the target lies within an array, and nothing else refers to the mapping meanwhile.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.memory.base.add(offset), from.len()) };
        self.mark_whole(offset, from.len());
        Ok(())
    }

    /// A copy of a range, all of which must have been written.
    pub fn download(&self, from: u64, bytes: usize) -> Result<Vec<u8>, DeviceError> {
        let action = "copying from the GPU";
        let offset = self.range(action, from, bytes)?;
        if let Some(byte) = self.first_unwritten(offset, bytes) {
            return Err(refused(action, format!("byte {byte} of {bytes} was never written")));
        }
        // SAFETY: the range lies within an array, and nothing writes to the mapping meanwhile.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.base.add(offset), bytes) }.to_vec())
    }

    /// Copies what was written to one place to another.
    pub fn copy(&mut self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        let copied = self.download(from, bytes)?;
        self.upload(to, &copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::new(1 << 20).unwrap()
    }

    #[test]
    fn arrays_are_aligned_and_never_touch() {
        let mut memory = memory();
        let arrays: Vec<(u64, usize)> = [1, 3, 255, 256, 257, 4096, 1]
            .iter()
            .map(|&bytes| (memory.allocate(bytes, "test").unwrap(), bytes))
            .collect();
        for pair in arrays.windows(2) {
            assert_eq!(pair[0].0 % 256, 0);
            assert!(pair[1].0 >= pair[0].0 + pair[0].1 as u64 + GAP as u64);
        }
        assert_eq!(memory.bytes().0, (1 << 20) - arrays.iter().map(|(_, bytes)| bytes).sum::<usize>());
    }

    #[test]
    fn places_are_used_again_only_after_all_others_and_never_twice_at_once() {
        let mut memory = memory();
        let kept = memory.allocate(100, "test").unwrap();
        let mut last = kept;
        let mut wrapped = 0;
        for _ in 0..2000 {
            let fresh = memory.allocate(500_000, "test").unwrap();
            assert!(fresh > kept + 100 || fresh + 500_000 <= kept);
            wrapped += usize::from(fresh < last);
            last = fresh;
            assert!(memory.free(fresh) && !memory.free(fresh));
        }
        assert!((5..20).contains(&wrapped), "{wrapped} rounds");
        assert!(memory.arrays.len() < 200, "{}", memory.arrays.len());
        assert!(memory.array_at(kept + 99).unwrap().is_live);
    }

    #[test]
    fn more_than_there_is_is_refused_with_numbers() {
        let mut memory = memory();
        let first = memory.allocate(1_000_000, "test").unwrap();
        let error = memory.allocate(50_000, "test").unwrap_err();
        let DeviceError::OutOfMemory { needed, free, total, .. } = error else { panic!("{error}") };
        assert_eq!((needed, free, total), (50_000, 48_576, 1 << 20));
        memory.free(first);
        memory.allocate(50_000, "test").unwrap();
    }

    #[test]
    fn copies_stay_inside_their_array_and_read_only_what_was_written() {
        let mut memory = memory();
        let array = memory.allocate(7, "test").unwrap();
        memory.upload(array, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!(memory.download(array + 2, 5).unwrap(), [3, 4, 5, 6, 7]);
        assert!(memory.upload(array, &[0; 8]).is_err() && memory.download(array + 1, 7).is_err());
        assert!(memory.zero(array - 1, 1).is_err());
        let fresh = memory.allocate(6, "test").unwrap();
        memory.upload(fresh + 1, &[9, 9, 9, 9]).unwrap();
        assert_eq!(memory.download(fresh + 1, 4).unwrap(), [9; 4]);
        let error = memory.download(fresh, 6).unwrap_err().to_string();
        assert!(error.contains("byte 0 of 6"), "{error}");
        memory.copy(fresh, array, 6).unwrap();
        assert_eq!(memory.download(fresh, 6).unwrap(), [1, 2, 3, 4, 5, 6]);
        memory.free(array);
        assert!(memory.download(array, 1).is_err());
    }
}
