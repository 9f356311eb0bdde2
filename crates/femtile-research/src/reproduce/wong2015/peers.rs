use super::matrices::Case;
use super::{Absent, Session, once};
use femtile_bench::BenchError;
use femtile_bench::sparse::{Peer, ask_peers};

/// The fastest of the other library's algorithms for compressed sparse rows.
#[derive(Debug, Clone)]
pub(super) struct BestOfPeer {
    /// Seconds of a product, of 20 in a row on a GPU.
    pub seconds: f64,
}

/// Command that installs a missing library.
const INSTALL_CUSPARSE: &str = "pip install 'cupy-cuda13x[ctk]', or cupy-cuda12x[ctk] with an older driver";
const INSTALL_MKL: &str =
    "pip install mkl numpy, into the python3 of the path or the one that FEMTILE_PYTHON names";

/// Returns the library of the measured device, and its name.
fn library(session: &Session) -> (Peer, &'static str) {
    if session.gpu.is_some() { (Peer::Cusparse, "cuSPARSE") } else { (Peer::Mkl, "MKL") }
}

/// Returns the measurement of the other library for a matrix; none if it is missing or was left out.
pub(super) fn peer<'a>(session: &'a Session, case: &'a Case) -> Result<Option<&'a BestOfPeer>, BenchError> {
    let best = once(&case.peer, || {
        let failure = &session.wong2015.no_peer;
        if !session.settings.peers || failure.get().is_some() {
            return Ok(None);
        }
        let a = case.a(session.settings.small)?;
        let (library, repeats) = (library(session).0, session.settings.repeats);
        match ask_peers(library, a, session.cpu.threads(), repeats)? {
            Ok(times) => {
                let rows = times.iter().filter(|timed| !timed.format.contains("COO"));
                let fastest = rows.map(|timed| timed.seconds_min).reduce(f64::min);
                Ok(fastest.map(|seconds| BestOfPeer { seconds }))
            }
            Err(reason) => {
                failure.get_or_init(|| reason);
                Ok(None)
            }
        }
    })?;
    Ok(best.as_ref())
}

/// Returns the name of the replacement of the paper's cuSPARSE; it is known once a matrix has been measured.
pub(super) fn baseline_name(session: &Session) -> &'static str {
    let is_absent = !session.settings.peers || session.wong2015.no_peer.get().is_some();
    if is_absent { "our CSR" } else { library(session).1 }
}

/// Returns the message for a library that did not run.
pub(super) fn absent(session: &Session) -> Option<Absent> {
    let reason = session.wong2015.no_peer.get()?.clone();
    let (library, peer) = library(session);
    let install = if library == Peer::Cusparse { INSTALL_CUSPARSE } else { INSTALL_MKL };
    Some(Absent { peer, reason, install })
}
