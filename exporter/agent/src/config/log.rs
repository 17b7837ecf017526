//! The section `log`: the level and the format of the agent's messages.

use clap::ValueEnum;

use super::section::{Setting, Shown, section};
use crate::log::{Format, Level};

section! {
    /// The messages of the agent on standard error.
    pub(crate) struct LogSection {
        /// The minimum level of messages: error, warn, info or debug. --log-level overrides it.
        level: Level = Level::Info,
        /// text, or json for one object per line: time (RFC 3339, UTC), level, message, and the sink or source of the
        /// message. --log-format overrides it.
        format: Format = Format::Text,
    }
}

impl Setting for Level {
    fn shown(&self) -> Shown {
        shown(self)
    }
}

impl Setting for Format {
    fn shown(&self) -> Shown {
        shown(self)
    }
}

/// Shows a value under its name on the command line.
fn shown(value: &impl ValueEnum) -> Shown {
    let value = value.to_possible_value();
    Shown::Scalar(value.map(|value| value.get_name().to_owned()).unwrap_or_default())
}
