//! Events that the user should know of. None of them harms the trainer.

use std::{fmt, io};

use rustix::process::WaitStatus;

use crate::copier::OutputLoss;

/// An event that the user should know of.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incident {
    /// The output cannot be copied, so the trainer writes to it directly.
    NotCopied(io::Error),
    /// The exporter cannot be started.
    ExporterNotStarted(io::Error),
    /// The exporter ended before the trainer, or by a signal.
    ExporterEnded(WaitStatus),
    /// The exporter did not end within its time limit.
    ExporterHangs,
    /// The destination of a stream did not accept all output.
    OutputLost(OutputLoss),
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCopied(error) => write!(
                f,
                "continues without a copy of the output: {error}; raise the limits on processes and open files (ulimit -u, -n)"
            ),
            Self::ExporterNotStarted(error) => {
                write!(f, "continues without the exporter: cannot start it: {error}")
            }
            Self::ExporterEnded(status) => match status.terminating_signal() {
                Some(signal) => write!(f, "continues without the exporter: signal {signal} ended it"),
                None => write!(
                    f,
                    "continues without the exporter: it exited with status {}",
                    status.exit_status().unwrap_or_default()
                ),
            },
            Self::ExporterHangs => {
                f.write_str("the exporter did not end in time and was killed: its last data is lost")
            }
            Self::OutputLost(loss) => write!(
                f,
                "{} bytes of the output were lost, because they could not be written: {}",
                loss.bytes,
                io::Error::from_raw_os_error(loss.error)
            ),
        }
    }
}
