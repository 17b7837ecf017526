//! Catches the panic of a parser: it ends the reading of one input, and the other inputs go on.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs a piece of the reading of an input.
///
/// What the piece worked on is memory-safe after a panic, but may be in the middle of a record: the caller drops the parser.
///
/// # Errors
/// The message of the panic, for [`SourceError::panicked`](crate::SourceError::panicked).
pub fn caught<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| message(&*panic).to_owned())
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// A format whose parser panics at a line `panic` and makes a record of every other line.
#[cfg(test)]
pub(crate) mod fragile {
    use super::super::{
        Begin, Identity, LogFormat,
        lines::{Line, LineFormat, LineParser},
    };
    use pulsetrain_record::Recorder;

    pub(crate) static FORMAT: LogFormat = LogFormat {
        name: "fragile",
        brief: "lines of a test",
        framework: "test",
        shrinks: false,
        splits: false,
        recognise: |_| None,
        identify: |head| Identity {
            first_record: head.to_vec(),
            ..Identity::default()
        },
        parser: Begin::Known(|| Box::new(LineParser::<Fragile>::default())),
        coverage: Vec::new,
    };

    #[derive(Default)]
    struct Fragile;

    impl LineFormat for Fragile {
        fn sign(_: &str) -> Option<&'static str> {
            None
        }

        fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
            assert_ne!(line.text, "panic", "the line is fatal");
            recorder.record_custom(line.read_time(), "lines", 1.0);
            true
        }
    }
}
