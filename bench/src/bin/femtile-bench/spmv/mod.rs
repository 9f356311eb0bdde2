//! `femtile spmv` and `femtile tune`: which format suits a sparse matrix on this machine.

mod arguments;
mod device;
mod input;
mod report;

use std::path::Path;
use std::process::ExitCode;

use femtile::linalg::sparse::SparseKernels;
use femtile::mesh::io::write_atomically;
use femtile_bench::Failure;
use femtile_bench::sparse::{Compared, SurveyConfig, Tuned, ask_peers, histogram_svg, survey};

use arguments::ProductOptions;
pub use arguments::{SpmvOptions, TuneOptions};
use device::Device;
use femtile_terminal::{check_target, print, tell, to_json};
use input::Input;
use report::{DeviceReport, Report};

/// `femtile spmv`.
pub fn run(options: &SpmvOptions) -> Result<ExitCode, Failure> {
    if let Some(path) = &options.histogram {
        check_target("--histogram", path)?;
    }
    let mut task = Task::new(options.file.as_deref(), &options.products)?;
    if let Some(path) = &options.histogram {
        draw(path, &task.input)?;
        task.report.histogram = Some(path.clone());
    }
    let config = SurveyConfig { all: options.all, repeats: options.products.repeats as usize, tuned: None };
    for device in std::mem::take(&mut task.devices) {
        let measured = match device {
            Device::Cpu(cpu) => task.measure(&cpu, config, options.peers)?,
            Device::Cuda(cuda) => task.measure(&cuda, config, options.peers)?,
        };
        task.report.devices.push(measured);
    }
    task.tell(&options.products)
}

/// `femtile tune`.
pub fn tune(options: &TuneOptions) -> Result<ExitCode, Failure> {
    if options.forget {
        return forget();
    }
    let mut task = Task::new(options.file.as_deref(), &options.products)?;
    let config = SurveyConfig { all: true, repeats: options.products.repeats as usize, tuned: None };
    for device in std::mem::take(&mut task.devices) {
        let measured = match device {
            Device::Cpu(cpu) => task.search(&cpu, config)?,
            Device::Cuda(cuda) => task.search(&cuda, config)?,
        };
        task.report.devices.push(measured);
    }
    match task.tuned.path() {
        Some(path) => task.report.kept = Some(path.into()),
        None => task.report.notes.push("nothing is kept: there is no cache folder".into()),
    }
    task.tell(&options.products)
}

/// `femtile tune --forget`.
fn forget() -> Result<ExitCode, Failure> {
    let mut tuned = Tuned::read();
    let n = tuned.len();
    tuned.forget()?;
    let text = match tuned.path() {
        Some(path) => format!("removed {n} results of searches from {}\n", path.display()),
        None => "there is no cache\n".into(),
    };
    Ok(print(&text)?)
}

/// A matrix, the devices of its products, and the results so far.
struct Task {
    input: Input,
    devices: Vec<Device>,
    tuned: Tuned,
    report: Report,
}

impl Task {
    fn new(file: Option<&Path>, options: &ProductOptions) -> Result<Self, Failure> {
        options.json.as_deref().map_or(Ok(()), |path| check_target("--json", path))?;
        // Its absence shows before anything is read.
        let (devices, no_gpu) = device::open(options)?;
        let input = Input::read(file, options)?;
        let tuned = Tuned::read();
        let mut report = Report::new(&input);
        report.notes.extend(tuned.note().map(str::to_owned));
        report.notes.extend(no_gpu.map(|reason| format!("no GPU: {reason}")));
        Ok(Self { input, devices, tuned, report })
    }

    fn measure<D: SparseKernels<f64> + Compared>(
        &self,
        device: &D,
        config: SurveyConfig,
        peers: bool,
    ) -> Result<DeviceReport, Failure> {
        let a = &self.input.matrix;
        let config = SurveyConfig { tuned: self.tuned.format(device, a), ..config };
        let mut survey = survey(device, a, &device.bound()?, &config)?;
        if !peers {
            return Ok(survey.into());
        }
        let (peer, threads) = device.peer();
        let absent = match ask_peers(peer, a, threads, config.repeats)? {
            Ok(times) => {
                survey.add_peers(times);
                None
            }
            Err(reason) => Some(format!("{} was not timed: {reason}; {}", peer.name(), peer.advice())),
        };
        Ok(DeviceReport { peer_absent: absent, ..survey.into() })
    }

    fn search<D: SparseKernels<f64> + Compared>(
        &mut self,
        device: &D,
        config: SurveyConfig,
    ) -> Result<DeviceReport, Failure> {
        let a = &self.input.matrix;
        let survey = survey(device, a, &device.bound()?, &config)?;
        if let Some(best) = survey.best() {
            self.tuned.keep(device, a, &best.timed.format, best.timed.seconds_min)?;
        }
        Ok(survey.into())
    }

    fn tell(&self, options: &ProductOptions) -> Result<ExitCode, Failure> {
        let json = to_json(&self.report)?;
        tell(options.json.as_deref(), options.quiet, &json, &self.report.summary())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn draw(path: &Path, input: &Input) -> Result<(), Failure> {
    let caption =
        Path::new(&input.name).file_name().map_or(input.name.clone(), |name| name.display().to_string());
    let svg = histogram_svg(&format!("Row lengths, {caption}"), &input.matrix.row_lengths());
    Ok(write_atomically(path, |out| out.write_all(svg.as_bytes()))?)
}
