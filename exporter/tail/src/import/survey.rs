//! Reads a finished log without times once before its import, to space its records by the durations that it reports.

use std::{cell::RefCell, sync::Arc};

use pulsetrain_formats::{LogFormat, LogReader, MAX_RECORDS, Pace, PacedBy, ReadTime, Survey};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::{CancellationToken, Problem};
use pulsetrain_record::{Recorder, Run};

use super::chunks::{ChunkReader, CountingReader, Next};
use crate::{ImportNotice, LogInput, RunOptions};

/// Returns the times of the records of a log with this head and modification time (`end`). Returns `None` if the log has times or
/// reports no durations.
pub(super) fn pace(
    input: &LogInput,
    format: &'static LogFormat,
    options: &RunOptions,
    head: &[u8],
    end: UnixNanos,
    stop: &CancellationToken,
) -> Option<Pace> {
    let head_survey = RefCell::new(Survey::default());
    let mut recorder = Recorder::new(Run::default(), |encoded| {
        head_survey.borrow_mut().observe(&encoded);
    });
    let mut reader = reader(format, options);
    reader.push(head, &mut recorder);
    recorder.finish();
    if reader.invented_times() == 0 || head_survey.borrow().has_times() {
        return None;
    }
    let pace = survey(input, format, options, stop)?;
    Some(pace.between(options.start_unix_nanos, end))
}

fn survey(
    input: &LogInput,
    format: &'static LogFormat,
    options: &RunOptions,
    stop: &CancellationToken,
) -> Option<Pace> {
    let counted = CountingReader {
        opened: input.open().ok()?,
        bytes_read: Arc::default(),
    };
    let mut chunks = ChunkReader::new(input.name(), counted, Some(UnixNanos::UNKNOWN), stop.clone());
    let survey = RefCell::new(Survey::default());
    let mut recorder = Recorder::new(Run::default(), |encoded| survey.borrow_mut().observe(&encoded));
    let mut reader = reader(format, options);
    loop {
        match chunks.next() {
            Next::Bytes(chunk) => reader.push(&chunk, &mut recorder),
            Next::Idle => {}
            Next::End => break,
        }
        if reader.invented_times() > MAX_RECORDS || survey.borrow().has_times() {
            return None;
        }
    }
    reader.finish(&mut recorder);
    recorder.finish();
    survey.into_inner().pace()
}

fn reader(format: &'static LogFormat, options: &RunOptions) -> LogReader {
    let mut reader = options.reader(format);
    reader.set_time(ReadTime::default());
    reader
}

/// Describes invented times for the summary. Returns `None` if `--start-time` and the durations in the log give all of them.
pub(super) fn notice(
    pace: Option<PacedBy>,
    invented: u64,
    records: u64,
    format: &LogFormat,
    options: &RunOptions,
) -> Option<ImportNotice> {
    let has_start = options.start_unix_nanos.is_some();
    let near = if has_start {
        "begin at --start-time"
    } else {
        "end at its modification time"
    };
    let spacing = match pace {
        Some(_) if has_start => return None,
        Some(PacedBy::StepDurations) => format!("are spaced by the step durations in it and {near}"),
        Some(PacedBy::RunTime) => format!("are spaced evenly over the run time in it and {near}"),
        None if has_start => "are 1 ms apart from --start-time on".to_owned(),
        None => "are 1 ms apart from its modification time on".to_owned(),
    };
    let fixes = [
        (!has_start).then_some("give --start-time"),
        format.takes_mapping().then_some(match options.mapping.time() {
            Some(_) => "check the time and the time_format of the mapping",
            None => "name the key of the time in the mapping (time: KEY)",
        }),
    ];
    let fixes: Vec<&str> = fixes.into_iter().flatten().collect();
    let fix = if fixes.is_empty() {
        "have the trainer log a time in each line".to_owned()
    } else {
        fixes.join(", or ")
    };
    let subject = if invented >= records {
        "no times in this log: its records".to_owned()
    } else {
        format!("{invented} of {records} records have no time: they")
    };
    (invented > 0 && records > 0).then(|| {
        Problem::new(format!("{subject} {spacing}"))
            .with_remedy(fix)
            .into()
    })
}
