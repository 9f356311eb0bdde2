//! Reading a box of about 100,000 tetrahedra from Gmsh's text format, version 4.1.
//!
//! Bytes: those of the file, which lies in the system's cache of files.

use femtile::device::Cpu;
use femtile::mesh::io;

use crate::Samples;
use crate::problems::kuhn_box;
use crate::{BenchError, Options, Record, Work};

/// Target rate of a reader on one core.
const TARGET_GB_PER_S: f64 = 0.05;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let failed = |what| move |source| BenchError::File { what, source };
    let nodes = options.nodes(27)?;
    let folder = tempfile::tempdir().map_err(failed("temporary folder"))?;
    let path = folder.path().join("box.msh");
    io::write(&path, &kuhn_box::mesh(nodes)?)?;
    let n_bytes = std::fs::metadata(&path).map_err(failed("size of the mesh file"))?.len();
    let (mut samples, mut n_cells) = (Samples::default(), 0);
    for _ in 0..options.repeats(15) {
        n_cells = samples.time(|| io::read(&path))?.n_cells();
    }
    let work = Work { bytes: n_bytes as f64, flops: 0.0 };
    let cpu = Cpu::new(1)?;
    let bound = ("target of 50 MB/s a core", TARGET_GB_PER_S);
    let mut record = Record::against_bandwidth("read Gmsh 4.1 text, box", &cpu, &samples, work, bound);
    record.set("nodes", nodes);
    record.set("n_cells", n_cells);
    record.set("threads", 1);
    Ok(vec![record])
}
