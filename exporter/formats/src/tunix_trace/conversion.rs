//! Converts a Tunix trace without an import. The spans and ids equal those of an import.

use pulsetrain_otlp::Signal;
use pulsetrain_perfetto::{Item, ReadError};
use pulsetrain_record::{ParseReport, Recorder, Run, SourcePosition};

use super::{TunixTrace, Version, first_record};
use crate::logs::{LogFormat, RunHeader};

/// The most errors that are listed.
const ERRORS: usize = 20;

/// The outcome of a conversion.
#[derive(Debug, Default)]
pub struct TunixConversion {
    /// OTLP messages that were delivered.
    pub messages: u64,
    /// Spans in the messages.
    pub spans: u64,
    /// Points in the messages.
    pub points: u64,
    /// The first errors with their positions.
    pub errors: Vec<String>,
    /// The report of values that have no equivalent in OTLP.
    pub skipped: ParseReport,
}

/// Converts the items of a trace of this version and passes OTLP messages to `deliver`. `run` creates the run from its
/// identity.
///
/// # Errors
///
/// Returns the errors of `deliver`. Errors in the trace are in the conversion.
pub fn convert_tunix_trace<E>(
    version: Version,
    mut items: impl Iterator<Item = Result<Item, ReadError>>,
    run: impl FnOnce(&LogFormat, RunHeader) -> Run,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
) -> Result<TunixConversion, E> {
    let mut conversion = TunixConversion::default();
    // The first slice identifies the run.
    let mut buffered = Vec::new();
    let first = items.find_map(|item| match item {
        Ok(item) => {
            let first = first_record(&item);
            buffered.push(item);
            first
        }
        Err(error) => {
            conversion.fail(&error);
            None
        }
    });
    let identity = RunHeader {
        first_record: first.unwrap_or_default(),
        start_is_in_name: true,
        ..RunHeader::default()
    };
    let run = run(version.format(), identity);
    let (mut outcome, mut messages) = (Ok(()), 0);
    let mut recorder = Recorder::new(run, |encoded| {
        // After a failure nothing more is delivered.
        if outcome.is_ok() {
            outcome = deliver(encoded.signal, encoded.bytes);
            messages += 1;
        }
    });
    let mut trace = TunixTrace::new(version);
    for item in buffered.into_iter().map(Ok).chain(items) {
        match item {
            Ok(item) => trace.item(item, SourcePosition::default(), &mut recorder),
            Err(error) => conversion.fail(&error),
        }
    }
    trace.end(&mut recorder);
    let (counts, skipped) = recorder.finish();
    outcome?;
    Ok(TunixConversion {
        messages,
        spans: counts.spans,
        points: counts.points,
        skipped,
        ..conversion
    })
}

impl TunixConversion {
    fn fail(&mut self, error: &impl ToString) {
        if self.errors.len() < ERRORS {
            self.errors.push(error.to_string());
        }
    }
}
