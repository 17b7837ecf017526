//! The source that parses the output of the trainer: passes a copy of its lines through the parser of their format to the
//! ingress.

use std::{sync::mpsc::RecvTimeoutError, time::Duration};

use pulsetrain_formats::{
    FormatError, HEADER_TIMEOUT, LogFormat, LogReader, ReadTime, detect, infer_timezone,
};
use pulsetrain_launcher::Chunks;
use pulsetrain_otlp::write::Encoded;
use pulsetrain_pipeline::{
    Batch, BoxFuture, CancellationToken, Ingress, Problem, Source,
    clock::{self, Instant},
};
use pulsetrain_record::{Recorder, Run, UsedTimezone};
use pulsetrain_tail::{ImportReport, RunOptions, TailError, catch_panic};

use super::{identity::Identity, lines::Lines};

/// The flush interval of the recorder.
const FLUSH: Duration = Duration::from_millis(100);

/// The limit on the output that is kept to detect its format.
const HEAD_BYTES: usize = 256 << 10;

/// The maximum interval between two attempts to detect the format while there is new output.
const RECOGNISE_EVERY: Duration = Duration::from_secs(1);

/// The approximate number of bytes that are parsed at once.
const AT_ONCE_BYTES: usize = 256 << 10;

/// The source of a trainer's output.
pub(super) struct StreamSource {
    name: String,
    chunks: Chunks,
    identity: Identity,
    options: RunOptions,
    on_end: Box<dyn FnOnce(ImportReport) + Send>,
}

impl StreamSource {
    /// Returns a source of `chunks`; `on_end` is called with its outcome.
    pub(super) fn new(
        program: &str,
        chunks: Chunks,
        identity: Identity,
        options: RunOptions,
        on_end: impl FnOnce(ImportReport) + Send + 'static,
    ) -> Self {
        Self {
            name: format!("output of {program}"),
            chunks,
            identity,
            options,
            on_end: Box::new(on_end),
        }
    }

    fn read(self, ingress: &Ingress, stop: &CancellationToken) {
        let mut text = Text::new(self.chunks, stop.clone());
        let mut report = ImportReport {
            input: self.name,
            ..ImportReport::default()
        };
        let read = catch_panic(|| {
            read_recognised(&mut text, self.identity, &self.options, ingress, &mut report);
        });
        if let Err(panicked) = read {
            report.error = Some(TailError::panicked(&report.input, &*panicked));
        }
        (self.on_end)(report);
    }
}

impl Source for StreamSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        Box::pin(async move {
            tokio::task::spawn_blocking(move || self.read(&ingress, &stop))
                .await
                .map_err(|panic| Problem::new(format!("reading failed: {panic}")))
        })
    }
}

/// Parses the text from the detection of its format to its end. After a panic of the parser, the recorded items are kept.
fn read_recognised(
    text: &mut Text,
    identity: Identity,
    options: &RunOptions,
    ingress: &Ingress,
    report: &mut ImportReport,
) {
    let (format, sign, mut head) = match recognised(options.chosen_format(), text) {
        Ok(recognised) => recognised,
        Err(unrecognised) => {
            report.unrecognised = unrecognised;
            return;
        }
    };
    read_identity(format, options, text, &mut head);
    report.format = Some((format.name, sign));
    let timezone = timezone(&head, options);
    report.run = run(format, &head, identity, options, &timezone);
    let mut reader = options.reader(format);
    let recorder = Recorder::new(report.run.clone(), |encoded| offer(ingress, encoded));
    let mut recorder = recorder.in_timezone(timezone);
    let parsed = catch_panic(|| parse(&mut reader, head, text, &mut recorder));
    report.list_keys(format, &options.mapping, &reader.key_uses());
    report.timezone = recorder.timezone_used();
    (report.counts, report.skipped) = recorder.finish();
    let panicked = parsed.err();
    report.error = panicked.map(|panic| TailError::panicked(&report.input, &*panic));
}

/// Sends without waiting, so that the trainer is never blocked: the pipeline drops and counts the items that find no
/// room.
fn offer(ingress: &Ingress, encoded: Encoded) {
    // The pipeline closes only after this source has ended.
    let _ = ingress.try_send_or_drop(Batch::new(encoded.signal, encoded.items, encoded.bytes));
}

/// Reads until the format is detected, or until there is input of the given format.
///
/// # Errors
/// The output ends first; the error shows what was seen in it, if it has numbers.
fn recognised(
    named: Option<(&'static LogFormat, &'static str)>,
    text: &mut Text,
) -> Result<(&'static LogFormat, &'static str, Vec<u8>), Option<FormatError>> {
    let (mut head, mut attempts) = (Vec::new(), Attempts::default());
    loop {
        let is_open = text.read(&mut head);
        if let Some((format, sign)) = named.filter(|_| !head.is_empty()) {
            return Ok((format, sign, head));
        }
        if attempts.is_due(head.len(), is_open)
            && let Ok((format, sign)) = detect("", &head)
        {
            return Ok((format, sign, head));
        }
        if !is_open {
            let has_numbers = head.iter().any(u8::is_ascii_digit);
            return Err(detect("", &head).err().filter(|_| has_numbers));
        }
        if head.len() > HEAD_BYTES {
            head.drain(..head.len() - HEAD_BYTES / 2);
            attempts.bytes = head.len();
        }
    }
}

/// The schedule of the attempts to detect the format, because each attempt scans all of the kept output.
#[derive(Debug, Default)]
struct Attempts {
    /// The size of the output at the last attempt.
    bytes: usize,
    last: Option<Instant>,
}

impl Attempts {
    /// Returns whether the output has grown by a quarter since the last attempt, or at all after [`RECOGNISE_EVERY`].
    fn is_due(&mut self, bytes: usize, is_open: bool) -> bool {
        let is_long_ago = self.last.is_none_or(|last| last.elapsed() >= RECOGNISE_EVERY);
        let is_due = !is_open || bytes > self.bytes && (is_long_ago || bytes - self.bytes > self.bytes / 4);
        if is_due {
            (self.bytes, self.last) = (bytes, Some(clock::now()));
        }
        is_due
    }
}

/// Reads until the first lines contain the identity of the run, such as its name, or a limit is reached.
fn read_identity(format: &LogFormat, options: &RunOptions, text: &mut Text, head: &mut Vec<u8>) {
    let mut spoke = clock::now();
    let mut identity = format.run_header(head, &options.mapping);
    while head.len() < HEAD_BYTES && !identity.is_complete() {
        let is_begun = !identity.first_record.is_empty();
        let before = head.len();
        if (is_begun && spoke.elapsed() >= HEADER_TIMEOUT) || !text.read(head) {
            return;
        }
        if head.len() > before {
            spoke = clock::now();
            identity = format.run_header(head, &options.mapping);
        }
    }
}

/// Returns the zone from the command line, or the zone in which the newest line is current, or that of this machine: the
/// trainer has the same environment.
fn timezone(head: &[u8], options: &RunOptions) -> UsedTimezone {
    UsedTimezone::named(options.timezone.as_ref())
        .or_else(|| infer_timezone(head, clock::unix_nanos()))
        .unwrap_or_else(UsedTimezone::of_machine)
}

fn run(
    format: &'static LogFormat,
    head: &[u8],
    identity: Identity,
    options: &RunOptions,
    timezone: &UsedTimezone,
) -> Run {
    let found = format.run_header(head, &options.mapping);
    Run {
        id: identity.id,
        name: options.run_name.clone().or(found.run_name).unwrap_or_default(),
        project: found.project.unwrap_or_default(),
        framework: options.framework(format, found.framework).to_owned(),
        service: options.service.clone().unwrap_or_default(),
        rank: identity.member.rank,
        local_rank: identity.member.local_rank,
        world_size: identity.member.world_size,
        attempt: identity.member.attempt,
        start_unix_nanos: options
            .start_unix_nanos
            .or_else(|| found.start.map(|start| timezone.instant(start)))
            .unwrap_or_default(),
        extra: options.resource.clone(),
    }
}

fn parse(reader: &mut LogReader, head: Vec<u8>, text: &mut Text, recorder: &mut Recorder<'_>) {
    let mut flushed = clock::now();
    let mut bytes = head;
    loop {
        reader.set_time(ReadTime {
            unix_nanos: clock::unix_nanos(),
            is_live: true,
        });
        reader.push(&bytes, recorder);
        bytes.clear();
        if flushed.elapsed() >= FLUSH {
            recorder.flush();
            flushed = clock::now();
        }
        if !text.read(&mut bytes) {
            break;
        }
    }
    reader.push(&bytes, recorder);
    reader.finish(recorder);
}

/// The lines of all streams as one text.
struct Text {
    chunks: Chunks,
    lines: Lines,
    stop: CancellationToken,
}

impl Text {
    fn new(chunks: Chunks, stop: CancellationToken) -> Self {
        Self {
            chunks,
            lines: Lines::default(),
            stop,
        }
    }

    /// Appends the next lines to `text`, after a short wait. Returns `false` at the end of the output.
    fn read(&mut self, text: &mut Vec<u8>) -> bool {
        match self.chunks.next(FLUSH) {
            Ok(chunk) => {
                self.lines.push(&chunk, text);
                // Output that arrives in many pieces is parsed at once.
                while text.len() < AT_ONCE_BYTES
                    && let Ok(chunk) = self.chunks.next(Duration::ZERO)
                {
                    self.lines.push(&chunk, text);
                }
                return true;
            }
            Err(RecvTimeoutError::Timeout) if !self.stop.is_cancelled() => return true,
            Err(_) => {}
        }
        self.lines.finish(text);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_detection_is_retried_after_growth_and_at_the_end() {
        let mut attempts = Attempts::default();
        assert!(attempts.is_due(100, true), "the first");
        assert!(!attempts.is_due(100, true), "nothing new");
        assert!(!attempts.is_due(120, true), "a little more, at once");
        assert!(attempts.is_due(126, true), "a quarter more");
        assert!(attempts.is_due(126, false), "the end");
    }
}
