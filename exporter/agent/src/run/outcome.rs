//! The report at the end of a run: everything if asked for, otherwise only the losses.

use pulsetrain_formats::suggestion_command;
use pulsetrain_pipeline::SinkReport;
use pulsetrain_tail::ImportReport;

use crate::{
    import::summary::Summary,
    log::{self, Level, Subject},
    losses,
};

/// The outcome of the telemetry of a run.
pub(super) struct Outcome {
    summary: Summary,
    is_recognised: bool,
    /// The description of output of no known format.
    seen: Option<String>,
    is_whole: bool,
    unparsed: u64,
    /// The batches that the next run sends, a line for each sink.
    on_disk: Vec<String>,
}

/// The outcome of the trainer's output and logs.
pub(super) struct Inputs {
    /// The reports of the inputs.
    pub(super) reports: Vec<ImportReport>,
    /// Whether everything was read within the time limit.
    pub(super) is_whole: bool,
}

impl Outcome {
    /// Creates the outcome from the reports of sources and sinks, and the number of bytes that were copied and not
    /// parsed.
    pub(super) fn new(inputs: Inputs, sinks: Vec<SinkReport>, unparsed: u64) -> Self {
        let on_disk = sinks.iter().filter_map(|sink| {
            let message = losses::left_on_disk(&sink.counts)?;
            Some(format!("{}: {message}", sink.counts.name))
        });
        Self {
            on_disk: on_disk.collect(),
            is_recognised: inputs.reports.iter().any(|input| input.format.is_some()),
            seen: inputs
                .reports
                .iter()
                .find_map(|input| Some(input.unrecognised.as_ref()?.cause().into_owned())),
            is_whole: inputs.is_whole,
            summary: Summary::new(inputs.reports, sinks),
            unparsed,
        }
    }

    /// Logs the complete report, or only the losses.
    pub(super) fn log(&self, everything: bool) {
        if !self.is_whole {
            let message =
                "the last output of the trainer is lost, because it was not read in time: raise --drain";
            log::error(Subject::Program, message);
        } else if !self.is_recognised {
            let mut message = "no metrics were found in the output".to_owned();
            if let Some(seen) = &self.seen {
                message += &format!(" ({seen})");
            }
            message += ": name its format with --format, or a log with --follow";
            if self.seen.is_some() {
                let command = suggestion_command("LOG");
                message += &format!("; for a copy LOG of the output, `{command}` writes a mapping");
            }
            log::warn(Subject::Program, message);
        }
        if self.unparsed > 0 {
            log::error(
                Subject::Program,
                format_args!(
                    "{} bytes were passed on but not read: the trainer printed too fast",
                    self.unparsed
                ),
            );
        }
        let mut text = Vec::new();
        let (level, written) = if !self.summary.is_complete() {
            (Level::Error, self.summary.write_text(&mut text))
        } else if everything {
            (Level::Info, self.summary.write_text(&mut text))
        } else {
            (Level::Warn, self.summary.write_notices(&mut text))
        };
        written.expect("invariant: writing to memory cannot fail");
        let text = String::from_utf8_lossy(&text);
        if everything {
            log::print_lines(level, &text);
        } else {
            log::write_lines(level, &text);
        }
        for message in &self.on_disk {
            log::warn(Subject::Program, message);
        }
    }
}
