//! Both formats as rows of the table of formats: from the bytes of a file, as they come, to items.

use pulsetrain_mapping::CoverageRow;
use pulsetrain_perfetto::{EventKind, Item, ReadError, TraceDecoder, TraceReader};
use serde_json::Value as Json;

use super::{TunixTrace, Version, WallClock, names};
use crate::logs::{LogFormat, LogParser, ParserFactory, RunHeader, Window};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

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

/// The row of version 2: a file that is written anew with every step.
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

/// A packet's first byte; what is compressed begins otherwise.
const PACKET: u8 = b'\n';

fn detect(head: &[u8], version: Version, sign: &'static str) -> Option<&'static str> {
    (version_of(head) == Some(version)).then_some(sign)
}

fn version_of(head: &[u8]) -> Option<Version> {
    let packets = Some(head).filter(|head| head.first() == Some(&PACKET))?;
    // Tracks stand before the first event.
    let tracks = TraceReader::new(packets).map_while(|item| match item {
        Ok(Item::Track(track)) => Some(track),
        _ => None,
    });
    tracks.take(MOST_TRACKS).find_map(|track| Version::of(&track))
}

/// In how many tracks the version must show.
const MOST_TRACKS: usize = 1000;

/// The first slice: its time tells the run from every other.
fn identify(head: &[u8]) -> RunHeader {
    let mut items = TraceReader::new(head).filter_map(Result::ok);
    let first_record = items.find_map(|item| first_record(&item)).unwrap_or_default();
    RunHeader {
        first_record,
        start_is_in_name: true,
        ..RunHeader::default()
    }
}

/// What tells a run from every other, where the item is the beginning of a slice.
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
    /// Where the next packet begins is not known, so nothing can be read any more.
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

    /// Takes what is whole in a window, and says how many bytes are done with.
    fn take(&mut self, window: &Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let Self { trace, decoder, .. } = self;
        let decoded = decoder.decode(window.bytes, |item| match item {
            Ok(item) => trace.item(item, window.start, recorder),
            Err(error) => skip(&error, window, recorder),
        });
        match decoded {
            Ok(done) if window.is_last && done < window.bytes.len() => {
                let message =
                    || "the trace ends inside a packet: its writer is still at it, or was stopped".to_owned();
                recorder.report(
                    SkipReason::IncompleteRecord,
                    position(window, done as u64),
                    message,
                );
                window.bytes.len()
            }
            Ok(done) => done,
            Err(error) => {
                skip(&error, window, recorder);
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
            self.take(&window, recorder)
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

    fn restore(&mut self, told: &Json) -> bool {
        self.trace.restore(told)
    }
}

fn skip(error: &ReadError, window: &Window<'_>, recorder: &mut Recorder<'_>) {
    let message = || error.kind.to_string();
    recorder.report(
        SkipReason::MalformedRecord,
        position(window, error.offset),
        message,
    );
}

/// Where something stands in the file, which has no lines.
fn position(window: &Window<'_>, offset: u64) -> SourcePosition {
    SourcePosition {
        offset: window.start.offset + offset,
        line: 1,
    }
}
