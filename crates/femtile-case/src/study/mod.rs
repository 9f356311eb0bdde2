//! Studies: a case is run for all combinations of some of its values.
//!
//! Each run has a folder of its own in that of the study. A record beside its results has the checksum of what the run depends
//! on and of its report, so that a study that is begun again keeps complete runs. `study.csv` has a row for each run,
//! `study.svg` the errors by the size of cells or steps.

mod beside;
mod orders;
mod page;
mod record;
mod table;
mod vary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use femtile_mesh::io::write_atomically;
use femtile_solve::{Progress, Remembered};
use serde::Deserialize;
use serde_json::Value;

use crate::file::Functional;
use crate::file_names::{STUDY_PLOT, STUDY_TABLE};
use crate::{Case, CaseError, Override, run};
use beside::Work;
pub(crate) use orders::observed_order;
use record::Record;
use table::Series;
pub use table::StudyTable;
use vary::MOST_RUNS;
pub use vary::Vary;

/// The table on the disk is at most this much older than the last run.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// A case and the values that are varied.
#[derive(Debug, Clone)]
pub struct Study {
    /// The path of the case file, for messages and relative paths.
    pub path: PathBuf,
    /// The text of the case file.
    pub text: String,
    /// Values that replace those of the file in all runs.
    pub overrides: Vec<Override>,
    /// The keys that are varied; the last one changes first.
    pub vary: Vec<Vary>,
    /// The folder of the study; `study` in the folder of results of the case when absent.
    pub folder: Option<PathBuf>,
    /// Whether runs that are complete are made again.
    pub is_again: bool,
    /// Runs at a time, which share the threads; each has all of them if it is 1.
    pub jobs: usize,
    /// The file of a page for a browser with the orders, the plot and the table; none is written when absent.
    pub page: Option<PathBuf>,
    /// Matrix formats that tuning has found on this machine.
    pub remembered: Vec<Remembered>,
}

/// A run of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyRun {
    /// The varied keys with their values.
    pub varied: Vec<(String, Value)>,
    /// The name of its folder in that of the study.
    pub folder: String,
    /// Whether it was complete before.
    pub is_kept: bool,
    /// Its report, or the reason of its failure.
    pub outcome: Result<StudyNumbers, String>,
}

/// The numbers of a report that a study compares.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyNumbers {
    /// Cells of the mesh.
    pub n_cells: usize,
    /// Unknowns, those with Dirichlet values among them.
    pub n_unknowns: usize,
    /// Iterations; of an equation in time the steps.
    pub iterations: usize,
    /// Linearizations, if the equation is nonlinear.
    pub newton_iterations: Option<usize>,
    /// Seconds of all stages.
    pub seconds: f64,
    /// The reason the solve or the steps in time ended.
    pub stop: String,
    /// Whether the solve converged.
    pub has_converged: bool,
    /// The estimated error, functionals and eigenvalues by name; none if they are no finite numbers.
    pub values: Vec<(String, Option<f64>)>,
}

/// The runs of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyReport {
    /// The folder of the study.
    pub folder: PathBuf,
    /// The runs in the order of the values; those after an interrupt are missing.
    pub runs: Vec<StudyRun>,
    /// The content of `study.csv`.
    pub table: StudyTable,
    /// The observed orders, if exactly one key is the size of cells or steps; `study.svg` is drawn if there are some.
    pub orders: Vec<StudyOrder>,
    /// Whether the user has stopped the study.
    pub is_interrupted: bool,
}

impl StudyReport {
    /// Returns the number of runs that failed or did not converge.
    pub fn n_failed(&self) -> usize {
        let is_good = |run: &&StudyRun| run.outcome.as_ref().is_ok_and(|numbers| numbers.has_converged);
        self.runs.len() - self.runs.iter().filter(is_good).count()
    }
}

/// The order at which a value converges, observed at the finest levels.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyOrder {
    /// The name of the value.
    pub name: String,
    /// The values of the other varied keys.
    pub others: Vec<(String, Value)>,
    /// The order.
    pub order: f64,
    /// The number that the value tends to, by Richardson's extrapolation; none of errors.
    pub limit: Option<f64>,
}

/// A combination of values: the run without its outcome, and its case, if that can be read.
struct Planned {
    varied: Vec<(String, Value)>,
    folder: String,
    overrides: Vec<Override>,
    case: Result<Case, CaseError>,
}

/// Runs that have ended; all before the first missing one are told.
#[derive(Default)]
struct InOrder {
    told: Vec<StudyRun>,
    waiting: BTreeMap<usize, StudyRun>,
}

impl InOrder {
    fn add(&mut self, number: usize, run: StudyRun, told: &mut dyn FnMut(&StudyRun)) {
        self.waiting.insert(number, run);
        while let Some(run) = self.waiting.remove(&self.told.len()) {
            told(&run);
            self.told.push(run);
        }
    }

    fn all(&self) -> Vec<StudyRun> {
        self.told.iter().chain(self.waiting.values()).cloned().collect()
    }
}

impl Study {
    /// Creates a study of the text of a case.
    pub fn new(path: &Path, text: String, vary: Vec<Vary>) -> Self {
        Self {
            path: path.into(),
            text,
            overrides: Vec::new(),
            vary,
            folder: None,
            is_again: false,
            jobs: 1,
            page: None,
            remembered: Vec::new(),
        }
    }

    /// Reads the case file of a study.
    ///
    /// # Errors
    /// [`CaseError::Io`].
    pub fn load(path: &Path, vary: Vec<Vary>) -> Result<Self, CaseError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| CaseError::Io { path: path.into(), action: "read", source })?;
        Ok(Self::new(path, text, vary))
    }

    /// Runs all combinations and calls `told` after each, in the order of the values. A run that fails does not end the study. If several
    /// runs are made at a time, `progress` is told of one stage, the solve, and may stop them.
    ///
    /// # Errors
    /// [`CaseError::Option`] for keys that are varied twice, more than 10,000 runs, several runs at a time on a GPU or with other
    /// threads or devices, and a page in the place of another file of the study. The error of the first case if no combination can be
    /// read. [`CaseError::Io`] if the folder, the table or the page cannot be written.
    pub fn run(
        &self,
        progress: &mut dyn Progress,
        told: &mut dyn FnMut(&StudyRun),
    ) -> Result<StudyReport, CaseError> {
        let planned = self.planned()?;
        let first = planned.iter().find_map(|plan| plan.case.as_ref().ok());
        let errors = first.map_or_else(Vec::new, names_of_errors);
        let own = first.map(|case| case.file.output.directory.join("study"));
        let folder = self.folder.clone().or(own).unwrap_or_default();
        self.check_page(&folder)?;
        std::fs::create_dir_all(&folder).map_err(|source| CaseError::Io {
            path: folder.clone(),
            action: "write results to",
            source,
        })?;
        let name = first.map(Case::name).unwrap_or_default();
        let mut written = Instant::now();
        let mut ended = InOrder::default();
        let mut add = |number: usize, run: StudyRun| -> Result<(), CaseError> {
            ended.add(number, run, told);
            if written.elapsed() > WRITE_EVERY {
                self.write(&folder, &ended.all(), &errors)?;
                written = Instant::now();
            }
            Ok(())
        };
        let is_interrupted = match self.jobs.min(planned.len()) {
            0 | 1 => self.run_each(planned, &folder, progress, &mut add)?,
            n_jobs => {
                beside::run_all(self, planned, n_jobs, Work { folder: &folder, progress, add: &mut add })?
            }
        };
        // Of an interrupted study some runs before the last one may be missing.
        ended.waiting.values().for_each(told);
        let runs = ended.all();
        let (table, orders, plot) = self.write(&folder, &runs, &errors)?;
        let report = StudyReport { folder, runs, table, orders, is_interrupted };
        if let Some(path) = &self.page {
            let page = page::page(name, self, &report, plot);
            write_atomically(path, |out| out.write_all(page.as_bytes()))?;
        }
        Ok(report)
    }

    /// Refuses a page in the place of another file of the study, and in a folder that neither exists nor is made by the study.
    fn check_page(&self, folder: &Path) -> Result<(), CaseError> {
        let Some(page) = &self.page else { return Ok(()) };
        let parent = page.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
        let option = format!("--report {}", page.display());
        let is_of_study = place(parent) == place(folder);
        if !is_of_study && !parent.is_dir() {
            return Err(CaseError::option(&option, format!("there is no folder `{}`", parent.display())));
        }
        let name = page.file_name().and_then(|name| name.to_str());
        if is_of_study && matches!(name, Some(STUDY_TABLE | STUDY_PLOT)) {
            let message =
                "the study writes its table or plot there: give the page another name, such as study.html";
            return Err(CaseError::option(&option, message));
        }
        Ok(())
    }

    /// Runs the combinations one after another; returns whether the user has stopped them.
    fn run_each(
        &self,
        planned: Vec<Planned>,
        folder: &Path,
        progress: &mut dyn Progress,
        add: &mut dyn FnMut(usize, StudyRun) -> Result<(), CaseError>,
    ) -> Result<bool, CaseError> {
        for (number, plan) in planned.into_iter().enumerate() {
            let Some(run) = self.run_one(plan, folder, progress)? else { return Ok(true) };
            add(number, run)?;
        }
        Ok(false)
    }

    /// Reads the cases of all combinations.
    fn planned(&self) -> Result<Vec<Planned>, CaseError> {
        for (i, vary) in self.vary.iter().enumerate() {
            if self.vary[..i].iter().any(|other| other.path() == vary.path()) {
                let message = "the key is varied twice: give all of its values at once";
                return Err(CaseError::option(vary.choices()[0].option(), message));
            }
        }
        let n_runs = self.vary.iter().try_fold(1usize, |n, vary| n.checked_mul(vary.choices().len()));
        let Some(n_runs) = n_runs.filter(|n| *n <= MOST_RUNS) else {
            let keys: Vec<&str> = self.vary.iter().map(Vary::key).collect();
            let message = format!("the study has more than {MOST_RUNS} runs: give fewer values");
            return Err(CaseError::option(&keys.join(", "), message));
        };
        let mut planned: Vec<Planned> = (0..n_runs).map(|number| self.plan(number)).collect();
        if self.jobs > 1 {
            let of_device =
                |vary: &&Vary| matches!(vary.key(), "solver" | "solver.threads" | "solver.device");
            if let Some(vary) = self.vary.iter().find(of_device) {
                let message = format!(
                    "runs at a time share the threads of the CPU, so that `{}` cannot be varied: make one run at a time",
                    vary.key()
                );
                return Err(CaseError::option("--jobs", message));
            }
            let on_gpu = |case: &&Case| case.file.solver.device.starts_with("cuda");
            if let Some(case) = planned.iter().flat_map(|plan| &plan.case).find(on_gpu) {
                let message = format!(
                    "runs at a time share the threads of the CPU, but a case has `solver.device = \"{}\"`: make one run at \
                     a time on a GPU",
                    case.file.solver.device
                );
                return Err(CaseError::option("--jobs", message));
            }
            let n_jobs = self.jobs.min(n_runs);
            planned.iter_mut().flat_map(|plan| &mut plan.case).for_each(|case| beside::share(case, n_jobs));
        }
        if planned.iter().all(|plan| plan.case.is_err()) {
            return Err(planned
                .swap_remove(0)
                .case
                .err()
                .unwrap_or_else(|| CaseError::option("a study", "there is nothing to run")));
        }
        Ok(planned)
    }

    /// Reads the case of the combination with a number.
    fn plan(&self, number: usize) -> Planned {
        let mut left = number;
        let mut chosen: Vec<&Override> = Vec::new();
        for vary in self.vary.iter().rev() {
            chosen.push(&vary.choices()[left % vary.choices().len()]);
            left /= vary.choices().len();
        }
        chosen.reverse();
        let varied = self.vary.iter().zip(&chosen).map(|(vary, choice)| {
            (vary.key().to_owned(), serde_json::to_value(choice.value()).unwrap_or_default())
        });
        let varied: Vec<(String, Value)> = varied.collect();
        let overrides: Vec<Override> = self.overrides.iter().chain(chosen).cloned().collect();
        let case = Case::parse_with(&self.path, self.text.clone(), overrides.clone());
        Planned { folder: record::folder_of(&varied), varied, overrides, case }
    }

    /// Runs a combination, or keeps its results; none if the user has stopped it.
    fn run_one(
        &self,
        plan: Planned,
        folder: &Path,
        progress: &mut dyn Progress,
    ) -> Result<Option<StudyRun>, CaseError> {
        let Planned { varied, folder: name, overrides, case } = plan;
        let of = |outcome, is_kept| Some(StudyRun { varied, folder: name.clone(), is_kept, outcome });
        let mut case = match case {
            Ok(case) => case,
            Err(error) => return Ok(of(Err(error.to_string()), false)),
        };
        let own = folder.join(&name);
        let record = Record::of(&case, &overrides)?;
        if !self.is_again
            && let Some(report) = record.kept(&own)
            && let Some(numbers) = StudyNumbers::of(&report)
        {
            return Ok(of(Ok(numbers), true));
        }
        if progress.is_interrupted() {
            return Ok(None);
        }
        case.file.output.directory.clone_from(&own);
        case.remembered.clone_from(&self.remembered);
        let report = match run(&case, progress) {
            Ok(report) if report.solve.stop == femtile_linalg::krylov::Stop::Interrupted => return Ok(None),
            Ok(report) => report.to_json(),
            Err(CaseError::Interrupted { .. }) => return Ok(None),
            Err(error) => return Ok(of(Err(error.to_string()), false)),
        };
        record.write(&own)?;
        let numbers = StudyNumbers::of(&report).ok_or("the report cannot be read".to_owned());
        Ok(of(numbers, false))
    }

    /// Writes the table, and the plot if there are orders; returns the table, the orders and the plot.
    fn write(
        &self,
        folder: &Path,
        runs: &[StudyRun],
        errors: &[String],
    ) -> Result<(StudyTable, Vec<StudyOrder>, Option<String>), CaseError> {
        let series = table::series(&self.vary, runs, errors);
        let table = StudyTable::of(&self.vary, runs, &series);
        write_atomically(&folder.join(STUDY_TABLE), |out| out.write_all(table.to_csv().as_bytes()))?;
        let plot = table::plot(&self.vary, &series);
        let path = folder.join(STUDY_PLOT);
        match &plot {
            Some(svg) => write_atomically(&path, |out| out.write_all(svg.as_bytes()))?,
            // That of an earlier study with other values.
            None if path.is_file() => std::fs::remove_file(&path).map_err(|source| CaseError::Io {
                path: path.clone(),
                action: "remove",
                source,
            })?,
            None => {}
        }
        Ok((table, series.iter().filter_map(Series::finest_order).collect(), plot))
    }
}

/// The name of the estimated error among the values of a run.
const ESTIMATE: &str = "discretization_error_estimate";

/// Returns the names of the values of a case that are norms of errors.
fn names_of_errors(case: &Case) -> Vec<String> {
    let functionals = case.file.output.functionals.iter();
    let errors = functionals.filter_map(|functional| match functional {
        Functional::ErrorL2 { name, .. } | Functional::ErrorH1 { name, .. } => Some(name.clone()),
        _ => None,
    });
    errors.chain([ESTIMATE.into()]).collect()
}

/// The part of a report that a study reads.
#[derive(Deserialize)]
struct ReportText {
    mesh: MeshText,
    space: SpaceText,
    solve: SolveText,
    time: Option<TimeText>,
    #[serde(default)]
    modes: Vec<ModeText>,
    matrix: Option<MatrixText>,
    functionals: BTreeMap<String, Option<f64>>,
    timings_s: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct MeshText {
    n_cells: usize,
}

#[derive(Deserialize)]
struct SpaceText {
    n_dofs: usize,
}

#[derive(Deserialize)]
struct SolveText {
    iterations: usize,
    stop: String,
    nonlinear: Option<NonlinearText>,
    #[serde(rename = "discretization_error_estimate")]
    estimate: Option<f64>,
}

#[derive(Deserialize)]
struct NonlinearText {
    iterations: usize,
}

#[derive(Deserialize)]
struct TimeText {
    stop: String,
}

#[derive(Deserialize)]
struct ModeText {
    eigenvalue: Option<f64>,
}

#[derive(Deserialize)]
struct MatrixText {
    fluxes: Vec<Vec<Option<f64>>>,
}

impl StudyNumbers {
    /// Reads a report; none if it is not one.
    fn of(report: &str) -> Option<Self> {
        let ReportText { mesh, space, solve, time, modes, matrix, functionals, timings_s } =
            serde_json::from_str(report).ok()?;
        let estimate = solve.estimate.map(|estimate| (ESTIMATE.to_owned(), Some(estimate)));
        let modes = modes.iter().enumerate();
        let modes = modes.map(|(i, mode)| (format!("eigenvalue_{}", i + 1), mode.eigenvalue));
        let rows = matrix.map_or_else(Vec::new, |matrix| matrix.fluxes).into_iter().enumerate();
        let fluxes = rows.flat_map(|(i, row)| {
            row.into_iter().enumerate().map(move |(j, flux)| (format!("matrix[{i}][{j}]"), flux))
        });
        Some(Self {
            n_cells: mesh.n_cells,
            n_unknowns: space.n_dofs,
            iterations: solve.iterations,
            newton_iterations: solve.nonlinear.map(|nonlinear| nonlinear.iterations),
            seconds: timings_s.values().sum(),
            has_converged: solve.stop == femtile_linalg::krylov::Stop::Converged.name(),
            stop: time.map_or(solve.stop, |time| time.stop),
            values: estimate.into_iter().chain(functionals).chain(modes).chain(fluxes).collect(),
        })
    }
}
