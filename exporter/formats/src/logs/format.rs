//! The definition of a log format: what every format file provides, and what the first bytes of an input identify.

use std::{sync::Arc, time::Duration};

use pulsetrain_mapping::{CoverageRow, Mapping};
use pulsetrain_record::{LoggedTime, UsedTimezone};

use super::{LogParser, encoding, lines};

/// The number of bytes at the beginning of an input that identify its format and its run.
pub const HEAD_BYTES: usize = 256 << 10;

/// A log format: a row of [`FORMATS`](super::FORMATS).
#[derive(Debug)]
pub struct LogFormat {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// What writes it, in one sentence.
    pub brief: &'static str,
    /// The trainer that writes it: `service.name` where the user says nothing else.
    pub framework: &'static str,
    /// Whether the same run goes on in a file that was emptied or replaced, by its writer or by whoever rotates logs. In
    /// the others a new run begins then.
    pub shrinks: bool,
    /// Whether one rank of a run may write several files of this format, as writers of TensorBoard do.
    pub splits: bool,
    /// Says by what the first bytes of an input show that it is of this format, or nothing.
    pub recognise: fn(&[u8]) -> Option<&'static str>,
    /// Reads from the first bytes of an input what its run is called and when it began; of a format with a mapping, by the
    /// default one. [`Self::identity`] asks the mapping of the user.
    pub identify: fn(&[u8]) -> Identity,
    /// Begins to parse an input.
    pub parser: Begin,
    /// What becomes of every name upstream.
    pub coverage: fn() -> Vec<CoverageRow>,
}

/// How a format begins to parse an input.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// By what it knows itself.
    Known(fn() -> Box<dyn LogParser>),
    /// By what it knows itself, of an input that no other format recognises.
    Fallback(fn() -> Box<dyn LogParser>),
    /// By an embedded mapping.
    Embedded {
        /// Begins to parse an input.
        parser: fn() -> Box<dyn LogParser>,
        /// Whether the printed text at the beginning of an input is of this format.
        detects: fn(&str) -> bool,
    },
    /// By what the user says that the keys mean.
    Mapped(fn(&Arc<Mapping>) -> Box<dyn LogParser>),
}

impl LogFormat {
    /// Whether what its keys mean is for a [`Mapping`] to say.
    pub fn takes_mapping(&self) -> bool {
        matches!(self.parser, Begin::Mapped(_))
    }

    /// Whether it only recognises inputs that no other format does.
    pub fn is_fallback(&self) -> bool {
        matches!(self.parser, Begin::Fallback(_))
    }

    /// Returns what the first bytes of an input show of its run. Where the format takes a mapping, the mapping decides which line
    /// is the first record; a head of full size without a record identifies the run by itself.
    pub fn identity(&self, head: &[u8], mapping: &Arc<Mapping>) -> Identity {
        let Begin::Mapped(begin) = self.parser else {
            return (self.identify)(head);
        };
        let mut identity = lines::identify_by(begin(mapping), head);
        // The mark of an editor is not part of the head.
        let full = HEAD_BYTES - encoding::UTF_8.len();
        let is_text = || memchr::memchr(0, head).is_none();
        if identity.first_record.is_empty() && head.len() >= full && is_text() {
            identity.first_record = head[..full].to_vec();
        }
        identity
    }
}

/// What the first bytes of an input say of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The trainer that wrote it, where the format is that of several.
    pub framework: Option<&'static str>,
    /// The name that the user gave the run.
    pub run_name: Option<String>,
    /// The project that the run belongs to.
    pub project: Option<String>,
    /// When the run began, in nanoseconds since 1970.
    pub start_unix_nanos: Option<u64>,
    /// Whether that is a local time, of a zone that the input does not name.
    pub start_is_local: bool,
    /// The first record: it tells this run from every other.
    pub first_record: Vec<u8>,
    /// Whether the next records could still say more of the run.
    pub may_grow: bool,
    /// Whether only the name of the file says when the run began.
    pub start_is_in_name: bool,
}

/// For how long an input may be silent before what it has said of its run is taken for all of it.
pub const IDENTITY_PATIENCE: Duration = Duration::from_secs(10);

impl Identity {
    /// The same identity with the instant of a start that is a local time.
    #[must_use]
    pub fn in_timezone(self, timezone: &UsedTimezone) -> Self {
        let instant = |local| timezone.instant(LoggedTime::Local(local));
        Self {
            start_unix_nanos: match self.start_is_local {
                true => self.start_unix_nanos.map(instant),
                false => self.start_unix_nanos,
            },
            start_is_local: false,
            ..self
        }
    }

    /// Whether there is a run, and everything is known that the input will say of it.
    pub fn is_whole(&self) -> bool {
        !self.first_record.is_empty() && !self.may_grow
    }
}
