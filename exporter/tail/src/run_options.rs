//! The options of the user for the runs of an input.

use std::sync::Arc;

use pulsetrain_formats::{LogFormat, LogReader, Mapping, ReadLimits, RunHeader};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Run, Timezone, UsedTimezone, ids};

use crate::{Claims, Member, RankSource};

/// The options of the user for a run. The log provides the rest.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The format, or `None` to detect it.
    pub format: Option<&'static LogFormat>,
    /// The mapping of keys, for a format that takes one.
    pub mapping: Arc<Mapping>,
    /// The run's id.
    pub run_id: Option<String>,
    /// The run's name.
    pub run_name: Option<String>,
    /// The start of the run.
    pub start_unix_nanos: Option<UnixNanos>,
    /// `service.name`.
    pub service: Option<String>,
    /// Further attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// The source of the rank.
    pub rank: RankSource,
    /// The process of a log whose rank nothing else determines.
    pub member: Member,
    /// The claims of ranks by inputs.
    pub claims: Claims,
    /// The zone of times without one. `None`: inferred for a followed log, UTC for a finished one.
    pub timezone: Option<Timezone>,
    /// Whether lines that are no measurements are not recorded as `run.message`.
    pub without_messages: bool,
}

impl RunOptions {
    /// Returns a reader of a format.
    pub fn reader(&self, format: &LogFormat) -> LogReader {
        let mut reader = LogReader::mapped(format, &self.mapping, ReadLimits::default());
        if self.without_messages {
            reader.turn_off_messages();
        }
        reader
    }

    /// Returns the format that the user chose, and how.
    pub fn chosen_format(&self) -> Option<(&'static LogFormat, &'static str)> {
        let format = self.format?;
        let by_mapping = self.is_of_mapping(format);
        Some((
            format,
            if by_mapping {
                "named by the mapping"
            } else {
                "named by the user"
            },
        ))
    }

    /// Returns whether the user's mapping names the format.
    pub(crate) fn is_of_mapping(&self, format: &LogFormat) -> bool {
        self.mapping.format_name() == Some(format.name)
    }

    /// Returns the trainer: by the log, else by the mapping of the user, else by the format.
    pub fn framework(&self, format: &LogFormat, logged: Option<&'static str>) -> &str {
        let mapped = self
            .mapping
            .framework()
            .filter(|_| format.takes_mapping() || self.is_of_mapping(format));
        logged.or(mapped).unwrap_or(format.framework)
    }
    /// Returns the run of an input. A value of the user wins over one of the log, which wins over the name of the file.
    /// A start without a zone is in `timezone`.
    pub fn run(&self, format: &LogFormat, header: RunHeader, timezone: &UsedTimezone, input: &str) -> Run {
        let RunHeader {
            framework,
            run_name,
            project,
            start,
            first_record,
            start_is_in_name,
            ..
        } = header;
        let in_name = || {
            start_is_in_name
                .then(|| pulsetrain_record::start_in_name(input))
                .flatten()
        };
        let start_unix_nanos = self
            .start_unix_nanos
            .or_else(|| start.map(|start| timezone.instant(start)))
            .or_else(in_name);
        let member = self.rank.member(input, self.member);
        Run {
            id: self
                .run_id
                .clone()
                .unwrap_or_else(|| ids::run_id(format.name, &first_record)),
            name: self.run_name.clone().or(run_name).unwrap_or_default(),
            project: project.unwrap_or_default(),
            framework: self.framework(format, framework).to_owned(),
            service: self.service.clone().unwrap_or_default(),
            rank: member.rank,
            local_rank: member.local_rank,
            world_size: member.world_size,
            attempt: member.attempt,
            start_unix_nanos: start_unix_nanos.unwrap_or_default(),
            extra: self.resource.clone(),
        }
    }
}
