//! Fuzzers that change the structure of files: sections repeated, removed, exchanged, counts that lie.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::allocation::peak_within;

/// No input may make a reader hold more than this.
const MOST_BYTES: usize = 1 << 30;
/// No input may keep a reader busy for longer.
const LONGEST: Duration = Duration::from_secs(10);
/// Changes that would make a file longer are left out.
const LONGEST_FILE: usize = 1 << 16;
/// Inputs for each reader, where no time is given for them.
const N_INPUTS: u64 = 400;
/// A reader with this many findings gets no more inputs.
const MOST_FINDINGS: usize = 10;

/// A reader under test: sound inputs of one or several files each, and what to hold it to.
pub struct Reader<'a> {
    /// Format and encoding.
    pub name: &'static str,
    /// Inputs that are changed; others lend their parts to the first.
    pub seeds: Vec<Vec<Vec<u8>>>,
    /// Bytes that the reader may hold at once, as a function of the bytes of input.
    pub allowed: fn(usize) -> usize,
    /// Reads an input, panics where what it accepts is inconsistent, and returns whether it is accepted.
    pub read: &'a dyn Fn(&[Vec<u8>]) -> bool,
}

/// Number and first number of the inputs of each reader.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Number of the first input.
    first: u64,
    /// Time for each reader; without it each reader gets [`N_INPUTS`].
    time: Option<Duration>,
}

impl Plan {
    /// Reads `FEMTILE_FUZZ_FIRST` and `FEMTILE_FUZZ_SECONDS`, which `n_readers` readers share.
    fn of_environment(n_readers: usize) -> Self {
        let variable = |name| std::env::var(name).ok();
        let seconds = variable("FEMTILE_FUZZ_SECONDS").map(|text| text.parse().expect("a number of seconds"));
        Self {
            first: variable("FEMTILE_FUZZ_FIRST").map_or(0, |text| text.parse().expect("a whole number")),
            time: seconds.map(|seconds: f64| Duration::from_secs_f64(seconds / n_readers as f64)),
        }
    }

    fn goes_on(&self, n_inputs: u64, begun: Instant) -> bool {
        self.time.map_or(n_inputs < N_INPUTS, |time| begun.elapsed() < time)
    }
}

/// Result of fuzzing a reader.
#[derive(Debug, Clone, Default)]
struct Outcome {
    n_inputs: u64,
    n_accepted: u64,
    /// Findings, with the number of the input.
    findings: Vec<String>,
}

/// Changes the first input of each reader in many ways and reads the results.
///
/// By default each reader gets the same 400 inputs in every run. `FEMTILE_FUZZ_SECONDS` is a time that the readers share
/// instead, `FEMTILE_FUZZ_FIRST` the number of the first input: with the number of a finding it repeats that input. The
/// bytes of an input with a finding are written to the folder for temporary files.
///
/// # Panics
/// When the first input of a reader is refused, or an input makes a reader panic, hang, swell or accept what is
/// inconsistent.
pub fn fuzz(readers: &[Reader<'_>]) {
    let plan = Plan::of_environment(readers.len());
    let mut findings = Vec::new();
    for reader in readers {
        let outcome = fuzz_reader(reader, plan);
        let (n, n_accepted, last) =
            (outcome.n_inputs, outcome.n_accepted, plan.first.wrapping_add(outcome.n_inputs));
        eprintln!(
            "{}: {n} inputs ({} to {}), {n_accepted} accepted",
            reader.name,
            plan.first,
            last.wrapping_sub(1)
        );
        findings.extend(outcome.findings);
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

fn fuzz_reader(reader: &Reader<'_>, plan: Plan) -> Outcome {
    assert!((reader.read)(&reader.seeds[0]), "{}: the seed is refused", reader.name);
    let begun = Instant::now();
    let mut outcome = Outcome::default();
    while plan.goes_on(outcome.n_inputs, begun) && outcome.findings.len() < MOST_FINDINGS {
        let number = plan.first.wrapping_add(outcome.n_inputs);
        let input = input(reader, number);
        match read(reader, number, &input) {
            Ok(is_accepted) => outcome.n_accepted += u64::from(is_accepted),
            Err(finding) => outcome.findings.push(save(reader.name, number, &input, finding)),
        }
        outcome.n_inputs += 1;
    }
    outcome
}

/// Input number `number` of a reader: its first seed after one to four changes.
fn input(reader: &Reader<'_>, number: u64) -> Vec<Vec<u8>> {
    let of_name = reader.name.bytes().fold(number, |seed, byte| seed.rotate_left(7) ^ u64::from(byte));
    let mut random = Random::new(of_name);
    let mut input = reader.seeds[0].clone();
    for _ in 0..1 + random.below(4) {
        let which = random.below(input.len());
        let lender = &reader.seeds[random.below(reader.seeds.len())];
        let lender = &lender[which % lender.len()];
        change(&mut input[which], lender, &mut random);
    }
    input
}

fn read(reader: &Reader<'_>, number: u64, input: &[Vec<u8>]) -> Result<bool, String> {
    let (n_bytes, begun) = (input.iter().map(Vec::len).sum(), Instant::now());
    let work = || catch_unwind(AssertUnwindSafe(|| (reader.read)(input)));
    let (result, peak) = peak_within(MOST_BYTES, (reader.name, number), work);
    let seconds = begun.elapsed();
    match result {
        Err(_) => Err("the reader panics".into()),
        _ if seconds > LONGEST => Err(format!("the reader takes {seconds:?}")),
        _ if peak > (reader.allowed)(n_bytes) => Err(format!("{peak} bytes held for {n_bytes} of input")),
        Ok(is_accepted) => Ok(is_accepted),
    }
}

fn save(name: &str, number: u64, input: &[Vec<u8>], finding: String) -> String {
    let paths = (0..input.len()).map(|k| {
        let path = std::env::temp_dir().join(format!("fuzz {name} {number} {k}"));
        let _ = std::fs::write(&path, &input[k]);
        path.display().to_string()
    });
    let paths: Vec<_> = paths.collect();
    let files = paths.join(", ");
    format!("{name}, input {number}: {finding} ({files}; FEMTILE_FUZZ_FIRST={number} repeats it)")
}

/// Numbers without pattern, the same for the same seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `n - 1`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.draw() % n as u64) as usize }
    }

    /// One of several.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Changes a file in one way; parts of `lender` may be taken over.
pub fn change(file: &mut Vec<u8>, lender: &[u8], random: &mut Random) {
    let before = (file.len() > LONGEST_FILE / 2).then(|| file.clone());
    match random.below(10) {
        0..=3 => parts(file, lender, random),
        4..=6 => count(file, random),
        7 => number(file, random),
        8 => base64_number(file, random),
        _ => nest(file, random),
    }
    if file.len() > LONGEST_FILE {
        match before {
            Some(before) => *file = before,
            None => file.truncate(LONGEST_FILE),
        }
    }
}

/// Repeats, removes, moves, exchanges or takes over lines, sections or tags.
fn parts(file: &mut Vec<u8>, lender: &[u8], random: &mut Random) {
    let begins = random.one(&[begins_line, begins_section, begins_section, begins_tag]);
    let parts = split(file, begins);
    let (at, to) = (random.below(parts.len()), random.below(parts.len()));
    let Some(part) = parts.get(at).cloned() else { return };
    let bytes = file[part.clone()].to_vec();
    let target = parts[to].start;
    match random.below(6) {
        0 => {
            let n = random.one(&[1, 1, 1, 2, 3, 2000]).min(LONGEST_FILE / bytes.len().max(1));
            file.splice(target..target, bytes.repeat(n));
        }
        1 => drop(file.splice(part, [])),
        2 if target < part.start => {
            file.drain(part);
            file.splice(target..target, bytes);
        }
        2 | 3 => {
            let (first, second) =
                if part.start < target { (part, parts[to].clone()) } else { (parts[to].clone(), part) };
            if first != second {
                let moved =
                    [&file[second.clone()], &file[first.end..second.start], &file[first.clone()]].concat();
                file.splice(first.start..second.end, moved);
            }
        }
        4 => {
            let lent = split(lender, begins);
            let lent = lent.get(random.below(lent.len())).map_or(&[][..], |part| &lender[part.clone()]);
            file.splice(target..target, lent.iter().copied());
        }
        _ => {
            // Everything from here on once more, or not at all.
            let tail = file.split_off(part.start);
            if random.below(2) == 0 {
                file.extend_from_slice(&tail);
                file.extend_from_slice(&tail);
            }
        }
    }
}

fn begins_line(file: &[u8], at: usize) -> bool {
    at == 0 || file[at - 1] == b'\n'
}

/// Sections begin with a line that is no list of numbers.
fn begins_section(file: &[u8], at: usize) -> bool {
    begins_line(file, at) && (file[at].is_ascii_alphabetic() || b"$<[%#".contains(&file[at]))
}

fn begins_tag(file: &[u8], at: usize) -> bool {
    file[at] == b'<'
}

/// The parts of a file, each from where one begins to the next.
fn split(file: &[u8], begins: fn(&[u8], usize) -> bool) -> Vec<Range<usize>> {
    let mut starts: Vec<usize> = (0..file.len()).filter(|&at| begins(file, at)).collect();
    starts.push(file.len());
    starts.windows(2).map(|ends| ends[0]..ends[1]).collect()
}

/// Another word for a whole number.
fn count(file: &mut Vec<u8>, random: &mut Random) {
    const LIES: [&str; 22] = [
        "0",
        "1",
        "2",
        "-1",
        "4",
        "7",
        "100",
        "65536",
        "1000000",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "40000000000",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "99999999999999999999",
        "1.5D+00",
        "nan",
        "1e999",
        "",
    ];
    let begins = |file: &[u8], at: usize| {
        file[at].is_ascii_digit() && (at == 0 || !file[at - 1].is_ascii_alphanumeric())
    };
    let starts: Vec<usize> = (0..file.len()).filter(|&at| begins(file, at)).collect();
    let Some(&start) = starts.get(random.below(starts.len())) else { return };
    let end = file[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(file.len(), |n| start + n);
    let value = std::str::from_utf8(&file[start..end]).ok().and_then(|digits| digits.parse::<u64>().ok());
    let near = |by: i64| value.map(|value| value.wrapping_add_signed(by).to_string());
    let lie = match random.below(4) {
        0 => near(1),
        1 => near(-1),
        2 => near(value.unwrap_or(0) as i64),
        _ => None,
    };
    let lie = lie.unwrap_or_else(|| random.one(&LIES).into());
    file.splice(start..end, lie.into_bytes());
}

fn lie(random: &mut Random) -> Vec<u8> {
    const LIES: [u64; 10] =
        [0, 1, 2, 1000, 0x7fff_ffff, 0xffff_ffff, 40_000_000_000, i64::MAX as u64, u64::MAX - 7, u64::MAX];
    let value = random.one(&LIES);
    match random.below(4) {
        0 => value.to_le_bytes().to_vec(),
        1 => value.to_be_bytes().to_vec(),
        2 => (value as u32).to_le_bytes().to_vec(),
        _ => (value as u32).to_be_bytes().to_vec(),
    }
}

/// Another binary number for four or eight bytes.
fn number(file: &mut Vec<u8>, random: &mut Random) {
    let (lie, at) = (lie(random), random.below(file.len()));
    let end = (at + lie.len()).min(file.len());
    file.splice(at..end, lie);
}

/// Another binary number at the begin of a stretch of base64, where headers stand.
fn base64_number(file: &mut Vec<u8>, random: &mut Random) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let is_digit = |byte: &u8| DIGITS.contains(byte) || *byte == b'=';
    let begins = |at: usize| is_digit(&file[at]) && (at == 0 || !is_digit(&file[at - 1]));
    let starts: Vec<usize> = (0..file.len()).filter(|&at| begins(at)).collect();
    let long = |&at: &usize| file[at..].iter().take(12).filter(|byte| is_digit(byte)).count() == 12;
    let starts: Vec<usize> = starts.into_iter().filter(long).collect();
    let Some(&start) = starts.get(random.below(starts.len())) else { return };
    let mut lie = lie(random);
    // Six or three bytes make eight or four whole digits.
    lie.truncate(lie.len() / 4 * 3);
    let text = lie.chunks(3).flat_map(|three| {
        let bits = three.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte));
        [18, 12, 6, 0].map(|shift| DIGITS[bits >> shift & 63])
    });
    let at = start + random.one(&[0, 0, 4, 8]);
    let text: Vec<u8> = text.collect();
    let end = (at + text.len()).min(file.len());
    file.splice(at..end, text);
}

/// Brackets or tags that open and never close.
fn nest(file: &mut Vec<u8>, random: &mut Random) {
    let opening = random.one(&[
        "(",
        "[",
        "{",
        "<a>",
        "<Piece>",
        "<DataArray>",
        "-",
        "\"",
        "!",
        "a.",
        "[[a]]\n",
        "$A\n",
    ]);
    let n = random.one(&[1, 2, 100, 8000]).min(LONGEST_FILE / opening.len());
    let at = random.below(file.len());
    file.splice(at..at, opening.repeat(n).into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs_of(plan: Plan) -> Vec<Vec<Vec<u8>>> {
        let seen = std::cell::RefCell::new(Vec::new());
        let read = |input: &[Vec<u8>]| {
            seen.borrow_mut().push(input.to_vec());
            true
        };
        let seeds = vec![vec![b"$Nodes\n12 7\n$End\n".to_vec()]];
        fuzz_reader(&Reader { name: "numbers", seeds, allowed: |_| usize::MAX, read: &read }, plan);
        // The first one is the seed.
        seen.into_inner().split_off(1)
    }

    #[test]
    fn the_number_of_an_input_repeats_it() {
        let from_zero = inputs_of(Plan { first: 0, time: None });
        assert_eq!(from_zero.len() as u64, N_INPUTS);
        let from_seven = inputs_of(Plan { first: 7, time: None });
        assert_eq!(from_zero[7..], from_seven[..from_zero.len() - 7]);
        assert_ne!(from_zero[..100], from_seven[..100]);
    }
}
