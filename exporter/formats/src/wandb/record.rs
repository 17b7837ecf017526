//! Decodes the `Record` message (`wandb/proto/wandb_internal.proto`).

use pulsetrain_otlp::{
    UnixNanos,
    wire::{Field, Reader, WireError, WireValue},
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
            (2, WireValue::Bytes(history)) => Record::History(history),
            (3, WireValue::Bytes(summary)) => Record::Summary(summary),
            (5, WireValue::Bytes(config)) => Record::Config(config),
            (7, WireValue::Bytes(stats)) => Record::Stats(stats),
            (10, WireValue::Bytes(alert)) => Record::Alert(alert),
            (17, WireValue::Bytes(run)) => Record::Run(run),
            (26, WireValue::Bytes(environment)) => Record::Environment(environment),
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
    let WireValue::Bytes(step) = field(history, 2)?.value else {
        return None;
    };
    match field(step, 1).map(|field| field.value) {
        Some(WireValue::Varint(number)) => Some(number as f64),
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
            (1, WireValue::Bytes(id)) => run.id = id.to_vec(),
            (3, WireValue::Bytes(project)) if !project.is_empty() => {
                run.project = Some(String::from_utf8_lossy(project).into_owned());
            }
            (4, WireValue::Bytes(config)) => run.config = config,
            (8, WireValue::Bytes(name)) if !name.is_empty() => {
                run.name = Some(String::from_utf8_lossy(name).into_owned());
            }
            (17, WireValue::Bytes(time)) => run.start_unix_nanos = timestamp(time)?,
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
            (1, WireValue::Varint(number)) => seconds = number,
            (2, WireValue::Varint(number)) => nanos = number,
            _ => {}
        }
    }
    Ok(seconds
        .checked_mul(1_000_000_000)
        .and_then(|time| time.checked_add(nanos))
        .map(UnixNanos)
        .filter(|time| time.is_known()))
}
