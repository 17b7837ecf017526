//! The options of a conversion of a trace.

use std::sync::Arc;

use pulsetrain_record::Run;

use super::{Identity, LogFormat};

/// Returns the run of an input of a format by its identity and its name.
type RunOf = Arc<dyn Fn(&LogFormat, Identity, &str) -> Run>;

/// The options of a conversion of a trace.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The first time of clocks that a trace does not tie to the wall clock, in nanoseconds since 1970.
    pub start_unix_nanos: Option<u64>,
    /// Returns the run of a trace that is imported, too.
    pub run: Option<RunOf>,
}

pub(crate) fn run(format: &LogFormat, identity: Identity, options: &RunOptions, input: &str) -> Run {
    let run = options.run.as_ref().map(|run| run(format, identity, input));
    run.unwrap_or_default()
}
