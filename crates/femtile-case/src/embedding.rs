//! Runs inside another program, which provides the mesh and receives results in memory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use femtile_comm::Comm;
use femtile_mesh::Mesh;
use femtile_solve::{SolutionData, SolveError};

use crate::place::has_key;
use crate::{Case, CaseError, FormState, Override};

/// Receives the results of a run in memory.
pub trait Receiver: Send + Sync {
    /// Called at each time of `[time] frames`.
    fn frame(&self, _time: f64, _data: SolutionData) {}

    /// Called with the solution at the end of the run.
    fn solution(&self, _data: SolutionData) {}

    /// Called with the unknowns of a steady form, for [`Case::functional`].
    fn form(&self, _state: FormState) {}
}

/// The connections of a case to the program that runs it; by default none, as for a case file that stands alone.
#[derive(Clone)]
pub struct Embedding {
    /// The communicator of the program; each rank runs the case, and ranks other than the first write
    /// nothing.
    pub comm: Option<Comm>,
    /// The mesh, instead of `file` and `generate` of `[mesh]`.
    pub mesh: Option<Arc<Mesh>>,
    /// Takes results in memory.
    pub receiver: Option<Arc<dyn Receiver>>,
    /// Whether results are written to files.
    pub writes_files: bool,
    /// A file for a picture of the solution, in addition to that in the results folder.
    pub picture: Option<PathBuf>,
    /// A file for the page of the run, in addition to that in the results folder.
    pub report: Option<PathBuf>,
}

impl Default for Embedding {
    fn default() -> Self {
        Self { comm: None, mesh: None, receiver: None, writes_files: true, picture: None, report: None }
    }
}

impl fmt::Debug for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedding")
            .field("comm", &self.comm)
            .field("has_mesh", &self.mesh.is_some())
            .field("has_receiver", &self.receiver.is_some())
            .field("writes_files", &self.writes_files)
            .field("picture", &self.picture)
            .field("report", &self.report)
            .finish()
    }
}

impl Case {
    /// Parses the text of a case that another program runs.
    ///
    /// # Errors
    /// As [`Case::parse_with`].
    pub fn parse_embedded(
        path: &Path,
        text: String,
        overrides: Vec<Override>,
        embedding: Embedding,
    ) -> Result<Self, CaseError> {
        let mut case = Self::parse_unchecked(path, text, overrides)?;
        case.embedding = embedding;
        case.check()?;
        Ok(case)
    }

    /// Returns whether the text of the case names the folder of its results.
    pub fn names_directory(&self) -> bool {
        has_key(&self.text, &["output".into(), "directory".into()])
    }

    /// Passes the solution to the receiver, if there is one; returns it if it is also shown or written.
    pub(crate) fn deliver(
        &self,
        data: impl FnOnce() -> Result<SolutionData, SolveError>,
    ) -> Result<Option<SolutionData>, SolveError> {
        match (&self.embedding.receiver, self.needs_data()) {
            (None, false) => Ok(None),
            (None, true) => data().map(Some),
            (Some(receiver), is_needed) => {
                let data = data()?;
                let kept = is_needed.then(|| data.clone());
                receiver.solution(data);
                Ok(kept)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use femtile_mesh::generate::{SquareConfig, square};
    use femtile_solve::Functional;

    use super::*;
    use crate::{Array, ByConstant, Silent, run};

    #[derive(Debug, Default)]
    struct Kept {
        times: Mutex<Vec<f64>>,
        end: Mutex<Option<SolutionData>>,
        form: Mutex<Option<FormState>>,
    }

    impl Receiver for Kept {
        fn frame(&self, time: f64, data: SolutionData) {
            assert_eq!(data.points.len(), data.point_fields["u"].values.len());
            self.times.lock().unwrap().push(time);
        }

        fn solution(&self, data: SolutionData) {
            *self.end.lock().unwrap() = Some(data);
        }

        fn form(&self, state: FormState) {
            *self.form.lock().unwrap() = Some(state);
        }
    }

    fn embedded(text: &str, mesh: Option<Mesh>) -> Result<(Case, Arc<Kept>), CaseError> {
        let kept = Arc::new(Kept::default());
        let receiver = Some(kept.clone() as Arc<dyn Receiver>);
        let mesh = mesh.map(Arc::new);
        let embedding = Embedding { mesh, receiver, writes_files: false, ..Embedding::default() };
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{text}\n[output]\ndirectory = {:?}\n", folder.path().join("out"));
        let case = Case::parse_embedded("case".as_ref(), text, Vec::new(), embedding)?;
        Ok((case, kept))
    }

    #[test]
    fn results_in_memory_leave_no_files() {
        let square = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 5] }\n";
        let in_time = "kind = \"diffusion\"\nsource = 1\n[time]\nmethod = \"bdf2\"\nend = 1\nsteps = 4\nframes = { every = 0.5 }\n";
        let grid = "[mesh]\ngenerate = { kind = \"grid\", nodes = [5, 6] }\n";
        for (text, n_points, times) in [
            (format!("{square}[equation]\nlambda = 1\nsource = \"x\"\n"), 30, vec![]),
            (format!("{square}[equation]\n{in_time}traces = [1]\n"), 30, vec![0.0, 0.5, 1.0]),
            (
                format!("{grid}[equation]\nkind = \"diffusion\"\nsource = 1\n[time]\nend = 1\nsteps = 4\n"),
                30,
                vec![],
            ),
        ] {
            let (case, kept) = embedded(&text, None).unwrap();
            let report = run(&case, &mut Silent).unwrap();
            assert!(report.files.is_empty() && !case.file.output.directory.exists(), "{text}");
            assert_eq!(*kept.times.lock().unwrap(), times);
            let end = kept.end.lock().unwrap().take().unwrap();
            assert_eq!((end.points.len(), end.point_fields["u"].values.len()), (n_points, n_points));
        }
    }

    #[test]
    fn a_mesh_in_memory_takes_the_place_of_file_and_generator() {
        let mesh = || Some(square(&SquareConfig { cells: [3, 3], ..SquareConfig::default() }).unwrap());
        let equation = "[equation]\nlambda = 1\nsource = \"x\"\n";
        let (case, kept) = embedded(&format!("[mesh]\n{equation}"), mesh()).unwrap();
        assert_eq!(run(&case, &mut Silent).unwrap().mesh.n_nodes, 16);
        assert!(kept.end.lock().unwrap().is_some());
        let both = format!("[mesh]\nfile = \"a.msh\"\n{equation}");
        let said = embedded(&both, mesh()).unwrap_err().to_string();
        assert!(said.contains("a mesh is given beside the case"), "{said}");
        assert!(embedded(&format!("[mesh]\n{equation}"), None).is_err());
    }

    #[test]
    fn unknowns_of_forms_have_functionals_with_derivatives_by_the_names_of_the_case() {
        let of = |equation: &str| {
            let text = format!(
                "[mesh]\ngenerate = {{ kind = \"square\", cells = [4, 5] }}\n[solver]\ntolerance = 1e-12\n\
                 [[boundary]]\nwhere = \"all\"\ndirichlet = 0\n{equation}"
            );
            let (case, kept) = embedded(&text, None).unwrap();
            run(&case, &mut Silent).unwrap();
            let state = kept.form.lock().unwrap().take();
            (case, state)
        };
        let form = "[equation]\nkind = \"form\"\nflux = \"k*grad(u)\"\nsource = 1\n";
        let unknown = "[unknown]\nu = {}\n";
        let (case, state) = of(&format!("{unknown}{form}constants = {{ k = {{ by_tag = {{ 0 = 2 }} }} }}\n"));
        let (heat, state) = (Functional::new("m*u").with("m", 3.0), state.unwrap());
        let (value, slopes) = case.functional(&state, &heat, &["k"], &mut Silent).unwrap();
        // u is inversely proportional to k.
        let [ByConstant::ByTag(by_tag)] = &slopes[..] else { panic!("{slopes:?}") };
        let (name, Array { shape, values }) = by_tag.first_key_value().unwrap();
        assert_eq!((name.as_str(), shape.len(), by_tag.len()), ("0", 0, 1));
        assert!(value > 0.0 && (values[0] + value / 2.0).abs() < 1e-10 * value);
        let said =
            case.functional(&state, &Functional::new("u*w"), &[], &mut Silent).unwrap_err().to_string();
        assert!(said.contains("unknown name `w`"), "{said}");
        let time = "[time]\nmethod = \"bdf2\"\nend = 0.1\nsteps = 2\n";
        let (case, none) = of(&format!("{unknown}{form}constants = {{ k = 1 }}\ncapacity = 1\n{time}"));
        assert!(none.is_none());
        let said = case.functional(&state, &heat, &["k"], &mut Silent).unwrap_err().to_string();
        assert!(said.contains("gradients are of steady ones"), "{said}");
        let (case, none) = of("[equation]\nsource = 1\n");
        assert!(none.is_none());
        let said = case.functional(&state, &heat, &[], &mut Silent).unwrap_err().to_string();
        assert!(said.contains("kind = \"form\""), "{said}");
    }

    #[test]
    fn a_folder_is_named_by_the_text_alone() {
        let parse = |text: &str| Case::parse("case.toml".as_ref(), text.into()).unwrap();
        let mesh = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 5] }\n[equation]\nlambda = 1\n";
        assert!(!parse(mesh).names_directory());
        assert!(!parse(&format!("{mesh}[output]\nplot = false\n")).names_directory());
        assert!(parse(&format!("{mesh}[output]\ndirectory = \"a\"\n")).names_directory());
    }
}
