//! Commands that other programs run.

use std::fs;

use crate::common::{femtile, text};

#[test]
#[cfg(unix)]
fn a_command_of_another_program_is_passed_on_with_its_arguments_and_exit_code() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    // Beside a copy of the program, and on the PATH where the folder of the program has none.
    let program = folder.path().join("femtile");
    fs::copy(env!("CARGO_BIN_EXE_femtile"), &program).unwrap();
    let elsewhere = folder.path().join("bin");
    fs::create_dir(&elsewhere).unwrap();
    for (place, name, code) in [(folder.path(), "femtile-bench", 7), (&elsewhere, "femtile-research", 5)] {
        let path = place.join(name);
        fs::write(&path, format!("#!/bin/sh\necho {name} \"$@\"\nexit {code}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::join_paths([elsewhere.as_path(), "/bin".as_ref(), "/usr/bin".as_ref()]).unwrap();
    for (command, said, code) in [
        ("bench", "femtile-bench amg --nodes 9 --help", 7),
        ("spmv", "femtile-bench products amg --nodes 9 --help", 7),
        ("tune", "femtile-bench tune amg --nodes 9 --help", 7),
        ("reproduce", "femtile-research amg --nodes 9 --help", 5),
    ] {
        let mut program = std::process::Command::new(&program);
        let output =
            program.args([command, "amg", "--nodes", "9", "--help"]).env("PATH", &path).output().unwrap();
        assert_eq!(text(&output.stdout).trim_end(), said);
        assert_eq!(output.status.code(), Some(code));
    }
}

#[test]
fn a_program_that_is_not_there_is_named_with_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("femtile");
    fs::copy(env!("CARGO_BIN_EXE_femtile"), &program).unwrap();
    for (command, name) in [
        ("bench", "femtile-bench"),
        ("spmv", "femtile-bench"),
        ("tune", "femtile-bench"),
        ("reproduce", "femtile-research"),
    ] {
        let output = std::process::Command::new(&program).arg(command).env("PATH", "").output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("needs the program {name}")) && said.contains("cargo build"),
            "{said}"
        );
    }
    let help = femtile().arg("--help").output().unwrap();
    assert!(text(&help.stdout).contains("femtile-research"));
}
