//! Registers both formats in the table of formats, and parses a file window by window.

use pulsetrain_mapping::CoverageRow;
use pulsetrain_perfetto::{EventKind, Item, ReadError, TraceDecoder, TraceReader};
use serde_json::Value as Json;

use super::{TunixTrace, Version, WallClock, names};
use crate::logs::{LogFormat, LogParser, ParserFactory, RunHeader, Window};
use pulsetrain_record::{Recorder, SkipReason};

/// The row of version 1: a file that grows by a fragment a step.
pub(crate) const GROUPS_FORMAT: LogFormat = LogFormat {
    name: "tunix-trace",
    brief: "Perfetto traces of Tunix, version 1 (perfetto_trace_*.pb)",
    framework: "tunix",
    continues_after_truncate: false,
    splits: true,
    detect: |head| {
        detect(
            head,
            Version::Groups,
            "the outermost track of Tunix's traces of version 1",
        )
    },
    identify,
    parser: ParserFactory::Builtin(|| Box::new(TraceParser::new(Version::Groups))),
    coverage: names::coverage,
};

/// The row of version 2: a file that its writer rewrites with every step.
pub(crate) const TIMELINES_FORMAT: LogFormat = LogFormat {
    name: "tunix-trace-v2",
    brief: "Perfetto traces of Tunix, version 2 (perfetto_trace_v2_*.pb)",
    framework: "tunix",
    continues_after_truncate: true,
    splits: true,
    detect: |head| {
        detect(
            head,
            Version::Timelines,
            "the tracks of Tunix's traces of version 2",
        )
    },
    identify,
    parser: ParserFactory::Builtin(|| Box::new(TraceParser::new(Version::Timelines))),
    coverage: || {
        vec![CoverageRow::rule(
            "as `tunix-trace`",
            "the same",
            "both versions are in one table",
        )]
    },
};

/// The first byte of a packet. Compressed packets begin with another byte.
const PACKET: u8 = b'\n';

fn detect(head: &[u8], version: Version, sign: &'static str) -> Option<&'static str> {
    (version_of(head) == Some(version)).then_some(sign)
}

fn version_of(head: &[u8]) -> Option<Version> {
    let packets = Some(head).filter(|head| head.first() == Some(&PACKET))?;
    // Tracks precede the first event.
    let tracks = TraceReader::new(packets).map_while(|item| match item {
        Ok(Item::Track(track)) => Some(track),
        _ => None,
    });
    tracks
        .take(MAX_TRACKS)
        .find_map(|track| Version::from_track(&track))
}

/// The most tracks that are searched for the version.
const MAX_TRACKS: usize = 1000;

/// Identifies the run by its first slice, whose time is unique.
fn identify(head: &[u8]) -> RunHeader {
    let mut items = TraceReader::new(head).filter_map(Result::ok);
    let first_record = items.find_map(|item| first_record(&item)).unwrap_or_default();
    RunHeader {
        first_record,
        start_is_in_name: true,
        ..RunHeader::default()
    }
}

/// Returns the bytes that identify a run, or `None` if the item is not the beginning of a slice.
pub(crate) fn first_record(item: &Item) -> Option<Vec<u8>> {
    match item {
        Item::Event(event) if event.kind == EventKind::Begin => {
            let time = WallClock::nanos(event.time).to_le_bytes();
            Some([&time, event.name.as_bytes()].concat())
        }
        _ => None,
    }
}

/// Parses the packets of one file.
#[derive(Debug)]
struct TraceParser {
    trace: TunixTrace,
    decoder: TraceDecoder,
    is_record_start: bool,
    /// Whether the packet boundary is lost: the rest of the file cannot be parsed.
    is_lost: bool,
}

impl TraceParser {
    fn new(version: Version) -> Self {
        Self {
            trace: TunixTrace::new(version),
            decoder: TraceDecoder::default(),
            is_record_start: false,
            is_lost: false,
        }
    }

    /// Decodes the complete packets of a window and returns the number of bytes consumed.
    fn decode(&mut self, window: &Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let Self { trace, decoder, .. } = self;
        let decoded = decoder.decode(window.bytes, |item| match item {
            Ok(item) => trace.item(item, window.start, recorder),
            Err(error) => report(&error, window, recorder),
        });
        match decoded {
            Ok(done) if window.is_last && done < window.bytes.len() => {
                let message = || {
                    "the trace ends inside a packet: its writer is still writing, or was stopped".to_owned()
                };
                recorder.report(SkipReason::IncompleteRecord, window.at(done), message);
                window.bytes.len()
            }
            Ok(done) => done,
            Err(error) => {
                report(&error, window, recorder);
                self.is_lost = true;
                window.bytes.len()
            }
        }
    }
}

impl LogParser for TraceParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        if window.start.offset == 0 && std::mem::replace(&mut self.is_record_start, !window.bytes.is_empty())
        {
            self.trace.restart();
            self.decoder = TraceDecoder::default();
            self.is_lost = false;
        }
        let done = if self.is_lost {
            window.bytes.len()
        } else {
            self.decode(&window, recorder)
        };
        if window.is_last {
            self.trace.end(recorder);
        } else {
            self.trace.pause(recorder);
        }
        done
    }

    fn resync(&mut self) {
        self.is_lost = true;
    }

    fn is_rewritten(&self) -> bool {
        self.trace.is_rewritten()
    }

    fn snapshot(&self) -> Option<Json> {
        self.trace.snapshot()
    }

    fn restore(&mut self, state: &Json) -> bool {
        self.trace.restore(state)
    }
}

fn report(error: &ReadError, window: &Window<'_>, recorder: &mut Recorder<'_>) {
    let position = window.at(error.offset as usize);
    recorder.report(SkipReason::MalformedRecord, position, || error.kind.to_string());
}
