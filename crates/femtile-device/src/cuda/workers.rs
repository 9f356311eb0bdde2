//! Processes that compile programs beside this one.
//!
//! A lock of NVRTC lets only one thread of a process parse at a time, some 15 to 20 ms per program. So
//! threads alone compile many small programs hardly faster on sixteen cores than on six.
//!
//! All but three of the threads that compile therefore have a process each, which is the program `femtile` itself.
//! Copies of the library in namespaces of the dynamic linker are no substitute: they corrupt the heap of threads
//! that use both C libraries.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::compiler::{Binary, Compiler};
use super::{Header, Program, Specialisation};
use crate::DeviceError;

/// Threads that compile in this process before others start a process each.
const MOST_HERE: usize = 3;
/// Processes at a time; each takes some 25 MB.
const MOST_PROCESSES: usize = 15;
/// The longest text of a request or an answer, against damaged lengths.
const LONGEST: u64 = 1 << 28;

static COMMAND: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();
static N_PROCESSES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The process of this thread, which ends with it.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Names a program and its arguments that call [`serve_compiler`] with their standard input and output: threads that compile
/// ahead start it. The first call counts.
pub fn set_compile_command(program: PathBuf, arguments: Vec<OsString>) {
    let _ = COMMAND.set((program, arguments));
}

/// Compiles what it reads and writes the results, until the input ends.
///
/// # Errors
/// Those of reading and writing.
pub fn serve_compiler(input: impl Read, output: impl Write) -> io::Result<()> {
    let compiler = super::nvrtc().map_err(io::Error::other)?;
    serve(&*compiler, &mut BufReader::new(input), &mut BufWriter::new(output))
}

fn serve(compiler: &dyn Compiler, input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    while let Some(request) = Request::read(input)? {
        let is_same = request.version == compiler.version();
        let made = is_same.then(|| compiler.compile(&request.program(), request.architecture).ok()).flatten();
        write_text(output, &[u8::from(made.is_some())])?;
        if let Some(Binary { code, log }) = made {
            write_text(output, log.as_bytes())?;
            write_text(output, &code)?;
        }
        output.flush()?;
    }
    Ok(())
}

/// A compiler that leaves some of its work to processes, if [`set_compile_command`] names one.
#[derive(Debug)]
pub(super) struct Workers {
    inner: Arc<dyn Compiler>,
    command: Option<&'static (PathBuf, Vec<OsString>)>,
    /// Compilations in this process now.
    n_here: AtomicUsize,
}

impl Workers {
    pub(super) fn new(inner: Arc<dyn Compiler>) -> Self {
        Self { inner, command: COMMAND.get(), n_here: AtomicUsize::new(0) }
    }

    fn here(&self, program: &Specialisation, architecture: (u32, u32)) -> Result<Binary, DeviceError> {
        self.n_here.fetch_add(1, Ordering::Relaxed);
        let made = self.inner.compile(program, architecture);
        self.n_here.fetch_sub(1, Ordering::Relaxed);
        made
    }

    /// Returns the output of the process of this thread; none if there is no process, or it fails.
    fn elsewhere(&self, program: &Specialisation, architecture: (u32, u32)) -> Option<Binary> {
        let command = self.command?;
        WORKER.with_borrow_mut(|worker| {
            if worker.is_none() {
                *worker = Worker::start(command);
            }
            let request = Request::new(self.inner.version(), program, architecture);
            let answer = worker.as_mut()?.ask(&request);
            if answer.is_err() {
                *worker = None;
            }
            answer.ok().flatten()
        })
    }
}

impl Compiler for Workers {
    fn version(&self) -> String {
        self.inner.version()
    }

    /// A program that a process does not compile is compiled here, which gives the error.
    fn compile(&self, program: &Specialisation, architecture: (u32, u32)) -> Result<Binary, DeviceError> {
        let is_free = self.n_here.load(Ordering::Relaxed) < MOST_HERE;
        let elsewhere = if is_free { None } else { self.elsewhere(program, architecture) };
        elsewhere.map_or_else(|| self.here(program, architecture), Ok)
    }
}

/// A process that compiles.
#[derive(Debug)]
struct Worker {
    child: Child,
    /// Until it is told to end.
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start((program, arguments): &(PathBuf, Vec<OsString>)) -> Option<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let one_more = |n: usize| (n < MOST_PROCESSES).then_some(n + 1);
        N_PROCESSES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        let started = command.spawn().ok().and_then(|mut child| {
            let (input, output) = child.stdin.take().zip(child.stdout.take())?;
            Some(Self { child, input: Some(BufWriter::new(input)), output: BufReader::new(output) })
        });
        if started.is_none() {
            N_PROCESSES.fetch_sub(1, Ordering::Relaxed);
        }
        started
    }

    fn ask(&mut self, request: &Request) -> io::Result<Option<Binary>> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        request.write(input)?;
        input.flush()?;
        let mut next = || read_text(&mut self.output)?.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof));
        match next()?.as_slice() {
            [0] => return Ok(None),
            [1] => {}
            _ => return Err(io::Error::other("no answer")),
        }
        let log = String::from_utf8(next()?).map_err(io::Error::other)?;
        Ok(Some(Binary { log, code: next()? }))
    }
}

impl Drop for Worker {
    /// The end of its input ends the process.
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
        N_PROCESSES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A program to be compiled, as it is sent.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    version: String,
    architecture: (u32, u32),
    /// Name and text, then those of the headers.
    texts: Vec<(String, String)>,
    defines: Vec<(String, String)>,
}

impl Request {
    fn new(version: String, program: &Specialisation, architecture: (u32, u32)) -> Self {
        let own = (program.program().name.into(), program.program().source.into());
        // The first header is that of all programs.
        let headers = program.headers().skip(1).map(|(name, text)| (name.into(), text.into()));
        let defines = program.defines().iter().map(|(name, value)| ((*name).into(), value.clone()));
        let texts = std::iter::once(own).chain(headers).collect();
        Self { version, architecture, texts, defines: defines.collect() }
    }

    /// Returns the program; its texts stay in memory until the process ends.
    fn program(&self) -> Specialisation {
        let keep = |text: &str| -> &'static str { Box::leak(text.into()) };
        let headers =
            self.texts.iter().skip(1).map(|(name, text)| Header { name: keep(name), text: keep(text) });
        let (name, source) = self.texts.first().map_or(("", ""), |(name, text)| (keep(name), keep(text)));
        let program = Program { name, source, headers: Box::leak(headers.collect()) };
        let defines = self.defines.iter().map(|(name, value)| (keep(name), value.clone())).collect();
        Specialisation::with_defines(Box::leak(Box::new(program)), defines)
    }

    fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let (major, minor) = self.architecture;
        write_text(output, self.version.as_bytes())?;
        let counts = [major, minor, self.texts.len() as u32, self.defines.len() as u32];
        counts.iter().try_for_each(|count| output.write_all(&count.to_le_bytes()))?;
        for (name, text) in self.texts.iter().chain(&self.defines) {
            write_text(output, name.as_bytes())?;
            write_text(output, text.as_bytes())?;
        }
        Ok(())
    }

    /// Reads a request; none at the end of the input.
    fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(version) = read_text(input)? else { return Ok(None) };
        let mut numbers = [[0; 4]; 4];
        numbers.iter_mut().try_for_each(|number| input.read_exact(number))?;
        let [major, minor, n_texts, n_defines] = numbers.map(u32::from_le_bytes);
        let mut string = || {
            let text = read_text(input)?.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
            String::from_utf8(text).map_err(io::Error::other)
        };
        let mut pairs = |n: u32| (0..n).map(|_| Ok((string()?, string()?))).collect::<io::Result<Vec<_>>>();
        let (texts, defines) = (pairs(n_texts)?, pairs(n_defines)?);
        let version = String::from_utf8(version).map_err(io::Error::other)?;
        Ok(Some(Self { version, architecture: (major, minor), texts, defines }))
    }
}

/// Writes the length of a text and the text.
fn write_text(output: &mut impl Write, text: &[u8]) -> io::Result<()> {
    output.write_all(&(text.len() as u64).to_le_bytes())?;
    output.write_all(text)
}

/// Reads a text; none if the input ends before it.
fn read_text(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    let mut n = 0;
    while n < length.len() {
        match input.read(&mut length[n..])? {
            0 if n == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => n += read,
        }
    }
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other("a length beyond any text"));
    }
    let mut text = Vec::new();
    input.take(length).read_to_end(&mut text)?;
    match text.len() as u64 == length {
        true => Ok(Some(text)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PROGRAM: Program = Program {
        name: "sample",
        source: "// a source",
        headers: &[Header { name: "own.cuh", text: "// own" }],
    };

    /// Makes the texts of a program, and refuses those with `BAD` defined.
    #[derive(Debug)]
    struct Texts;

    impl Compiler for Texts {
        fn version(&self) -> String {
            "texts 1".into()
        }

        fn compile(&self, program: &Specialisation, architecture: (u32, u32)) -> Result<Binary, DeviceError> {
            let message = format!("{program} for {architecture:?}");
            if program.defines().iter().any(|(name, _)| *name == "BAD") {
                return Err(DeviceError::Compile { program: program.to_string(), message });
            }
            let texts: Vec<_> = program.headers().chain([("", program.program().source)]).collect();
            Ok(Binary { code: format!("{texts:?}").into(), log: message })
        }
    }

    fn programs() -> Vec<Specialisation> {
        let plain = PROGRAM.of::<f32>().define("N", 3);
        vec![plain.clone().header("made.cuh", "// made"), plain.clone().define("BAD", 1), plain]
    }

    #[test]
    fn a_process_makes_the_same_binary_from_what_it_is_sent() {
        let mut sent = Vec::new();
        for program in programs() {
            Request::new(Texts.version(), &program, (9, 0)).write(&mut sent).unwrap();
        }
        Request::new("texts 2".into(), &programs()[0], (9, 0)).write(&mut sent).unwrap();
        let mut answers = Vec::new();
        serve(&Texts, &mut sent.as_slice(), &mut answers).unwrap();
        let mut expected = Vec::new();
        for program in programs() {
            match Texts.compile(&program, (9, 0)) {
                Ok(Binary { code, log }) => {
                    [&[1], log.as_bytes(), &code]
                        .iter()
                        .for_each(|text| write_text(&mut expected, text).unwrap());
                }
                Err(_) => write_text(&mut expected, &[0]).unwrap(),
            }
        }
        write_text(&mut expected, &[0]).unwrap();
        assert_eq!(answers, expected);
    }

    #[test]
    fn a_request_that_is_cut_off_is_an_error_and_none_is_the_end() {
        let mut sent = Vec::new();
        let request = Request::new(Texts.version(), &programs()[0], (8, 6));
        request.write(&mut sent).unwrap();
        assert_eq!(Request::read(&mut sent.as_slice()).unwrap(), Some(request));
        assert_eq!(Request::read(&mut [].as_slice()).unwrap(), None);
        for n in 1..sent.len() {
            assert!(Request::read(&mut &sent[..n]).is_err(), "{n} of {} bytes", sent.len());
        }
        assert!(Request::read(&mut [255; 16].as_slice()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_a_process_does_not_make_is_made_here() {
        // One that ends at once, one that answers nothing of use, and none at all.
        for command in ["true", "cat", "/there/is/none"] {
            let command: &'static _ = Box::leak(Box::new((PathBuf::from(command), Vec::new())));
            let workers = Workers {
                inner: Arc::new(Texts),
                command: Some(command),
                n_here: AtomicUsize::new(MOST_HERE),
            };
            let program = &programs()[2];
            assert_eq!(workers.compile(program, (9, 0)).unwrap(), Texts.compile(program, (9, 0)).unwrap());
            assert_eq!(workers.n_here.load(Ordering::Relaxed), MOST_HERE);
            WORKER.take();
        }
    }

    #[cfg(unix)]
    #[test]
    fn processes_are_no_more_than_there_may_be() {
        let command = (PathBuf::from("cat"), Vec::new());
        let started: Vec<_> = std::iter::from_fn(|| Worker::start(&command)).take(100).collect();
        assert!(!started.is_empty() && started.len() <= MOST_PROCESSES, "{}", started.len());
        drop(started);
        assert!(Worker::start(&command).is_some());
    }
}
