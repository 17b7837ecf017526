//! A trace of Tunix among Perfetto traces: read item by item as an import reads it, with the same ids.

use pulsetrain_otlp::Signal;
use pulsetrain_perfetto::{Item, ReadError};

use super::PerfettoConversion;
use crate::{
    logs::{Identity, RunOptions, source},
    tunix_trace::{TunixTrace, Version, first_record},
};
use pulsetrain_record::{Place, Recorder};

/// Reads the rest of a trace of this version; `items` begins with the tracks that were read already.
pub(super) fn convert<E>(
    version: Version,
    mut items: impl Iterator<Item = Result<Item, ReadError>>,
    (file_name, options): (&str, &RunOptions),
    conversion: &mut PerfettoConversion,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    // The run is known with the first slice.
    let mut before = Vec::new();
    let first = items.find_map(|item| match item {
        Ok(item) => {
            let first = first_record(&item);
            before.push(item);
            first
        }
        Err(error) => {
            conversion.fail(&error);
            None
        }
    });
    let identity = Identity {
        first_record: first.unwrap_or_default(),
        start_is_in_name: true,
        ..Identity::default()
    };
    let run = source::run(version.format(), identity, options, file_name);
    let (mut outcome, mut messages) = (Ok(()), 0);
    let mut recorder = Recorder::new(run, |encoded| {
        // After a failure nothing more is wanted.
        if outcome.is_ok() {
            outcome = deliver(encoded.signal, encoded.bytes);
            messages += 1;
        }
    });
    let mut trace = TunixTrace::new(version);
    for item in before.into_iter().map(Ok).chain(items) {
        match item {
            Ok(item) => trace.item(item, Place::default(), &mut recorder),
            Err(error) => conversion.fail(&error),
        }
    }
    trace.end(&mut recorder);
    let (counts, skipped) = recorder.finish();
    (conversion.spans, conversion.points) = (counts.spans, counts.points);
    conversion.skipped = skipped;
    conversion.messages = messages;
    outcome
}
