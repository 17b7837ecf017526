//! The kinds of source that a configuration can name.

use serde::Deserialize;

use super::{
    Named, Placed,
    mapping::MappingSection,
    named::Kinds,
    quantity::Time,
    section::{Key, Section, Setting, section},
};

/// A source.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceConfig {
    /// Logs that are followed.
    Logs(Placed<LogsSection>),
}

section! {
    /// Training logs, followed while they are written: through rotation, truncation and restarts.
    pub(crate) struct LogsSection {
        /// Files, directories, and patterns with * and **; what is not there yet is waited for.
        paths: Vec<Placed<String>> = Vec::new(),
        /// The format, or auto to recognise it.
        format: Placed<String> = Placed::nowhere("auto".to_owned()),
        /// For the formats json and keyvalue: which key is which metric, as in {step: iter, values: [{key: loss, metric:
        /// train.loss}, {key: dt, metric: train.step.duration, unit: ms}]}. MAPPING.md shows all that can be said.
        mapping: Option<MappingSection> = None,
        /// The id of the run; derived from its first record where it is not given.
        run_id: Option<String> = None,
        /// The name of the run; what the log says where it is not given.
        run_name: Option<String> = None,
        /// How often the files are looked at where the system does not tell of changes.
        poll_interval: Time = Time::secs(1),
    }
}

/// The source of the example.
pub(super) fn example() -> Named<SourceConfig> {
    let [(name, source)] = examples();
    [(name.to_owned(), source)].into_iter().collect()
}

fn examples() -> [(&'static str, SourceConfig); 1] {
    let logs = LogsSection {
        paths: vec![Placed::nowhere("training.json".to_owned())],
        ..LogsSection::default()
    };
    [("trainer", SourceConfig::Logs(Placed::nowhere(logs)))]
}

impl Kinds for SourceConfig {
    fn kind(&self) -> Key {
        match self {
            Self::Logs(logs) => Key {
                name: "logs",
                doc: LogsSection::DOC,
                value: logs.shown(),
            },
        }
    }

    fn examples() -> Vec<(&'static str, Self)> {
        examples().into()
    }
}
