//! Imports a log: opens the input, detects its format and its run, and sends the recorded data.

pub(crate) mod chunks;
mod survey;
mod utf16;

use std::{
    sync::{Arc, atomic::AtomicU64},
    thread,
};

use pulsetrain_formats::{
    FormatError, HEAD_BYTES, KeyUse, LogFormat, LogReader, Mapping, Pace, RunHeader, detect, found_keys,
    suggestion_command, unreadable, unused_notice, without_byte_order_mark,
};
use pulsetrain_otlp::{UnixNanos, write::Encoded};
use pulsetrain_pipeline::{Batch, BoxFuture, CancellationToken, Ingress, Problem, Source};
use pulsetrain_record::{Recorder, UsedTimezone};

use self::chunks::{ChunkReader, CountingReader, Next};
use crate::{ImportNotice, ImportReport, LogInput, RunOptions, TailError, catch_panic};

/// Reads one log from its beginning to its end.
pub struct LogSource {
    name: String,
    input: LogInput,
    options: RunOptions,
    bytes_read: Arc<AtomicU64>,
    on_end: Box<dyn FnOnce(ImportReport) + Send>,
}

impl LogSource {
    /// Creates a source of `input`. `on_end` receives the report when the source ends, also after an error.
    pub fn new(
        input: LogInput,
        options: RunOptions,
        on_end: impl FnOnce(ImportReport) + Send + 'static,
    ) -> Self {
        Self {
            name: format!("log {}", input.name()),
            input,
            options,
            bytes_read: Arc::default(),
            on_end: Box::new(on_end),
        }
    }

    /// Returns the counter of bytes that were read, for a progress bar.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }
}

impl Source for LogSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        Box::pin(async move {
            let import = move || {
                let Self {
                    input,
                    options,
                    bytes_read,
                    on_end,
                    ..
                } = *self;
                let mut report = ImportReport {
                    input: input.name(),
                    ..ImportReport::default()
                };
                let imported =
                    catch_panic(|| import(&input, &options, &bytes_read, &ingress, &stop, &mut report));
                // An input that breaks off has an error already.
                report.error = error_of(imported, &report.input).or(report.error);
                let result = report.error.as_ref().map_or(Ok(()), |error| Err(error.problem()));
                on_end(report);
                result
            };
            tokio::task::spawn_blocking(import)
                .await
                .unwrap_or_else(|panic| Err(Problem::new(format!("reading failed: {panic}"))))
        })
    }
}

fn import(
    input: &LogInput,
    options: &RunOptions,
    bytes_read: &Arc<AtomicU64>,
    ingress: &Ingress,
    stop: &CancellationToken,
    report: &mut ImportReport,
) -> Result<(), TailError> {
    let known_time = options.start_unix_nanos.or_else(|| input.last_change());
    let opened = Opened::new(input, options, bytes_read, known_time, stop);
    let Opened {
        chunks,
        head,
        format,
        signature,
    } = opened?;
    report.format = Some((format.name, signature));
    let survey = |end| survey::pace(input, format, options, &head, end, stop);
    // A panic of the parser is reported by the second reading.
    let pace = input
        .last_change()
        .and_then(|end| catch_panic(|| survey(end)).ok().flatten());
    read(format, &head, chunks, options, pace, ingress, report);
    let is_empty = !report.counts.has_items() && !report.skipped.has_losses();
    if options.format.is_some() && is_empty && report.error.is_none() {
        return Err(no_records_error(format, &report.input, &head, options));
    }
    Ok(())
}

/// Returns the error of a reading that failed or panicked.
fn error_of(read: thread::Result<Result<(), TailError>>, input: &str) -> Option<TailError> {
    match read {
        Ok(outcome) => outcome.err(),
        Err(panic) => Some(TailError::panicked(input, &*panic)),
    }
}

/// An input whose head is read and whose format is known.
struct Opened {
    chunks: ChunkReader,
    head: Vec<u8>,
    format: &'static LogFormat,
    signature: &'static str,
}

impl Opened {
    fn new(
        input: &LogInput,
        options: &RunOptions,
        bytes_read: &Arc<AtomicU64>,
        known_time: Option<UnixNanos>,
        stop: &CancellationToken,
    ) -> Result<Self, TailError> {
        let reader = CountingReader {
            opened: input.open()?,
            bytes_read: Arc::clone(bytes_read),
        };
        let name = input.name();
        let mut chunks = ChunkReader::new(name.clone(), reader, known_time, stop.clone());
        let head = chunks.head(options);
        if head.is_empty() {
            return Err(chunks.error.take().unwrap_or(TailError::Empty { name }));
        }
        let (format, signature) = choose(&name, options.chosen_format(), &head)?;
        Ok(Self {
            chunks,
            head,
            format,
            signature,
        })
    }
}

/// Returns the header of the run in the head of an input.
fn run_header(format: &LogFormat, head: &[u8], options: &RunOptions) -> RunHeader {
    let head = without_byte_order_mark(&head[..head.len().min(HEAD_BYTES)]);
    format.run_header(head, &options.mapping)
}

/// Reads the head of an input, and reports its format, its run, what its head records, and the notices about its ranks and the
/// mapping. Sends nothing.
pub fn inspect(input: &LogInput, options: &RunOptions) -> ImportReport {
    let mut report = ImportReport {
        input: input.name(),
        ..ImportReport::default()
    };
    let inspected = catch_panic(|| inspect_head(input, options, &mut report));
    report.error = error_of(inspected, &report.input);
    report
}

fn inspect_head(input: &LogInput, options: &RunOptions, report: &mut ImportReport) -> Result<(), TailError> {
    let opened = Opened::new(
        input,
        options,
        &Arc::default(),
        Some(UnixNanos::UNKNOWN),
        &CancellationToken::new(),
    );
    let Opened {
        chunks,
        head,
        format,
        signature,
    } = opened?;
    report.format = Some((format.name, signature));
    let timezone = UsedTimezone::named_or_utc(options.timezone.as_ref());
    let header = run_header(format, &head, options);
    report.run = options.run(format, header, &timezone, &report.input);
    let mut recorder = Recorder::new(report.run.clone(), drop);
    let mut reader = options.reader(format);
    reader.set_time(chunks.read_time());
    reader.push(&head, &mut recorder);
    report
        .notices
        .extend(unused_in_head(&options.mapping, &reader.key_uses(), &head));
    report
        .notices
        .extend(rank_notices(format, &recorder, options, &report.input));
    report.ranks = recorder.recorded_ranks().to_vec();
    report.counts = recorder.counts();
    // Records of the named format may follow the head, unless the log looks like another format.
    let is_other = || detect(&report.input, &head).is_ok_and(|(other, _)| other.name != format.name);
    if options.format.is_some() && !report.counts.has_items() && is_other() {
        return Err(no_records_error(format, &report.input, &head, options));
    }
    Ok(())
}

/// Returns the notice about the parts of the mapping that the head of a log does not use, if the head has keys without a row.
/// Otherwise later lines may use them, such as those of an evaluation.
fn unused_in_head(mapping: &Mapping, uses: &[KeyUse], head: &[u8]) -> Option<ImportNotice> {
    let has_other = uses.iter().any(KeyUse::is_unmapped);
    let unused = unused_notice(mapping, uses).filter(|_| has_other)?;
    let keys = found_keys(head)?;
    let remedy = format!("{keys} in its first lines: correct a misspelt key");
    Some(Problem::new(unused).with_remedy(remedy).into())
}

/// Returns the format that the user named, else the detected one, with its signature.
pub(crate) fn choose(
    input: &str,
    named: Option<(&'static LogFormat, &'static str)>,
    head: &[u8],
) -> Result<(&'static LogFormat, &'static str), TailError> {
    match (unreadable(input, head), named) {
        (Some(error), _) => Err(error.into()),
        (None, Some(named)) => Ok(named),
        (None, None) => Ok(detect(input, head)?),
    }
}

/// Returns the error for a named format that reads nothing, with the format that the input looks like.
fn no_records_error(format: &LogFormat, input: &str, head: &[u8], options: &RunOptions) -> TailError {
    let is_of_mapping = options.is_of_mapping(format);
    let (fix, other_fix) = match is_of_mapping {
        true => (
            "check the format, the lines, the step and the keys of the mapping",
            "leave --mapping out, or correct its format",
        ),
        false => (
            "check that it is the right file",
            "name that, or leave --format out",
        ),
    };
    let mut unknown = None;
    let remedy = match detect(input, head) {
        Ok((other, signature)) if other.name != format.name && !(is_of_mapping && other.is_fallback()) => {
            format!("it looks like {} ({signature}): {other_fix}", other.name)
        }
        Err(FormatError::UnknownFormat { found, next, .. }) if !is_of_mapping => {
            unknown = Some(found);
            next
        }
        Err(FormatError::AmbiguousFormat { candidates, .. }) => format!("it may be one of {candidates}"),
        _ => {
            let keys = found_keys(head).map_or(String::new(), |keys| format!("{keys}: "));
            let command = suggestion_command(input);
            format!("{keys}{fix}; `{command}` writes a mapping for every line with numbers")
        }
    };
    TailError::NoRecords {
        name: input.to_owned(),
        format: format.name,
        found: unknown,
        remedy,
    }
}

/// Reads the input to its end and sends the recorded data.
fn read(
    format: &'static LogFormat,
    head: &[u8],
    mut chunks: ChunkReader,
    options: &RunOptions,
    pace: Option<Pace>,
    ingress: &Ingress,
    report: &mut ImportReport,
) {
    let timezone = UsedTimezone::named_or_utc(options.timezone.as_ref());
    let header = run_header(format, head, options);
    report.run = options.run(format, header, &timezone, &report.input);
    let mut closed = false;
    let mut recorder = Recorder::new(report.run.clone(), |encoded| {
        closed |= send(ingress, encoded).is_err();
    })
    .in_timezone(timezone);
    let mut reader = options.reader(format);
    let paced = pace.as_ref().map(|pace| pace.by);
    pace.into_iter().for_each(|pace| reader.set_pace(pace));
    let parsed = catch_panic(|| parse(&mut reader, head, &mut chunks, &mut recorder));
    report.timezone = recorder.timezone_used();
    let records = recorder.counts().records;
    let invented = *parsed.as_ref().unwrap_or(&0);
    report.list_keys(format, &options.mapping, &reader.key_uses());
    report
        .notices
        .extend(survey::notice(paced, invented, records, format, options));
    report
        .notices
        .extend(rank_notices(format, &recorder, options, &report.input));
    report.ranks = recorder.recorded_ranks().to_vec();
    (report.counts, report.skipped) = recorder.finish();
    let panicked = parsed.err();
    let panicked = panicked.map(|panic| TailError::panicked(&report.input, &*panic));
    report.error = panicked.or_else(|| chunks.error.take());
    if closed && report.error.is_none() {
        report.error = Some(TailError::Stopped {
            name: report.input.clone(),
            offset: chunks.offset,
        });
    }
}

/// Parses the input to its end. Returns the number of records with an invented time.
fn parse(reader: &mut LogReader, head: &[u8], chunks: &mut ChunkReader, recorder: &mut Recorder<'_>) -> u64 {
    reader.set_time(chunks.read_time());
    reader.push(head, recorder);
    loop {
        reader.set_time(chunks.read_time());
        match chunks.next() {
            Next::Bytes(chunk) => reader.push(&chunk, recorder),
            Next::Idle => recorder.flush(),
            Next::End => break,
        }
    }
    reader.finish(recorder);
    reader.invented_times()
}

fn send(ingress: &Ingress, encoded: Encoded) -> Result<(), pulsetrain_pipeline::PipelineError> {
    ingress.blocking_send(Batch::new(encoded.signal, encoded.items, encoded.bytes))
}

/// Returns the notices about the ranks of an input: a pattern that finds none, and ranks that another input has claimed.
fn rank_notices(
    format: &LogFormat,
    recorder: &Recorder<'_>,
    options: &RunOptions,
    input: &str,
) -> Vec<ImportNotice> {
    let missed = options.rank.missed(input).map(|pattern| {
        let problem = Problem::new(format!("the pattern {pattern} finds no rank in this path"));
        problem
            .with_remedy("correct the pattern, or give --rank N")
            .into()
    });
    let ranks = recorder.recorded_ranks().iter();
    let shared = ranks.filter_map(|rank| options.claims.claim(input, format, recorder.run(), *rank));
    missed
        .into_iter()
        .chain(shared.map(ImportNotice::SharedRank))
        .collect()
}

#[cfg(test)]
mod tests;
