//! A format for tests: its parser panics at a line `panic` and makes a record of every other line.

use pulsetrain_formats::{LogFormat, LogParser, ParserFactory, RunHeader, Window};
use pulsetrain_record::Recorder;

pub(crate) static FORMAT: LogFormat = LogFormat {
    name: "fragile",
    brief: "lines of a test",
    framework: "test",
    continues_after_truncate: false,
    splits: false,
    detect: |_| None,
    identify: |head| RunHeader {
        first_record: head.to_vec(),
        ..RunHeader::default()
    },
    parser: ParserFactory::Builtin(|| Box::new(Fragile)),
    coverage: Vec::new,
};

struct Fragile;

impl LogParser for Fragile {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        for line in window.bytes.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") && !window.is_last {
                break;
            }
            assert_ne!(line.trim_ascii_end(), b"panic", "the line is fatal");
            recorder.record_custom(window.time.unix_nanos, "lines", 1.0);
            recorder.end_of_record();
            done += line.len();
        }
        done
    }

    fn resync(&mut self) {}
}
