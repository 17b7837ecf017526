//! Decodes the `Record` message (`wandb/proto/wandb_internal.proto`).

use pulsetrain_otlp::{
    UnixNanos,
    wire::{Field, Reader, Value, WireError},
};

/// A record by its use here.
#[derive(Debug, PartialEq)]
pub(super) enum Record<'a> {
    /// The values logged at a step.
    History(&'a [u8]),
    /// The newest values of keys.
    Summary(&'a [u8]),
    /// The library's measurements of the machine.
    Stats(&'a [u8]),
    /// A change of the configuration.
    Config(&'a [u8]),
    /// The run: its owner, project and configuration.
    Run(&'a [u8]),
    /// The machine and the software of the run.
    Environment(&'a [u8]),
    /// An alert that the program raised.
    Alert(&'a [u8]),
    /// Lines that the program printed.
    Output,
    /// wandb's internal records.
    Bookkeeping,
}

/// Parses a record. One field selects the kind; the others number the record.
pub(super) fn parse(bytes: &[u8]) -> Result<Record<'_>, WireError> {
    let mut record = Record::Bookkeeping;
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        record = match (number, value) {
            (2, Value::Bytes(history)) => Record::History(history),
            (3, Value::Bytes(summary)) => Record::Summary(summary),
            (5, Value::Bytes(config)) => Record::Config(config),
            (7, Value::Bytes(stats)) => Record::Stats(stats),
            (10, Value::Bytes(alert)) => Record::Alert(alert),
            (17, Value::Bytes(run)) => Record::Run(run),
            (26, Value::Bytes(environment)) => Record::Environment(environment),
            (4 | 13, _) => Record::Output,
            _ => continue,
        };
    }
    Ok(record)
}

/// Returns the number of calls before a `HistoryRecord`, which older versions store outside the items.
pub(super) fn step_of(history: &[u8]) -> Option<f64> {
    let field = |bytes, wanted| {
        let fields = Reader::new(bytes).filter_map(Result::ok);
        fields.into_iter().find(|field| field.number == wanted)
    };
    let Value::Bytes(step) = field(history, 2)?.value else {
        return None;
    };
    match field(step, 1).map(|field| field.value) {
        Some(Value::Varint(number)) => Some(number as f64),
        // The first call.
        _ => Some(0.0),
    }
}

/// The contents of a `RunRecord`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run<'a> {
    pub(super) id: Vec<u8>,
    pub(super) name: Option<String>,
    pub(super) project: Option<String>,
    pub(super) start_unix_nanos: Option<UnixNanos>,
    /// The configuration as a list of changes.
    pub(super) config: &'a [u8],
}

/// Parses a `RunRecord`.
pub(super) fn run(bytes: &[u8]) -> Result<Run<'_>, WireError> {
    let mut run = Run::default();
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        match (number, value) {
            (1, Value::Bytes(id)) => run.id = id.to_vec(),
            (3, Value::Bytes(project)) if !project.is_empty() => {
                run.project = Some(String::from_utf8_lossy(project).into_owned());
            }
            (4, Value::Bytes(config)) => run.config = config,
            (8, Value::Bytes(name)) if !name.is_empty() => {
                run.name = Some(String::from_utf8_lossy(name).into_owned());
            }
            (17, Value::Bytes(time)) => run.start_unix_nanos = timestamp(time)?,
            _ => {}
        }
    }
    Ok(run)
}

/// Parses a `google.protobuf.Timestamp`.
pub(super) fn timestamp(bytes: &[u8]) -> Result<Option<UnixNanos>, WireError> {
    let (mut seconds, mut nanos) = (0_u64, 0_u64);
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        match (number, value) {
            (1, Value::Varint(number)) => seconds = number,
            (2, Value::Varint(number)) => nanos = number,
            _ => {}
        }
    }
    Ok(seconds
        .checked_mul(1_000_000_000)
        .and_then(|time| time.checked_add(nanos))
        .map(UnixNanos)
        .filter(|time| time.is_known()))
}
