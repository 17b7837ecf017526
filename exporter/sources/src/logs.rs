//! Training logs: one file a format, one row of [`FORMATS`] a format.
//!
//! A format says how to recognise its files and parses bytes into a [`Recorder`]; reading, batching and sending are the same
//! for all of them ([`LogSource`]).

mod absl;
mod claims;
mod clean;
mod encoding;
mod folder;
mod generic;
mod huggingface;
mod kempnerforge;
mod leading_time;
mod line_clock;
mod lines;
mod literal;
mod maxtext;
mod megatron;
mod member;
mod pace;
pub(crate) mod panicked;
mod parser;
mod printed;
mod ranked;
mod reader;
#[cfg(test)]
pub(crate) mod sampled;
pub(crate) mod source;
mod spans;
mod surogate;
mod tail;
pub(crate) mod time;
mod torchspec;
mod torchtitan;
mod trainers;
mod tunix;

use std::{sync::Arc, time::Duration};

use self::trainers::trainer_format;
use crate::SourceError;
use pulsetrain_mapping::{CoverageRow, Mapping};
use pulsetrain_record::{LoggedTime, Recorder, UsedTimezone};

pub use claims::Claims;
pub use folder::logs_in;
pub(crate) use generic::key_notices;
pub use generic::{KeyRole, KeyUse, suggest_mapping};
pub use member::{Member, RankSource};
pub use pace::Pace;
pub use panicked::caught;
pub use parser::{LogParser, ReadTime, Window};
pub use reader::{LogReader, ReadLimits};
pub use source::{ImportReport, LogInput, LogSource, RunOptions};
pub use tail::{
    AtStop, OutputStart, Positions, PositionsNotice, TailConfig, TailEvent, TailReading, TailSource,
    TailStatus,
};

/// A log format: a row of [`FORMATS`].
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
        self.name == generic::GENERIC.name
    }

    /// Returns what the first bytes of an input show of its run. Where the format takes a mapping, the mapping decides which line
    /// is the first record; a head of full size without a record identifies the run by itself.
    pub fn identity(&self, head: &[u8], mapping: &Arc<Mapping>) -> Identity {
        let Begin::Mapped(begin) = self.parser else {
            return (self.identify)(head);
        };
        let mut identity = lines::identify_by(begin(mapping), head);
        // The mark of an editor is not part of the head.
        let full = source::HEAD_BYTES - encoding::UTF_8.len();
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

/// Every format that is known.
pub static FORMATS: &[LogFormat] = &[
    surogate::FORMAT,
    surogate::console::FORMAT,
    surogate::jsonl::FORMAT,
    maxtext::FORMAT,
    maxtext::metrics_file::FORMAT,
    maxtext::entries::FORMAT,
    kempnerforge::FORMAT,
    torchspec::FORMAT,
    tunix::FORMAT,
    tunix::otel::FORMAT,
    huggingface::FORMAT,
    huggingface::state::FORMAT,
    torchtitan::FORMAT,
    torchtitan::structured::FORMAT,
    megatron::FORMAT,
    crate::tunix_trace::GROUPS_FORMAT,
    crate::tunix_trace::TIMELINES_FORMAT,
    crate::tensorboard::FORMAT,
    crate::wandb::FORMAT,
    trainer_format!("verl", "console of verl"),
    trainer_format!("nanogpt", "console of nanoGPT"),
    trainer_format!("nanochat", "console of nanochat"),
    trainer_format!("deepspeed", "console of DeepSpeed"),
    trainer_format!("llamafactory", "trainer_log.jsonl of LLaMA-Factory"),
    trainer_format!("lightning", "metrics.csv of Lightning and litgpt"),
    trainer_format!("torchtune", "DiskLogger and StdoutLogger of torchtune"),
    trainer_format!("openrlhf", "console of OpenRLHF"),
    trainer_format!("litgpt", "console of litgpt"),
    trainer_format!("composer", "console and log file of Composer"),
    trainer_format!("llmc", "console and main.log of llm.c"),
    trainer_format!("keras", "progress bars of Keras"),
    trainer_format!("nccl-inspector", "JSON of NCCL Inspector"),
    generic::JSON,
    generic::KEY_VALUE,
    generic::TEXT,
    generic::CSV,
    generic::GENERIC,
];

/// The format of a name.
///
/// # Errors
/// The names of all formats, if there is none of this name.
pub fn format_by_name(name: &str) -> Result<&'static LogFormat, String> {
    FORMATS
        .iter()
        .find(|format| format.name == name)
        .ok_or_else(format_names)
}

/// The names of all formats, for messages.
pub fn format_names() -> String {
    FORMATS
        .iter()
        .map(|format| format.name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The format whose signs the first bytes of an input bear, with the sign.
///
/// # Errors
/// [`SourceError::UnknownFormat`] where there is none, [`SourceError::Compressed`] or [`SourceError::Utf16`] where that is why,
/// [`SourceError::AmbiguousFormat`] where there are several.
pub fn recognise(input: &str, head: &[u8]) -> Result<(&'static LogFormat, &'static str), SourceError> {
    let text = encoding::without_mark(head);
    let mut candidates: Vec<_> = FORMATS
        .iter()
        .filter(|format| !matches!(format.parser, Begin::Embedded { .. }) && !format.is_fallback())
        .filter_map(|format| Some((format, (format.recognise)(text)?)))
        .collect();
    if candidates.is_empty() {
        candidates = trainers(text);
    }
    let fallback = || {
        let mut formats = FORMATS.iter().filter(|format| format.is_fallback());
        formats.find_map(|format| Some((format, (format.recognise)(text)?)))
    };
    match candidates[..] {
        [] if encoding::unreadable(input, head).is_none()
            && let Some(found) = fallback() =>
        {
            Ok(found)
        }
        [] => Err(
            encoding::unreadable(input, head).unwrap_or_else(|| SourceError::UnknownFormat {
                name: input.to_owned(),
                instead: generic::instead(input, text),
            }),
        ),
        [one] => Ok(one),
        _ => Err(SourceError::AmbiguousFormat {
            name: input.to_owned(),
            candidates: candidates
                .iter()
                .map(|(format, sign)| format!("{} ({sign})", format.name))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// The trainers whose mappings detect the first bytes of an input, with the sign. Their patterns take longer than the signs of all
/// other formats together.
fn trainers(head: &[u8]) -> Vec<(&'static LogFormat, &'static str)> {
    let printed = trainers::printed(head);
    let is_of = |format: &&LogFormat| match format.parser {
        Begin::Embedded { detects, .. } => detects(&printed),
        _ => false,
    };
    let formats = FORMATS.iter().filter(is_of);
    formats.map(|format| (format, trainers::DETECTED)).collect()
}

/// Every parser on a whole input that it may not have been made for; for fuzzing.
#[doc(hidden)]
pub fn parse_with_every_format(bytes: &[u8]) {
    for format in FORMATS {
        let mut recorder = Recorder::new(pulsetrain_record::Run::default(), |_| {});
        (format.recognise)(bytes);
        format.identity(bytes, &Arc::default());
        let mut reader = LogReader::new(format, ReadLimits::default());
        let (first, second) = bytes.split_at(bytes.len() / 2);
        reader.push(first, &mut recorder);
        reader.push(second, &mut recorder);
        reader.finish(&mut recorder);
        recorder.finish();
    }
}
