//! Runs one command of the checks and keeps what it said.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The checks so far: what failed and what was skipped.
#[derive(Default)]
pub struct Checks {
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
    /// Stands before each line of checks that run beside others.
    label: &'static str,
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the command for a program of this workspace that the tests have built; `cargo run` would rebuild much of the
/// workspace with the features of one package alone.
pub fn built(root: &Path, name: &str) -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Command::new(target.join("debug").join(name))
}

impl Checks {
    /// Begins checks that run beside others, whose lines have a label.
    pub fn beside(label: &'static str) -> Self {
        Self { label, ..Self::default() }
    }

    /// Takes over the outcome of checks that ran beside these.
    pub fn join(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        other.skipped.into_iter().for_each(|skip| self.note_skip(skip));
    }

    fn say(&self, line: &str) {
        println!("{}{line}", self.label);
    }

    /// Runs `cargo` with `arguments` and extra environment; what its lines say after `SKIPPED:` is kept.
    pub fn cargo(&mut self, name: &str, arguments: &[&str], environment: &[(&str, &str)]) {
        self.step(name, |checks| {
            let settings =
                environment.iter().map(|(key, value)| format!("{key}={value:?} ")).collect::<String>();
            println!("{settings}cargo {}", arguments.join(" "));
            let mut command = cargo();
            command.args(arguments).envs(environment.iter().copied());
            checks.command(command)
        });
    }

    /// Runs `preparation`, then `command`, which fails and is ended with all its processes when it takes longer than a limit.
    pub fn run_limited(
        &mut self,
        name: &str,
        preparation: Command,
        command: Command,
        (limit, advice): (Duration, &str),
    ) {
        self.step(name, |checks| {
            checks.say(&format!("{command:?}"));
            checks.command(preparation) && checks.command_within(command, limit, advice)
        });
    }

    fn command_within(&mut self, mut command: Command, limit: Duration, advice: &str) -> bool {
        let name = command.get_program().to_string_lossy().into_owned();
        // A group of its own, so that what it starts ends with it.
        command.process_group(0);
        let (done, is_done) = mpsc::channel::<()>();
        let is_late = Arc::new(AtomicBool::new(false));
        let mut watch = None;
        let watching = |group: u32| {
            let is_late = is_late.clone();
            watch = Some(std::thread::spawn(move || {
                if is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                    is_late.store(true, Ordering::SeqCst);
                    end_group(group);
                }
            }));
        };
        let result = self.run(command, watching);
        drop(done);
        watch.into_iter().for_each(|thread| drop(thread.join()));
        if is_late.load(Ordering::SeqCst) {
            self.say(&format!("ended: longer than the limit of {} s; {advice}", limit.as_secs()));
            return false;
        }
        result.unwrap_or_else(|error| {
            self.say(&format!("cannot run {name}: {error}"));
            false
        })
    }

    /// Runs a program; returns whether it went well.
    pub fn program(&mut self, name: &str, command: Command) -> bool {
        let mut ok = false;
        self.step(name, |checks| {
            println!("{command:?}");
            ok = checks.command(command);
            ok
        });
        ok
    }

    /// Runs a program that the tests have built; what its lines say after `SKIPPED:` is kept.
    pub fn built(&mut self, name: &str, root: &Path, program: &str) {
        self.step(name, |checks| checks.command(built(root, program)));
    }

    fn command(&mut self, command: Command) -> bool {
        let name = command.get_program().to_string_lossy().into_owned();
        self.run(command, |_| ()).unwrap_or_else(|error| {
            println!("cannot run {name}: {error}");
            false
        })
    }

    /// Runs one check between a headline and its time.
    pub fn step(&mut self, name: &str, check: impl FnOnce(&mut Self) -> bool) {
        println!();
        self.say(&format!("== {name}"));
        let begun = Instant::now();
        let ok = check(self);
        let outcome = if ok { "passed" } else { "FAILED" };
        self.say(&format!("== {name}: {outcome} in {:.1} s", begun.elapsed().as_secs_f64()));
        if ok {
            self.passed += 1;
        } else {
            self.failed.push(name.into());
        }
    }

    /// Notes that something was not checked, and why.
    pub fn skip(&mut self, what: &str, why: &str) {
        self.note_skip(format!("{what}: {why}"));
    }

    fn note_skip(&mut self, skip: String) {
        if !self.skipped.contains(&skip) {
            self.skipped.push(skip);
        }
    }

    /// Runs a command and prints its lines; `started` receives its process number.
    fn run(&mut self, mut command: Command, started: impl FnOnce(u32)) -> io::Result<bool> {
        let (reader, writer) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let child = command.spawn();
        // The command holds the writing ends; while it lives the reader would never see the end.
        drop(command);
        let mut child = child?;
        started(child.id());
        let mut passing = Passing::default();
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if let Some((_, skip)) = line.split_once("SKIPPED: ") {
                self.note_skip(skip.trim().into());
            }
            if !passing.hides(&line) {
                self.say(&line);
            }
        }
        Ok(child.wait()?.success())
    }

    /// Prints the outcome and says whether nothing failed.
    pub fn finish(self) -> bool {
        println!("\n== skipped{}", if self.skipped.is_empty() { ": nothing" } else { "" });
        for skip in &self.skipped {
            println!("- {skip}");
        }
        println!();
        for name in &self.failed {
            println!("FAILED: {name}");
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped.len());
        self.failed.is_empty()
    }
}

/// Kills the processes of a group.
fn end_group(group: u32) {
    let ended = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status();
    if !ended.is_ok_and(|status| status.success()) {
        println!("the processes of group {group} could not be ended");
    }
}

/// Leaves out what nextest repeats of tests that passed; it is asked for only to find what they skipped.
#[derive(Default)]
struct Passing {
    inside: bool,
}

impl Passing {
    fn hides(&mut self, line: &str) -> bool {
        if line.trim_start().starts_with("PASS [") {
            self.inside = true;
        } else if !(line.is_empty() || line.starts_with("    ") || line.starts_with("  std"))
            || line.starts_with("        ") && line.contains(" [") && line.contains("s] ")
        {
            self.inside = false;
        }
        self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_past_its_limit_fails_and_its_children_end() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let mut checks = Checks::default();
        // The reading end would wait for the inner shell as long as it lives.
        let endless = shell("sh -c 'while :; do sleep 1; done' & wait");
        assert!(!checks.command_within(endless, Duration::from_millis(50), "make it shorter"));
        assert!(checks.command_within(shell("true"), Duration::from_secs(600), ""));
        assert!(!checks.command_within(shell("false"), Duration::from_secs(600), ""));
    }

    #[test]
    fn output_of_passing_tests_is_hidden_and_that_of_failing_ones_shown() {
        let mut passing = Passing::default();
        let lines = [
            ("     Summary [   0.006s] 2 tests run", false),
            ("        PASS [   0.006s] (1/2) crate a", true),
            ("  stdout ───", true),
            ("", true),
            ("    running 1 test", true),
            ("        FAIL [   0.006s] (2/2) crate b", false),
            ("    assertion failed", false),
            ("error: test run failed", false),
        ];
        for (line, hidden) in lines {
            assert_eq!(passing.hides(line), hidden, "{line}");
        }
    }
}
