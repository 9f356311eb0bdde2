//! Findings of the runtime in words.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::process::Command;

use femtile::device::cuda::Launch;

use super::library::{Finding, Library};
use super::memory::Memory;

/// A fault of a kernel; the numbers and their meaning are those of `interface.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    OutOfBounds,
    Unwritten,
    Misaligned,
    RaceInBlock,
    RaceOfBlocks,
    BarrierMissed,
    BarriersDiffer,
    WarpMissed,
    OperationsDiffer,
    NotInMask,
    InactiveLane,
    Trap,
    WaitsForever,
    TooMuch,
}

const FAULTS: [Fault; 14] = [
    Fault::OutOfBounds,
    Fault::Unwritten,
    Fault::Misaligned,
    Fault::RaceInBlock,
    Fault::RaceOfBlocks,
    Fault::BarrierMissed,
    Fault::BarriersDiffer,
    Fault::WarpMissed,
    Fault::OperationsDiffer,
    Fault::NotInMask,
    Fault::InactiveLane,
    Fault::Trap,
    Fault::WaitsForever,
    Fault::TooMuch,
];

/// A launch, for its reports.
pub(super) struct Scene<'a> {
    pub launch: &'a Launch,
    pub arguments: &'a [Vec<u128>],
    pub library: &'a Library,
    pub memory: &'a Memory,
}

fn coordinates(number: u64, [x, y, _]: [u32; 3]) -> String {
    let [x, y] = [u64::from(x).max(1), u64::from(y).max(1)];
    format!("({}, {}, {})", number % x, number / x % y, number / x / y)
}

fn lanes(mask: u32) -> String {
    let lanes: Vec<String> =
        (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| lane.to_string()).collect();
    match lanes.as_slice() {
        [] => "no lane".into(),
        [lane] => format!("lane {lane}"),
        [first, .., last] if lanes.len() > 8 => format!("{} lanes from {first} to {last}", lanes.len()),
        _ => format!("lanes {}", lanes.join(", ")),
    }
}

fn site(file: *const c_char, line: u32) -> String {
    if file.is_null() {
        return "no barrier yet".into();
    }
    // SAFETY: the name is a constant of the library, which is loaded while it reports.
    let file = unsafe { CStr::from_ptr(file) }.to_string_lossy();
    format!("{}:{line}", file_name(&file))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn verb(access: u32) -> &'static str {
    ["reads", "writes", "changes atomically"][access.min(2) as usize]
}

fn verb_of_past(access: u32) -> &'static str {
    ["read", "wrote", "changed atomically"][access.min(2) as usize]
}

/// Functions and lines of an instruction, the innermost first, if the tool for that is there.
fn lines(library: &Path, place: u64) -> Option<String> {
    let mut ask = Command::new("addr2line");
    ask.args(["-f", "-C", "-i", "-s", "-e"]).arg(library).arg(format!("{:#x}", place.checked_sub(1)?));
    let output = ask.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs: Vec<&str> = text.lines().collect();
    let calls = pairs.chunks_exact(2).filter(|pair| !pair[1].starts_with("??"));
    let calls = calls.map(|pair| {
        let function = pair[0].replace("(anonymous namespace)::", "");
        let function = function.split('(').next().unwrap_or_default().to_string();
        format!("{} ({function})", pair[1].split(" (").next().unwrap_or_default())
    });
    let calls: Vec<String> = calls.collect();
    (!calls.is_empty()).then(|| calls.join(", from "))
}

/// The variable of a library that an address lies in, and the offset there, if the tool for that is there.
fn variable(library: &Path, offset: u64) -> Option<String> {
    let output = Command::new("nm").args(["-S", "-C"]).arg(library).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().find_map(|line| {
        let mut fields = line.splitn(4, ' ');
        let begin = u64::from_str_radix(fields.next()?, 16).ok()?;
        let bytes = u64::from_str_radix(fields.next()?, 16).ok()?;
        let name = fields.nth(1)?.replace("(anonymous namespace)::", "");
        let byte = offset.checked_sub(begin).filter(|byte| *byte < bytes)?;
        let is_gap = name.contains("femtile_gap_");
        Some(if is_gap {
            "bytes beside shared arrays".into()
        } else {
            format!("byte {byte} of shared `{name}`")
        })
    })
}

impl Scene<'_> {
    /// A finding in words: who, what, at which address, and where in the source.
    pub fn describe(&self, finding: &Finding) -> String {
        let fault = FAULTS[(finding.kind as usize).min(FAULTS.len() - 1)];
        let who = format!("block {}, thread {}", self.block(finding.block), self.thread(finding.thread));
        let mut text = format!("{who}: {}", self.what(fault, finding));
        if finding.place != 0 {
            if let Some(lines) = lines(self.library.path(), finding.place) {
                text.push_str(&format!("; at {lines}"));
            }
        } else if !finding.file.is_null() {
            text.push_str(&format!("; at {}", site(finding.file, finding.line)));
        }
        if finding.repeats > 0 {
            text.push_str(&format!("; and {} times more there", finding.repeats));
        }
        text
    }

    fn thread(&self, number: u32) -> String {
        coordinates(number.into(), self.launch.block)
    }

    fn block(&self, number: u64) -> String {
        coordinates(number, self.launch.grid)
    }

    fn what(&self, fault: Fault, finding: &Finding) -> String {
        let access = || format!("{} {}", verb(finding.access), self.place(finding.address));
        let other = || self.thread(finding.other_thread);
        let past = || verb_of_past(finding.other_access);
        let other_site = || site(finding.other_file, finding.other_line);
        let mask = finding.mask;
        match fault {
            Fault::OutOfBounds => format!("out of bounds: {}, {} bytes at once", access(), finding.size),
            Fault::Unwritten => format!("{}, which was never written", access()),
            Fault::Misaligned => format!("misaligned for its type: {}", self.place(finding.address)),
            Fault::RaceInBlock => {
                format!("race: {}, which thread {} {} with no barrier between", access(), other(), past())
            }
            Fault::RaceOfBlocks => {
                let (block, past) = (self.block(finding.other_block), past());
                format!("race: {}, which block {block} {past} with no fence and atomic between", access())
            }
            Fault::BarrierMissed => {
                let where_is = self.whereabouts(finding);
                format!("barrier: waits while {} others do not come: {where_is}", finding.missing)
            }
            Fault::BarriersDiffer => {
                format!("barrier: is at another one than thread {}, which is at {}", other(), other_site())
            }
            Fault::WarpMissed => {
                let (lanes, where_is) = (lanes(finding.missing), self.whereabouts(finding));
                format!("warp: waits for {lanes} of mask {mask:#x}, which do not come: {where_is}")
            }
            Fault::OperationsDiffer => {
                format!(
                    "warp: meets thread {} of mask {mask:#x} at another operation, {}",
                    other(),
                    other_site()
                )
            }
            Fault::NotInMask => format!("warp: the lane is not in its mask {mask:#x}"),
            Fault::InactiveLane => {
                let lane = finding.other_thread;
                format!("shuffle: takes the value of lane {lane}, which does not take part (mask {mask:#x})")
            }
            Fault::Trap => "calls __trap".into(),
            Fault::WaitsForever => {
                format!("{} again and again, while no other thread can run", access())
            }
            Fault::TooMuch => "the launch has more threads and barriers than can be told apart".into(),
        }
    }

    /// Describes the place of a thread for which others wait.
    fn whereabouts(&self, finding: &Finding) -> String {
        let (thread, at) = (self.thread(finding.other_thread), site(finding.other_file, finding.other_line));
        match finding.other_whereabouts {
            1 => format!("thread {thread} waits at the barrier at {at}"),
            2 => format!("thread {thread} waits for its warp at {at}"),
            _ => format!("thread {thread} has ended"),
        }
    }

    /// An address in words: buffer and offset, or the name of a shared array.
    fn place(&self, address: u64) -> String {
        let [fixed, dynamic] = self.library.shared_memory();
        let lies_in = |(begin, bytes): (u64, u64)| (begin..begin + bytes).contains(&address);
        if lies_in(fixed) {
            let known = variable(self.library.path(), address - self.library.image());
            let byte = address - fixed.0;
            return known.unwrap_or_else(|| format!("byte {byte} of static shared memory"));
        }
        if lies_in(dynamic) {
            let bytes = self.launch.shared_bytes;
            return format!("byte {} of {bytes} bytes of dynamic shared memory", address - dynamic.0);
        }
        if address < 4096 {
            return format!("a null pointer plus {address}");
        }
        let Some(array) = self.memory.array_at(address) else {
            return format!("{address:#x}, which is no memory of the device");
        };
        let (byte, bytes) = (address - array.begin, array.bytes);
        let fate = if array.is_live { "" } else { " that was freed" };
        format!("byte {byte} of a buffer of {bytes} bytes{fate}{}", self.argument_of(array.begin, bytes))
    }

    /// Describes the argument that points into a buffer.
    fn argument_of(&self, begin: u64, bytes: usize) -> String {
        let range = begin..=begin + bytes as u64;
        let points = |words: &Vec<u128>| {
            words.iter().any(|&w| [w as u64, (w >> 64) as u64].iter().any(|a| range.contains(a)))
        };
        let found = self.arguments.iter().position(points);
        found.map_or(String::new(), |index| format!(" (argument {index})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_named_by_their_index() {
        assert_eq!(coordinates(7, [256, 1, 1]), "(7, 0, 0)");
        assert_eq!(coordinates(7, [3, 5, 1]), "(1, 2, 0)");
        assert_eq!(coordinates(31, [3, 5, 4]), "(1, 0, 2)");
    }

    #[test]
    fn lanes_are_listed_while_they_are_few() {
        assert_eq!(lanes(0b1001), "lanes 0, 3");
        assert_eq!(lanes(1 << 31), "lane 31");
        assert_eq!(lanes(u32::MAX - 1), "31 lanes from 1 to 31");
    }
}
