//! Reads the inputs of a conversion as OTLP messages, whatever their format (`detection`).

mod detection;

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read},
    path::Path,
};

use pulsetrain_backends::{looks_like_response, read_responses, read_zipkin};
use pulsetrain_formats::{LogFormat, TunixConversion, TunixVersion, convert_tunix_trace};
use pulsetrain_otlp::{
    Signal,
    frames::{FrameReader, inflated},
    limits::Limits,
};
use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_record::{UsedTimezone, start_in_name};
use pulsetrain_tail::RunOptions;

pub use self::detection::has_suffix;
use self::detection::{is_chrome_json, is_perfetto, is_zipkin, log_notice, report_notice};
use crate::{
    ConvertError, InputReport, NsightConversion, NsightError, NsightExport, PerfettoConversion,
    PerfettoTrace, ReadCounts, convert_chrome_json, convert_nsight, convert_perfetto,
};

/// The size of the head by which the format of an input is detected: the compressed bytes, and the decompressed start,
/// which may be that of a log.
const HEAD: u64 = 256 << 10;
const PLAIN_HEAD: u64 = 64 << 10;

/// The options for reading inputs.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions<'a> {
    /// The properties of the run that an input lacks.
    pub run: &'a RunOptions,
    /// The memory limit of one input.
    pub room: &'a MemoryBudget,
}

const OTHER_KINDS: &str =
    "of kinds that OTLP cannot represent, such as scheduling (ftrace) or memory profiles";

const UNDATED: &str = "the trace has no snapshot of the REALTIME clock, and its file name no start time: times start at 1970; \
                       pass --start-time";

const UNDATED_JSON: &str = "the trace has neither `baseTimeNanoseconds` nor times since 1970: times start at 1970; pass \
                            --start-time";

const UNDATED_EXPORT: &str =
    "the export has no TARGET_INFO_SESSION_START_TIME: times start at 1970; pass --start-time";

/// The bytes that some programs put in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of every SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

const BY_TRACE: &str = "the trace was drawn with `--by trace`: its spans have the resource `traces`, the name of their service as \
                        their scope and new span ids; convert a trace of `--attributes full` to get the same OTLP again";

/// The problem of an input that has bytes but no telemetry.
const NOTHING: &str = "the file has no spans, metrics or log records";

/// Reads a file of any format, or the standard input for `-`, and passes its messages on. `watch` sees the bytes that are
/// read, to show progress.
///
/// # Errors
/// The file or a temporary file cannot be read, or the first error of `deliver`. Problems of the content are in the report.
pub fn read_input<R: Read, E: From<ConvertError>>(
    path: &Path,
    options: ReadOptions<'_>,
    watch: impl FnOnce(Box<dyn Read>) -> R,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
) -> Result<InputReport, E> {
    let mut input = watch(open(path)?);
    let mut head = Vec::new();
    input
        .by_ref()
        .take(HEAD)
        .read_to_end(&mut head)
        .map_err(|source| ConvertError::Read {
            path: path.to_owned(),
            source,
        })?;
    let mut plain = plain_head(&head);
    // The readers of OTLP and of answers skip a byte order mark themselves, and report offsets that count it.
    let marked = plain.strip_prefix(BYTE_ORDER_MARK);
    let is_marked = marked.is_some_and(|text| is_chrome_json(text) || is_zipkin(text));
    if is_marked {
        plain.drain(..BYTE_ORDER_MARK.len());
    }
    // A pipe can be read only once, and its head is already consumed.
    let is_database = head.starts_with(SQLITE) && path.is_file();
    let full = Cursor::new(head).chain(input);
    let mut report = InputReport::new(path.display().to_string(), "");
    if let Some(notice) = report_notice(path) {
        report.problem(notice);
    } else if plain.starts_with(SQLITE) {
        let export = match is_database {
            true => NsightExport::open(path),
            false => NsightExport::copied(inflated(full), options.room),
        };
        report.nsight(export, path, options, deliver)?;
    } else if is_perfetto(path, &plain) {
        report.perfetto(full, path, options, deliver)?;
    } else if is_chrome_json(&plain) {
        report.chrome_json(text_of(full, is_marked), path, options, deliver)?;
    } else if is_zipkin(&plain) {
        report.zipkin(text_of(full, is_marked), deliver)?;
    } else if looks_like_response(&plain) {
        report.answer(inflated(full), deliver)?;
    } else {
        report.otlp(full, deliver)?;
        if report.messages == 0
            && let Some(notice) = log_notice(path, &plain)
        {
            report.lost = report.lost.max(1);
            report.problems = vec![notice];
        }
    }
    if report.messages == 0 && report.lost == 0 && !plain.trim_ascii().is_empty() {
        report.problem(NOTHING.to_owned());
    }
    Ok(report)
}

/// Returns the decompressed head of an input.
fn plain_head(head: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // An error here occurs again below, where the fault gets its place.
    let _ = inflated(head).take(PLAIN_HEAD).read_to_end(&mut plain);
    plain
}

/// Decompresses a text, and skips its byte order mark if it has one.
fn text_of(input: impl Read, is_marked: bool) -> impl Read {
    let mut text = inflated(input);
    if is_marked {
        // The mark is in the head, which was read without an error.
        let _ = text.read_exact(&mut [0; BYTE_ORDER_MARK.len()]);
    }
    text
}

fn open(path: &Path) -> Result<Box<dyn Read>, ConvertError> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let opened = File::open(path).map_err(|source| ConvertError::Open {
        path: path.to_owned(),
        source,
    })?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, opened)))
}

impl InputReport {
    fn otlp<E>(
        &mut self,
        input: impl Read,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.form = "otlp";
        let frames = FrameReader::new(input, Limits::default());
        let mut frames = frames.in_pieces().accept_protobuf_json();
        for frame in frames.by_ref() {
            match frame {
                Ok(frame) => {
                    self.messages += 1;
                    deliver(frame.signal, frame.bytes)?;
                }
                Err(error) => self.problem(error.to_string()),
            }
        }
        self.report_count(
            frames.protobuf_json(),
            "objects are in protobuf's own JSON mapping (ids in base64, enum values by name)",
        );
        if let Some((name, offset)) = frames.first_unknown() {
            let count = frames.unknown_fields();
            self.problem(format!(
                "{count} fields that OTLP does not have are left out; the first is {name:?}, in the object at byte {offset}"
            ));
            self.lost += count.saturating_sub(1);
        }
        Ok(())
    }

    fn answer<E>(
        &mut self,
        input: impl Read,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.form = "answer of a trace store";
        read_responses(input, &Limits::default(), |answer| self.take(answer, deliver))
    }

    fn zipkin<E>(
        &mut self,
        input: impl Read,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.form = "zipkin";
        read_zipkin(input, |answer| self.take(answer, deliver))
    }

    fn perfetto<E: From<ConvertError>>(
        &mut self,
        input: impl Read,
        path: &Path,
        options: ReadOptions<'_>,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.form = "perfetto";
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut trace = PerfettoTrace::new(input);
        if let Some(version) = trace.find_leading_track(TunixVersion::from_track) {
            let timezone = UsedTimezone::named_or_utc(options.run.timezone.as_ref());
            let run = |format: &LogFormat, header| options.run.run(format, header, &timezone, &name);
            let conversion = convert_tunix_trace(version, &mut trace, run, deliver)?;
            self.tunix(conversion, trace.counts());
        } else {
            let start = options.run.start_unix_nanos.or_else(|| start_in_name(&name));
            let conversion = convert_perfetto(trace, &name, start, options.room, deliver)?;
            self.conversion(conversion, UNDATED);
        }
        Ok(())
    }

    fn chrome_json<E: From<ConvertError>>(
        &mut self,
        input: impl Read,
        path: &Path,
        options: ReadOptions<'_>,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.form = "chrome json";
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let conversion =
            convert_chrome_json(input, &name, options.run.start_unix_nanos, options.room, deliver)?;
        self.conversion(conversion, UNDATED_JSON);
        Ok(())
    }

    fn nsight<E: From<ConvertError>>(
        &mut self,
        export: Result<NsightExport, NsightError>,
        path: &Path,
        options: ReadOptions<'_>,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.form = "nsight systems";
        let export = match export {
            Ok(export) => export,
            Err(error @ NsightError::Temporary(_)) => return Err(ConvertError::Export(error).into()),
            Err(error) => {
                self.problem(error.to_string());
                return Ok(());
            }
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let conversion = convert_nsight(
            &export,
            &name,
            options.run.start_unix_nanos,
            options.room,
            deliver,
        )?;
        self.export(conversion);
        Ok(())
    }

    /// Adds the counts of the conversion of an export of Nsight Systems.
    fn export(&mut self, conversion: NsightConversion) {
        for error in conversion.errors {
            self.problem(error);
        }
        if conversion.is_undated {
            self.problem(UNDATED_EXPORT.to_owned());
        }
        self.messages = conversion.messages;
        self.report_count(
            conversion.unfinished,
            "ranges never end; their spans end with the export",
        );
        self.report_count(
            conversion.too_many_open,
            "ranges begin while too many others are open; nothing is nested in them",
        );
        self.report_count(
            conversion.without_process,
            "rows of GPU work have no process; no arrow leads to them",
        );
        for (table, rows) in &conversion.left_out {
            self.report_count(*rows, &format!("rows of {table} are not converted"));
        }
        self.spilled_bytes = conversion.spilled_bytes;
    }

    /// Adds the counts of a conversion; `undated` is the problem of a trace without a wall clock.
    fn conversion(&mut self, conversion: PerfettoConversion, undated: &str) {
        for error in conversion.errors {
            self.problem(error);
        }
        if conversion.stray_ends > 0 {
            self.problem(format!(
                "{} ends of slices that never began",
                conversion.stray_ends
            ));
        }
        if conversion.is_undated {
            self.problem(undated.to_owned());
        }
        self.messages = conversion.messages;
        self.packets(conversion.packets);
        self.report_count(
            conversion.unfinished,
            "slices never end; their spans end with the trace",
        );
        self.report_count(
            conversion.flows_without_span,
            "flow endpoints outside any slice were dropped: only spans have links",
        );
        if conversion.is_by_trace {
            self.notes.push(BY_TRACE.to_owned());
        }
        self.spilled_bytes = conversion.spilled_bytes;
    }

    /// Adds the counts of the conversion of a Tunix trace.
    fn tunix(&mut self, conversion: TunixConversion, packets: ReadCounts) {
        for error in conversion.errors {
            self.problem(error);
        }
        for problem in conversion.skipped.problems() {
            if problem.reason.is_loss() {
                self.problem(problem.message.clone());
            }
        }
        self.messages = conversion.messages;
        self.packets(packets);
    }

    /// Reports the packets that were skipped.
    fn packets(&mut self, packets: ReadCounts) {
        if packets.without_state > 0 {
            self.problem(format!(
                "{} packets rely on state that was lost",
                packets.without_state
            ));
        }
        if self.messages == 0 && packets.unknown > 0 {
            self.problem(format!(
                "the trace has no track events or log lines; its {} packets are {OTHER_KINDS}",
                packets.unknown
            ));
        } else {
            self.report_count(packets.unknown, &format!("packets are {OTHER_KINDS}"));
        }
    }
}
