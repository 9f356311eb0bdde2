//! The commands of pages: looked up in the help, and run in a folder of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

use super::blocks::{Block, Piece};

/// Returns the commands of this project that stand in a block, without the prompt. Behind a prompt `./` is the folder of the
/// reader, not that of the project.
pub fn shown<'a>(block: &'a Block<'_>) -> impl Iterator<Item = &'a str> {
    let is_text = matches!(block.language, "" | "console" | "sh" | "bash" | "text");
    let lines = block.lines.iter().filter(move |_| is_text);
    let lines =
        lines.map(|line| line.strip_prefix("$ ").map_or((line.trim(), true), |rest| (rest.trim(), false)));
    let ours = |(line, is_of_project): &(&str, bool)| {
        ["femtile ", "cargo run ", "cargo xtask "].iter().any(|start| line.starts_with(start))
            || *is_of_project && line.starts_with("./")
    };
    lines.filter(ours).map(|(line, _)| line).filter(|line| !line.contains('…'))
}

/// Checks that the subcommand and the options of a command are in the help of the program, and that the task or file exists.
pub fn exists(root: &Path, command: &str, program: &dyn Fn() -> Command) -> Result<(), String> {
    let command = command.split(" #").next().unwrap_or_default().trim();
    if let Some(arguments) = command.strip_prefix("cargo xtask ") {
        return crate::knows(arguments).then_some(()).ok_or_else(|| "xtask has no such command".into());
    }
    if let Some(path) = command.strip_prefix("./") {
        return root.join(path).exists().then_some(()).ok_or_else(|| "there is no such file".into());
    }
    let Some(command) = of_program(command) else {
        return Err("only commands of the program are known".into());
    };
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let is_name =
        |word: &&&str| word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains(['.', '/']);
    let names = words.iter().take_while(is_name).take(2).copied();
    let help = said(program().args(names).arg("--help"))?;
    match words.iter().find(|word| word.starts_with("--") && !help.contains(**word)) {
        Some(option) => Err(format!("there is no option {option}")),
        None => Ok(()),
    }
}

/// Returns a command as the program takes it, without the cargo that would build the program.
fn of_program(command: &str) -> Option<String> {
    match command.strip_prefix("cargo run --release -- ") {
        Some(arguments) => Some(format!("femtile {arguments}")),
        None => command.starts_with("femtile ").then(|| command.to_owned()),
    }
}

/// The folder in which the commands of one page run, with the examples beside them.
pub struct Folder {
    path: PathBuf,
    programs: PathBuf,
    /// What the last command of the block before has written; none where it was not run.
    output: Option<String>,
    /// The seconds of each command.
    pub seconds: Vec<(f64, String)>,
}

impl Folder {
    /// Creates an empty folder for a page; `programs` is the folder of the programs.
    pub fn of(root: &Path, page: &Path, programs: &Path) -> io::Result<Self> {
        let name = page.strip_prefix(root).unwrap_or(page).to_string_lossy().replace('/', "-");
        let path = root.join("target/documents").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        for shared in ["examples", "papers", "bench", "crates", "docs"] {
            std::os::unix::fs::symlink(root.join(shared), path.join(shared))?;
        }
        Ok(Self { path, programs: programs.to_owned(), output: None, seconds: Vec::new() })
    }

    /// Runs what a piece shows; returns the commands that failed, and the lines that none has written, with the reason.
    pub fn run(&mut self, piece: &Piece<'_>) -> Vec<(String, String)> {
        let output = self.output.take();
        let block = match piece {
            Piece::Before(commands) => return self.shell(commands).err().into_iter().collect(),
            Piece::Code(block) => block,
        };
        if let Some(name) = block.file_name() {
            let text = block.lines.join("\n") + "\n";
            let written = fs::write(self.path.join(name), text);
            return written.err().map(|error| (name.to_owned(), error.to_string())).into_iter().collect();
        }
        // What writes into the home of a user is looked up alone.
        let is_run = |command: &String| block.not_run.is_none() && !command.contains("~/");
        let commands: Vec<String> = shown(block).filter_map(of_program).filter(is_run).collect();
        if commands.is_empty() {
            let quoted = block.lines.iter().filter(|_| block.language == "text" && block.not_run.is_none());
            return output.map_or_else(Vec::new, |output| not_said(quoted, &output));
        }
        let mut failed: Vec<_> = commands.iter().filter_map(|command| self.shell(command).err()).collect();
        // Behind a prompt stands a command, and below it what it writes.
        let is_command = |line: &&&str| line.starts_with("$ ");
        if let (1, Some(output)) = (block.lines.iter().filter(is_command).count(), &self.output) {
            let quoted = block.lines.iter().skip_while(|line| !is_command(line)).skip(1);
            failed.extend(not_said(quoted, output));
        }
        failed
    }

    /// Runs lines of a shell in the folder, the program of the tests before all others of that name.
    fn shell(&mut self, lines: &str) -> Result<(), (String, String)> {
        let begun = Instant::now();
        let mut paths = vec![self.programs.clone()];
        paths.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let mut command = Command::new("sh");
        command.args(["-ec", lines]).current_dir(&self.path);
        command.env("PATH", env::join_paths(paths).unwrap_or_default());
        // What `tune` and completions leave in the home of a user stays in this folder.
        command.env("HOME", &self.path).env_remove("XDG_CACHE_HOME").env_remove("XDG_CONFIG_HOME");
        let result = said(&mut command).map_err(|reason| (lines.to_owned(), reason));
        let result = result.map(|output| self.output = Some(output));
        self.seconds.push((begun.elapsed().as_secs_f64(), lines.to_owned()));
        result
    }
}

/// Returns the lines of a page that a command has not written, of those that do not depend on the machine.
fn not_said<'a>(quoted: impl Iterator<Item = &'a &'a str>, output: &str) -> Vec<(String, String)> {
    let of_machine = ["device ", "time "];
    let quoted = quoted.filter(|line| !line.trim().is_empty() && !line.contains('…'));
    let quoted = quoted.filter(|line| !of_machine.iter().any(|begin| line.starts_with(begin)));
    let is_missing = |line: &&&str| !output.lines().any(|said| agrees(line, said));
    let reason = || "the page quotes this line, and the command writes another one".to_owned();
    quoted.filter(is_missing).map(|line| (String::from(*line), reason())).collect()
}

/// Returns whether two lines have the same words, and numbers as on processors that round otherwise.
fn agrees(quoted: &str, said: &str) -> bool {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let number = |word: &str| word.trim_end_matches([',', ';', ':']).parse::<f64>().ok();
    let is_same = |(a, b): (&String, &String)| match (number(a), number(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= 0.05 * a.abs().max(b.abs()),
        _ => a == b,
    };
    let (quoted, said) = (words(quoted), words(said));
    quoted.len() == said.len() && quoted.iter().zip(&said).all(is_same)
}

fn said(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::pieces;
    use super::*;

    #[test]
    fn commands_are_found_in_blocks_of_text_alone() {
        let text = "run femtile solve\n\n    femtile solve a.toml   # comment\n\n```toml\n./test\n```\n```\n./test\n$ ./femtile\n```\n./no\n\n    [mesh]\n";
        let pieces = pieces(text);
        let commands: Vec<&str> = pieces.iter().filter_map(Piece::block).flat_map(shown).collect();
        assert_eq!(commands, ["femtile solve a.toml   # comment", "./test"]);
    }

    #[test]
    fn quoted_lines_are_those_of_the_command_but_for_roundings_and_the_machine() {
        let output =
            "mesh      12 nodes\nsolve     converged after 14 iterations, r = 9.82e-11\ntime      1 s\n";
        let missing = |line: &str| not_said([line].iter(), output).len();
        for line in ["mesh  12 nodes", "solve converged after 14 iterations, r = 9.80e-11", "time 2 s", ""] {
            assert_eq!(missing(line), 0, "{line}");
        }
        for line in ["mesh 13 nodes", "solve converged after 595 iterations, r = 9.82e-11", "target 1.0"] {
            assert_eq!(missing(line), 1, "{line}");
        }
    }

    #[test]
    fn output_is_compared_with_the_command_above_it() {
        let root = env::temp_dir().join(format!("femtile-quoted-{}", std::process::id()));
        let mut folder = Folder::of(&root, &root.join("docs/page.md"), Path::new("/nowhere")).unwrap();
        assert_eq!(folder.run(&Piece::Before("echo mesh 12 nodes")), []);
        let quoted = pieces("```text\nmesh 12 nodes\nmesh 13 nodes\n```\n");
        assert_eq!(folder.run(&quoted[0]).len(), 1);
        // Another block lies between.
        assert_eq!(folder.run(&quoted[0]), []);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn files_and_commands_of_a_page_share_a_folder() {
        let root = env::temp_dir().join(format!("femtile-documents-{}", std::process::id()));
        let mut folder = Folder::of(&root, &root.join("docs/page.md"), Path::new("/nowhere")).unwrap();
        for piece in pieces("```toml\n# a.toml\nb = 1\n```\n<!-- before: cp a.toml c.toml -->\n") {
            assert_eq!(folder.run(&piece), []);
        }
        assert_eq!(fs::read_to_string(folder.path.join("c.toml")).unwrap(), "# a.toml\nb = 1\n");
        assert_eq!(folder.run(&Piece::Before("false")).len(), 1);
        fs::remove_dir_all(root).unwrap();
    }
}
