//! Settings as text.

use femtile_solve::{DeviceChoice, SolveError, path_text};

#[test]
fn devices_have_the_names_that_case_files_give_them() {
    for (text, expected) in [
        ("auto", DeviceChoice::Auto),
        ("cpu", DeviceChoice::Cpu),
        ("cuda", DeviceChoice::Cuda(0)),
        ("cuda:0", DeviceChoice::Cuda(0)),
        ("cuda:12", DeviceChoice::Cuda(12)),
    ] {
        assert_eq!(text.parse::<DeviceChoice>().unwrap(), expected, "{text}");
    }
    for wrong in ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:a", "cuda 0", "cpu:0", " cpu"] {
        match wrong.parse::<DeviceChoice>().unwrap_err() {
            SolveError::Setting { path, message, .. } => {
                assert_eq!(path_text(&path), "solver.device");
                assert!(message.contains(&format!("`{wrong}`")) && message.contains("cuda:N"), "{message}");
            }
            other => panic!("{other}"),
        }
    }
}
