//! The folder of results and the files in it.
//!
//! Files of one run are staged in a folder and moved together, the report with their checksums last. A page for a
//! browser is made after that, and the report is written again with its sum.

use std::path::Path;

use femtile_device::part;
use femtile_linalg::krylov::Stop;
use femtile_mesh::MeshError;
use femtile_mesh::io::vtu::{Extent, Piece, Pieces, WriteOptions};
use femtile_mesh::io::{FileSum, Staging, write_atomically};
use femtile_solve::memory::peak_bytes;
use femtile_solve::{Fields, Solution, Stages};

use crate::drawn_field::{DrawnField, Exhibit};
use crate::file::{EquationKind, Functional, OutputSection, VtuOutput};
use crate::file_names::{GRID_SOLUTION, MATRIX, PAGE, PICTURE, PLOT, REPORT, VTKHDF, of_line, of_solution};
use crate::functional::SampledLine;
use crate::page::page;
use crate::{Case, CaseError, Report, pieces, plot, verify, vtkhdf};

/// Files of an earlier run that a warning names.
const MOST_NAMED: usize = 4;

/// Creates the folder of results and checks that all files can be written there.
pub(crate) fn prepare(case: &Case) -> Result<(), CaseError> {
    if !case.embedding.writes_files {
        return Ok(());
    }
    let folder = &case.file.output.directory;
    std::fs::create_dir_all(folder).map_err(|source| CaseError::Io {
        path: folder.clone(),
        action: "write results to",
        source,
    })?;
    let names = [names(case), pieces::possible_names(case)].concat();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(Staging::new(folder)?.check(&names)?)
}

/// Returns the names of the files that a case writes, the report last.
fn names(case: &Case) -> Vec<String> {
    let kind = case.file.equation.kind;
    let is_in_time = case.is_in_time();
    let is_on_grid = kind == EquationKind::Diffusion && !case.is_transient_on_mesh();
    let output = &case.file.output;
    let solution = match output.vtu {
        VtuOutput::Whole(false) => None,
        _ if is_on_grid => Some(GRID_SOLUTION),
        vtu => Some(of_solution(vtu)),
    };
    let vtkhdf = output.vtkhdf.then_some(VTKHDF);
    let plot = (output.plot && !is_in_time).then_some(PLOT);
    let picture = output.picture.is_drawn().then_some(PICTURE);
    let page = output.report.then_some(PAGE);
    let lines = output.functionals.iter().filter_map(|functional| match functional {
        Functional::Along { name, .. } => Some(of_line(name)),
        _ => None,
    });
    let matrix = (!output.matrix.is_empty()).then_some(MATRIX);
    let names = solution
        .into_iter()
        .chain(vtkhdf)
        .chain(matrix)
        .chain(plot)
        .chain(picture)
        .chain(page)
        .map(String::from)
        .chain(lines.flatten());
    names.chain([REPORT.into()]).collect()
}

/// Options of the files of a run: a solution or, without a sum, a frame.
pub(crate) fn vtu_options(case: &Case, sum: bool) -> WriteOptions<'static> {
    let OutputSection { compress, vtu, .. } = case.file.output;
    let extent = if vtu.is_surface() { Extent::Surface } else { Extent::Whole };
    WriteOptions { compression: compress.into(), extent, sum, ..WriteOptions::default() }
}

/// The files of a solution that belong to its equation.
pub(crate) struct Results<'a, W> {
    /// Writes the solution into a folder; returns the sum of its file if it was taken.
    pub solution: W,
    pub lines: &'a [SampledLine],
    /// The files of the pieces of the solution.
    pub pieces: Vec<String>,
}

impl<W> Results<'_, W> {
    /// The files of a solution without pieces.
    pub fn of(solution: W, lines: &[SampledLine]) -> Results<'_, W> {
        Results { solution, lines, pieces: Vec::new() }
    }
}

/// Writes all files of a run, which replace those of an earlier run together. `begun` may hold files already.
///
/// An interrupted solve does not replace the results of a finished one: nothing is written then, with a warning.
pub(crate) fn write_results(
    case: &Case,
    (mut report, exhibit): (Report, Option<Exhibit>),
    stages: &mut Stages<'_>,
    begun: Option<Staging>,
    results: Results<'_, impl FnOnce(&Path) -> Result<Option<FileSum>, CaseError>>,
) -> Result<Report, CaseError> {
    let Results { solution, lines, pieces } = results;
    if !case.embedding.writes_files {
        report.timings_s = stages.timings().into();
        report.memory_bytes.peak = peak_bytes();
        stages.go_on()?;
        pieces::of_other_ranks(case, solution)?;
        stages.finish();
        return Ok(report);
    }
    let (folder, names) = (&case.file.output.directory, names(case));
    let mut names: Vec<&str> = pieces.iter().chain(&names).map(String::as_str).collect();
    // An interrupted solve has none.
    names.retain(|name| *name != MATRIX || report.matrix.is_some());
    // Frames and traces of a run in time have replaced earlier ones already.
    let is_new = report.files.is_empty();
    if report.solve.stop == Stop::Interrupted && is_new && holds_finished_results(folder) {
        report.warnings.push(format!(
            "nothing was written: {} holds results of a solve that was not interrupted; to keep what an interrupted one \
             has reached, give it another folder",
            folder.display()
        ));
        pieces::tell_other_ranks(case, None)?;
        stages.finish();
        return Ok(report);
    }
    let staging = begun.map_or_else(|| Staging::new(folder), Ok)?;
    pieces::tell_other_ranks(case, Some(&staging))?;
    let sum = part("results", || solution(staging.folder()))?;
    lines.iter().try_for_each(|line| line.write(&staging))?;
    report.matrix.iter().try_for_each(|matrix| matrix.write(&staging))?;
    pieces::wait_for_all(case)?;
    if names.contains(&PLOT) {
        let solver = &case.file.solver;
        let tolerance = match report.solve.nonlinear {
            Some(_) => solver.nonlinear_tolerance,
            None => solver.tolerance,
        };
        part("plot", || plot::save_residual_plot(&staging.path(PLOT), &report.solve.residuals, tolerance))?;
    }
    if let Some(Exhibit { frames, data, .. }) = exhibit.as_ref().filter(|_| case.file.output.vtkhdf) {
        part("file of frames", || vtkhdf::write(&staging.path(VTKHDF), frames, data))?;
    }
    let exhibit = exhibit.filter(|_| case.is_shown());
    let shown =
        exhibit.map(|exhibit| part("picture", || draw(case, exhibit, &staging, &mut report))).transpose()?;
    for &name in names.iter().filter(|name| **name != REPORT && **name != PAGE) {
        let sum = sum.filter(|_| name == of_solution(case.file.output.vtu));
        let sum = sum.map_or_else(|| part("sum of a file", || FileSum::of(&staging.path(name))), Ok)?;
        report.files.insert(name.into(), sum.into());
    }
    let (page, of_solve): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| **name == PAGE);
    let gone = |folder: &Path| {
        let mut gone = pieces::earlier(folder, &pieces);
        gone.extend(page.iter().map(|name| String::from(*name)));
        gone
    };
    let replaced = gone(folder);
    report.warnings.extend(of_earlier_run(folder, |name| {
        names.contains(&name) || report.files.contains_key(name) || replaced.iter().any(|gone| gone == name)
    }));
    report.timings_s = stages.timings().into();
    report.memory_bytes.peak = peak_bytes();
    write_report(&staging.path(REPORT), &report)?;
    stages.go_on()?;
    staging.commit(&of_solve, gone)?;
    // With the results in place: the page takes memory that may not be there.
    if let Some(shown) = shown.filter(|_| case.has_page()) {
        part("page", || write_page(case, shown, folder, &mut report))?;
    }
    stages.finish();
    Ok(report)
}

/// Returns a warning if files of an earlier run, which are not known, lie in a folder of results.
fn of_earlier_run(folder: &Path, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let mut names = verify::results_in(folder).ok()?;
    names.retain(|name| !is_known(name));
    let n_more = names.len().saturating_sub(MOST_NAMED);
    let more = if n_more > 0 { format!(" and {n_more} others") } else { String::new() };
    names.truncate(MOST_NAMED);
    (!names.is_empty()).then(|| {
        format!(
            "{} has files of an earlier run beside the results: {}{more}; remove them, or choose another folder for the \
             results",
            folder.display(),
            names.join(", ")
        )
    })
}

/// Writes a solution on a mesh into a folder if its case wants it; returns the sum of the file.
pub(crate) fn write_solution(
    case: &Case,
    folder: &Path,
    (solution, fields): (&Solution<'_>, &Fields),
) -> Result<Option<FileSum>, CaseError> {
    let vtu = case.file.output.vtu;
    if !vtu.is_written() {
        return Ok(None);
    }
    let (path, options) = (folder.join(of_solution(vtu)), vtu_options(case, true));
    if !vtu.has_pieces() {
        return Ok(solution.write_vtu_with(path, fields, options)?);
    }
    if let Some(of_ranks) = solution.ranks().filter(|_| solution.is_distributed()) {
        let piece = Piece { rank: pieces::own(case).unwrap_or(0), n_ranks: of_ranks.n_ranks };
        let options = WriteOptions { extent: Extent::Piece(piece), ..options };
        return Ok(solution.write_vtu_with(path, fields, options)?);
    }
    let partition = pieces::partition(solution);
    let extent = Extent::Pieces(Pieces { partition: &partition, only: pieces::own(case) });
    Ok(solution.write_vtu_with(path, fields, WriteOptions { extent, ..options })?)
}

/// The solution that is shown, with its picture.
type Drawn = (Exhibit, DrawnField, Vec<u8>);

/// Draws the solution, and writes the picture if the case and the program ask for it.
fn draw(case: &Case, exhibit: Exhibit, staging: &Staging, report: &mut Report) -> Result<Drawn, CaseError> {
    let time = report.time.as_ref().map(|time| time.reached);
    let (shown, warning) = DrawnField::of(case, &exhibit.data)?;
    report.warnings.extend(warning);
    let png = shown.picture(case, time)?;
    let in_folder = case.file.output.picture.is_drawn().then(|| staging.path(PICTURE));
    write_to(in_folder.as_deref(), case.embedding.picture.as_deref(), &png)?;
    Ok((exhibit, shown, png))
}

/// Writes the page of a run if the case and the program ask for it, and the report with its sum.
fn write_page(
    case: &Case,
    (exhibit, shown, png): Drawn,
    folder: &Path,
    report: &mut Report,
) -> Result<(), CaseError> {
    let html = page(case, report, exhibit, (&shown, png));
    let staging = case.file.output.report.then(|| Staging::new(folder)).transpose()?;
    let in_folder = staging.as_ref().map(|staging| staging.path(PAGE));
    write_to(in_folder.as_deref(), case.embedding.report.as_deref(), html.as_bytes())?;
    if let Some(staging) = staging {
        report.files.insert(PAGE.into(), FileSum::of(&staging.path(PAGE))?.into());
        write_report(&staging.path(REPORT), report)?;
        staging.commit(&[PAGE, REPORT], |_| Vec::new())?;
    }
    Ok(())
}

/// Writes a file into the folder of results and to where the program wants it.
fn write_to(in_folder: Option<&Path>, elsewhere: Option<&Path>, bytes: &[u8]) -> Result<(), CaseError> {
    let targets = in_folder.into_iter().chain(elsewhere);
    targets.into_iter().try_for_each(|path| Ok(write_atomically(path, |out| out.write_all(bytes))?))
}

/// Returns `true` if the folder has the report of a run that was not interrupted.
fn holds_finished_results(folder: &Path) -> bool {
    let text = std::fs::read(folder.join(REPORT)).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    report.pointer("/solve/stop").is_some_and(|stop| stop != Stop::Interrupted.name())
}

/// Writes a report as JSON; the file appears only when it is complete.
///
/// # Errors
/// [`MeshError::Io`] with the path.
pub fn write_report(path: &Path, report: &Report) -> Result<(), MeshError> {
    write_atomically(path, |out| writeln!(out, "{}", report.to_json()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Misfit, Progress, Silent, Stage, run, verify};

    /// Asks for a stop when a stage begins.
    struct StopIn(Stage, bool);

    impl Progress for StopIn {
        fn begin(&mut self, stage: Stage) {
            self.1 |= stage == self.0;
        }

        fn is_interrupted(&self) -> bool {
            self.1
        }
    }

    fn case(folder: &Path, more: &str) -> Case {
        let text = format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [4, 5]{more} }}\n[equation]\nlambda = 1\nsource = \"x\"\n"
        );
        let path = folder.join("case.toml");
        std::fs::write(&path, text).unwrap();
        let mut case = Case::load(&path).unwrap();
        case.file.output.directory = folder.join("out");
        case
    }

    fn contents(case: &Case) -> Vec<(std::ffi::OsString, Vec<u8>)> {
        let entries = std::fs::read_dir(&case.file.output.directory).unwrap().flatten();
        let mut all: Vec<_> =
            entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect();
        all.sort();
        all
    }

    #[test]
    fn a_stop_before_the_end_of_the_solve_leaves_earlier_results_as_they_were() {
        for more in ["", ", cell = \"quadrilateral\""] {
            let folder = tempfile::tempdir().unwrap();
            let case = case(folder.path(), more);
            run(&case, &mut Silent).unwrap();
            let earlier = contents(&case);
            assert_eq!(earlier.len(), 3);
            use Stage::{Assemble, Check, Read, Setup, Solve, Space, Write};
            for stage in [Read, Check, Space, Assemble, Setup, Write] {
                match run(&case, &mut StopIn(stage, false)) {
                    Err(CaseError::Interrupted { stage: found }) => assert_eq!(found, stage),
                    other => panic!("{stage:?}: {other:?}"),
                }
                assert!(contents(&case) == earlier, "{stage:?}");
            }
            let report = run(&case, &mut StopIn(Solve, false)).unwrap();
            assert_eq!(report.solve.stop, Stop::Interrupted);
            assert!(
                report.files.is_empty() && report.warnings.last().unwrap().contains("nothing was written")
            );
            assert!(contents(&case) == earlier);
        }
    }

    #[test]
    fn what_an_interrupted_solve_has_reached_is_kept_until_another_run_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), "");
        for _ in 0..2 {
            let report = run(&case, &mut StopIn(Stage::Solve, false)).unwrap();
            assert_eq!((report.solve.stop, report.files.len()), (Stop::Interrupted, 2));
            assert_eq!(verify(&case.file.output.directory).unwrap(), []);
        }
        assert_eq!(run(&case, &mut Silent).unwrap().solve.stop, Stop::Converged);
        assert_eq!(verify(&case.file.output.directory).unwrap(), []);
    }

    #[test]
    fn files_that_are_not_those_of_the_report_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut case = case(folder.path(), "");
        let out = case.file.output.directory.clone();
        assert!(matches!(verify(&out), Err(CaseError::Io { .. })));
        run(&case, &mut Silent).unwrap();
        assert_eq!(verify(&out).unwrap(), []);
        let solution = out.join("solution.vtu");
        let mut bytes = std::fs::read(&solution).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&solution, bytes).unwrap();
        std::fs::remove_file(out.join("residuals.svg")).unwrap();
        let (missing, changed) =
            (Misfit::Missing("residuals.svg".into()), Misfit::Changed("solution.vtu".into()));
        assert_eq!(verify(&out).unwrap(), [missing, changed]);
        case.file.output.vtu = VtuOutput::Whole(false);
        let report = run(&case, &mut Silent).unwrap();
        assert_eq!(verify(&out).unwrap(), [Misfit::Foreign("solution.vtu".into())]);
        let [told] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
        assert!(told.contains("earlier run") && told.contains(": solution.vtu;"), "{told}");
        std::fs::remove_file(solution).unwrap();
        // Tables and pictures of lines that the last run has not drawn, and others that are none of Femtile's.
        let (from, to) = (vec![0.0, 0.5], vec![1.0, 0.5]);
        let line = Functional::Along { name: "old".into(), from, to, points: 5, of: None };
        case.file.output.functionals = vec![line];
        run(&case, &mut Silent).unwrap();
        assert_eq!(verify(&out).unwrap(), []);
        case.file.output.functionals.clear();
        run(&case, &mut Silent).unwrap();
        std::fs::write(out.join("notes.csv"), "s,t\n1,2\n").unwrap();
        std::fs::write(out.join("logo.svg"), "<svg/>").unwrap();
        let foreign = ["old.csv", "old.svg"].map(|name| Misfit::Foreign(name.into()));
        assert_eq!(verify(&out).unwrap(), foreign);
        for report in ["{}", "{\"files\": ", "[]"] {
            std::fs::write(out.join("report.json"), report).unwrap();
            assert!(matches!(verify(&out).unwrap()[..], [Misfit::Report(_)]), "{report}");
        }
        std::fs::remove_file(out.join("report.json")).unwrap();
        assert!(matches!(verify(&out).unwrap()[..], [Misfit::Report(_)]));
    }

    #[test]
    fn frames_and_traces_of_an_earlier_run_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let in_time = |more: &str| {
            let text = format!(
                "[mesh]\ngenerate = {{ kind = \"square\", cells = [3, 3] }}\n[equation]\nkind = \"diffusion\"\n\
                 [time]\nmethod = \"bdf2\"\nend = 1\nsteps = 4\n{more}\n\
                 [output]\nfunctionals = [{{ name = \"most\", kind = \"max\" }}]\n"
            );
            let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
            case.file.output.directory = folder.path().join("out");
            run(&case, &mut Silent).unwrap().warnings
        };
        let found = || {
            let name = |misfit| if let Misfit::Foreign(name) = misfit { name } else { panic!("{misfit}") };
            verify(&folder.path().join("out")).unwrap().into_iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(in_time("frames = { every = 0.25 }\ntraces = { every = 0.5 }"), [""; 0]);
        assert_eq!(found(), [""; 0]);
        let told = in_time("frames = { every = 0.5 }");
        let foreign = ["traces.csv", "traces.svg", "frames/u_0003.vtu", "frames/u_0004.vtu"];
        assert_eq!(found(), foreign);
        assert!(told[0].contains(&foreign.join(", ")), "{told:?}");
        let told = in_time("");
        assert_eq!(found().len(), 8);
        assert!(
            told[0].contains("solution.pvd, traces.csv, traces.svg, frames/u_0000.vtu and 4 others"),
            "{told:?}"
        );
    }

    #[test]
    fn a_page_that_cannot_be_written_leaves_the_results() {
        let folder = tempfile::tempdir().unwrap();
        let mut case = case(folder.path(), "");
        let out = case.file.output.directory.clone();
        case.file.output.report = true;
        run(&case, &mut Silent).unwrap();
        assert_eq!(verify(&out).unwrap(), []);
        assert!(out.join("report.html").exists());
        case.embedding.report = Some(folder.path().join("none/page.html"));
        let error = run(&case, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("page.html"), "{error}");
        assert_eq!(verify(&out).unwrap(), []);
        // That of the earlier run is gone with its results.
        assert!(out.join("solution.vtu").exists() && !out.join("report.html").exists());
    }

    #[test]
    fn the_measurement_of_a_page_is_part_of_the_memory_of_its_run() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 5] }\n[equation]\nlambda = 1\n[solver]\ndevice = \"cpu\"\n\
                    memory_limit = \"100 MB\"\n";
        let mut case = Case::parse(&folder.path().join("case.toml"), text.into()).unwrap();
        case.file.output.directory = folder.path().join("out");
        run(&case, &mut Silent).unwrap();
        case.file.output.report = true;
        let error = run(&case, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("bandwidth for `output.report`"), "{error}");
    }

    #[test]
    fn a_name_that_belongs_to_a_folder_is_seen_before_anything_is_computed() {
        for name in ["solution.vtu", "residuals.svg", "report.json"] {
            let folder = tempfile::tempdir().unwrap();
            let mut case = case(folder.path(), "");
            std::fs::create_dir_all(case.file.output.directory.join(name)).unwrap();
            // Any stage would end the run in another way.
            let error = run(&case, &mut StopIn(Stage::Read, false)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("a folder has this name"), "{error}");
            case.file.output.vtu = VtuOutput::Whole(false);
            case.file.output.plot = false;
            let free = run(&case, &mut Silent).is_ok();
            assert_eq!(free, name != "report.json");
        }
    }
}
