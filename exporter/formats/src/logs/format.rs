//! The definition of a log format, and the header of a run that the first bytes of an input hold.

use std::{sync::Arc, time::Duration};

use pulsetrain_mapping::{CoverageRow, Mapping};
use pulsetrain_record::LoggedTime;

use super::{LogParser, encoding, layers, lines};

/// The number of leading bytes that are read to detect the format and the run of an input.
pub const HEAD_BYTES: usize = 256 << 10;

/// Returns the signature of a format in the first bytes of an input, or `None`.
pub(super) type Detect = fn(&[u8]) -> Option<&'static str>;

/// A log format: a row of [`FORMATS`](super::FORMATS).
#[derive(Debug)]
pub struct LogFormat {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// The program that writes the format, in one sentence.
    pub brief: &'static str,
    /// The trainer that writes the format: the default of `service.name`.
    pub framework: &'static str,
    /// Whether the run continues in a file that was truncated or replaced, by its writer or by a log rotation. If `false`, a
    /// new run begins then.
    pub continues_after_truncate: bool,
    /// Whether one rank of a run may write several files of this format, as TensorBoard writers do.
    pub splits: bool,
    /// Returns the signature of the format in the first bytes of an input, or `None`.
    pub detect: Detect,
    /// Returns the header of the run in the first bytes of an input. A format with a mapping uses the default mapping;
    /// [`Self::run_header`] uses the user's.
    pub identify: fn(&[u8]) -> RunHeader,
    /// Creates the parser of an input.
    pub parser: ParserFactory,
    /// Returns the coverage table: the metric of every upstream key.
    pub coverage: fn() -> Vec<CoverageRow>,
}

/// Creates the parser of a format.
#[derive(Clone, Copy, Debug)]
pub enum ParserFactory {
    /// A parser that needs no mapping.
    Builtin(fn() -> Box<dyn LogParser>),
    /// A parser that needs no mapping, for inputs that no other format detects.
    Fallback(fn() -> Box<dyn LogParser>),
    /// A parser with an embedded mapping.
    Embedded {
        /// Creates the parser of an input.
        parser: fn() -> Box<dyn LogParser>,
        /// Whether the text at the beginning of an input is of this format.
        detects: fn(&str) -> bool,
    },
    /// A parser with the user's mapping.
    Mapped(fn(&Arc<Mapping>) -> Box<dyn LogParser>),
}

impl LogFormat {
    /// Returns whether the format needs a [`Mapping`] of its keys.
    pub fn takes_mapping(&self) -> bool {
        matches!(self.parser, ParserFactory::Mapped(_))
    }

    /// Returns whether the format is used only for inputs that no other format detects.
    pub fn is_fallback(&self) -> bool {
        matches!(self.parser, ParserFactory::Fallback(_))
    }

    /// Returns whether the summary lists the use of the keys: the format is of no known trainer.
    pub fn lists_keys(&self) -> bool {
        self.takes_mapping() || self.is_fallback()
    }

    /// Returns the header of the run in the first bytes of an input. The mapping, if the format takes one, decides which line
    /// is the first record. A head of full size without a record identifies the run by itself.
    pub fn run_header(&self, head: &[u8], mapping: &Arc<Mapping>) -> RunHeader {
        let ParserFactory::Mapped(begin) = self.parser else {
            let layers = layers::layers(self.detect, head).unwrap_or(0);
            let inner = layers::without_layers(head, layers).filter(|_| layers > 0);
            return (self.identify)(inner.as_deref().unwrap_or(head));
        };
        let mut identity = lines::identify_by(begin(mapping), head);
        // The head has no byte order mark.
        let full = HEAD_BYTES - encoding::UTF_8.len();
        let is_text = || memchr::memchr(0, head).is_none();
        if identity.first_record.is_empty() && head.len() >= full && is_text() {
            identity.first_record = head[..full].to_vec();
        }
        identity
    }
}

/// The header of a run: its identity, as the first bytes of an input show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHeader {
    /// The trainer that wrote the input, if several trainers write this format.
    pub framework: Option<&'static str>,
    /// The name that the user gave the run.
    pub run_name: Option<String>,
    /// The project that the run belongs to.
    pub project: Option<String>,
    /// The start of the run as the log prints it: an instant, or a local time without a zone.
    pub start: Option<LoggedTime>,
    /// The first record. It distinguishes this run from every other.
    pub first_record: Vec<u8>,
    /// Whether later records may complete the header.
    pub is_partial: bool,
    /// Whether the start comes from the name of the file.
    pub start_is_in_name: bool,
}

/// An incomplete header is used if the input has been silent for this long.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

impl RunHeader {
    /// Returns whether the input has a first record and the header is final.
    pub fn is_complete(&self) -> bool {
        !self.first_record.is_empty() && !self.is_partial
    }
}
