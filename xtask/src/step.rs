//! Runs one command of the checks and keeps what it said.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The checks so far: what failed and what was skipped.
#[derive(Default)]
pub struct Checks {
    pub passed: usize,
    pub failed: Vec<String>,
    pub skipped: Vec<String>,
}

impl Checks {
    /// Runs `cargo` with `arguments` and extra environment; its lines that begin with `SKIPPED:` are kept.
    pub fn cargo(&mut self, name: &str, arguments: &[&str], environment: &[(&str, &str)]) {
        println!("\n== {name}: cargo {}", arguments.join(" "));
        let begun = Instant::now();
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null());
        let ok = self.run(command);
        println!(
            "== {name}: {} in {:.1} s",
            if ok { "passed" } else { "FAILED" },
            begun.elapsed().as_secs_f64()
        );
        self.note(name, ok);
    }

    /// Counts a check.
    pub fn note(&mut self, name: &str, ok: bool) {
        if ok {
            self.passed += 1;
        } else {
            self.failed.push(name.into());
        }
    }

    /// Notes that something was not checked, and why.
    pub fn skip(&mut self, what: &str, why: &str) {
        self.skipped.push(format!("{what}: {why}"));
    }

    fn run(&mut self, mut command: Command) -> bool {
        let (reader, writer) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => {
                eprintln!("no pipe: {error}");
                return false;
            }
        };
        let errors = match writer.try_clone() {
            Ok(errors) => errors,
            Err(error) => {
                eprintln!("no pipe: {error}");
                return false;
            }
        };
        let child = command.stdout(writer).stderr(errors).spawn();
        // The command holds the writing ends; while it lives the reader would never see the end.
        drop(command);
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                eprintln!("cannot start: {error}");
                return false;
            }
        };
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            if let Some(skip) = line.trim_start().strip_prefix("SKIPPED:") {
                let skip = skip.trim().to_string();
                if !self.skipped.contains(&skip) {
                    self.skipped.push(skip);
                }
            }
        }
        child.wait().is_ok_and(|status| status.success())
    }

    /// Prints the outcome and says whether nothing failed.
    pub fn finish(self) -> bool {
        println!("\n== skipped");
        if self.skipped.is_empty() {
            println!("nothing");
        }
        for skip in &self.skipped {
            println!("- {skip}");
        }
        for name in &self.failed {
            println!("FAILED: {name}");
        }
        println!("checks: {} passed, {} failed", self.passed, self.failed.len());
        self.failed.is_empty()
    }
}
