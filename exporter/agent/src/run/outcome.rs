//! What is said at the end of a run: everything where it was asked for, otherwise only what was lost.

use std::io::{self, Write};

use pulsetrain_pipeline::SinkReport;
use pulsetrain_sources::logs::{ImportReport, format_names};

use crate::import::summary::Summary;

/// What came of the telemetry of a run.
pub(super) struct Outcome {
    summary: Summary,
    is_recognised: bool,
    is_whole: bool,
    unparsed: u64,
}

/// What became of what the trainer printed and wrote.
pub(super) struct Inputs {
    /// What was read.
    pub(super) reports: Vec<ImportReport>,
    /// Whether all of it was read before the time was over.
    pub(super) is_whole: bool,
}

impl Outcome {
    /// From what sources and sinks report, and the bytes that were copied and not parsed.
    pub(super) fn new(inputs: Inputs, sinks: Vec<SinkReport>, unparsed: u64) -> Self {
        Self {
            is_recognised: inputs.reports.iter().any(|input| input.format.is_some()),
            is_whole: inputs.is_whole,
            summary: Summary::new(inputs.reports, sinks),
            unparsed,
        }
    }

    /// Says it on the standard error; nobody is left to tell when even that cannot be written.
    pub(super) fn tell(&self, everything: bool) {
        let _ = self.write(everything, &mut io::stderr().lock());
    }

    fn write(&self, everything: bool, out: &mut impl Write) -> io::Result<()> {
        if !self.is_whole {
            writeln!(
                out,
                "pulsetrain: what the trainer printed last is lost, because it was not read in time: raise --drain"
            )?;
        } else if !self.is_recognised {
            writeln!(
                out,
                "pulsetrain: nothing that was printed is in a format that is known ({}); name one with --format, or a log with --follow",
                format_names()
            )?;
        }
        if self.unparsed > 0 {
            writeln!(
                out,
                "pulsetrain: {} bytes were passed on but not read: the trainer printed faster than they could be",
                self.unparsed
            )?;
        }
        if everything || !self.summary.is_complete() {
            return self.summary.write_text(out);
        }
        self.summary.write_notices(out)
    }
}
