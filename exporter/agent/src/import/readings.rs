//! `import --gpu-readings`: reads recorded GPU readings of a run from an OTLP file, for the energy of its steps.

use std::{fs::File, path::Path};

use pulsetrain_otlp::{Signal, frames::FrameReader, limits::Limits};
use pulsetrain_pipeline::{Batch, Stage};

use crate::{failure::Failure, topology};

/// Returns the stage with the readings of these files. The readings are not sent to the sinks.
pub(super) fn stage<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<Box<dyn Stage>, Failure> {
    let mut energy = topology::recorded_energy();
    for path in files {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(|error| failed(&error))?;
        let mut readings = 0;
        for frame in FrameReader::new(file, Limits::default()) {
            let frame = frame.map_err(|error| failed(&error))?;
            if frame.signal == Signal::Metrics {
                readings += energy.load_readings(&Batch::new(frame.signal, 0, frame.bytes));
            }
        }
        if readings == 0 {
            return Err(failed(
                &"there is no reading of a GPU in it: name a file with gpu.energy, as a file sink of the agent writes it",
            ));
        }
    }
    Ok(Box::new(energy))
}
