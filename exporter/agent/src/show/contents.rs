//! The contents of a recorded file, read once before it is shown: its runs, its start time and whether it has derived
//! signals.

use std::{collections::BTreeSet, path::Path};

use pulsetrain_otlp::{
    Signal, UnixNanos, WireError,
    view::InstrumentationScope,
    walk::{self, InResource},
};
use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_run::RunOrigin;
use pulsetrain_tail::RunOptions;
use pulsetrain_trace_inputs::{ConvertError, ReadOptions, read_input};

use super::recorded::MEMORY;

/// The contents of a file that determine the order of files and the derived signals.
#[derive(Debug)]
pub(super) struct Contents {
    /// The values of `train.run.id` of its resources.
    pub(super) runs: BTreeSet<String>,
    /// The earliest time of a point or event, or end of a span; [`UnixNanos::MAX`] for a file without times.
    pub(super) begin_unix_nanos: UnixNanos,
    /// Whether a scope of the file is that of derived signals.
    pub(super) has_derived: bool,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            runs: BTreeSet::new(),
            begin_unix_nanos: UnixNanos::MAX,
            has_derived: false,
        }
    }
}

impl Contents {
    /// Reads a file to its end. Errors are left to the reader that shows the file.
    pub(super) fn from_path(path: &Path) -> Self {
        let mut contents = Self::default();
        let (options, room) = (
            RunOptions::default(),
            MemoryBudget {
                bytes: MEMORY,
                folder: None,
            },
        );
        let options = ReadOptions {
            run: &options,
            room: &room,
        };
        let _ = read_input(path, options, |input| input, &mut |signal, bytes: Vec<u8>| {
            let _ = contents.add(signal, &bytes);
            Ok::<(), ConvertError>(())
        });
        contents
    }

    fn add(&mut self, signal: Signal, bytes: &[u8]) -> Result<(), WireError> {
        match signal {
            Signal::Metrics => self.add_resources(walk::metrics(bytes), |contents, metric| {
                metric.each_point(|point| contents.add_time(point.time()))
            }),
            // A span is written when it ends: the root span of a run is in the last of its files.
            Signal::Traces => self.add_resources(walk::spans(bytes), |contents, span| {
                contents.add_time(UnixNanos(span.end_time_unix_nano));
                Ok(())
            }),
            Signal::Logs => self.add_resources(walk::records(bytes), |contents, record| {
                contents.add_time(UnixNanos(record.time_unix_nano));
                Ok(())
            }),
        }
    }

    fn add_resources<'a, T: walk::Item<'a>>(
        &mut self,
        resources: impl Iterator<Item = Result<InResource<'a, T>, WireError>>,
        add: impl Fn(&mut Self, &T) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        for resource in resources {
            let resource = resource?;
            if let Some(run) = RunOrigin::from_attributes(resource.attributes()).run_id
                && !self.runs.contains(&*run)
            {
                self.runs.insert(run.to_string());
            }
            for scope in resource.scopes() {
                let scope = scope?;
                self.add_scope(scope.scope);
                for item in scope.items {
                    add(self, &item?)?;
                }
            }
        }
        Ok(())
    }

    fn add_scope(&mut self, scope: Option<InstrumentationScope<'_>>) {
        self.has_derived |= scope.unwrap_or_default().name == pulsetrain_derive::SCOPE;
    }

    fn add_time(&mut self, time: UnixNanos) {
        if time.is_known() {
            self.begin_unix_nanos = self.begin_unix_nanos.min(time);
        }
    }
}
