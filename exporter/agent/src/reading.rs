//! The options of reading logs, which `import` and `show` share.

use std::path::PathBuf;

use clap::Args;
use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::Problem;
use pulsetrain_record::Timezone;
use pulsetrain_tail::{RankSource, RunOptions};

use crate::{
    cli::{FormatChoice, format, not_empty, timezone},
    failure::Failure,
    import::mapping,
};

/// The options of reading logs.
#[derive(Args, Debug)]
pub(crate) struct ReadingArguments {
    /// The format of the logs [default: detected from their contents]
    #[arg(long, value_name = "NAME|auto", default_value = "auto", hide_default_value = true, value_parser = format)]
    pub(crate) format: FormatChoice,

    /// A YAML file that maps keys to metrics, like {format: text, step: iter, values: [{key: loss, metric: train.loss}]}. Its
    /// `format` applies unless --format is given
    #[arg(long, value_name = "FILE")]
    pub(crate) mapping: Option<PathBuf>,

    /// The id of the run [default: derived from the first record]
    #[arg(long, value_name = "ID", value_parser = not_empty)]
    pub(crate) run_id: Option<String>,

    /// The name of the run [default: from the log]
    #[arg(long, value_name = "NAME", value_parser = not_empty)]
    pub(crate) run_name: Option<String>,

    /// The rank of every PATH [default: from torchrun's layout attempt_0/3/stdout.log, else from RANK, SLURM_PROCID or similar]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) rank: Option<i64>,

    /// A regular expression whose first group captures the rank in each PATH, such as 'rank_(\d+)'
    #[arg(long, value_name = "REGEX", conflicts_with = "rank", value_parser = RankSource::from_path)]
    pub(crate) rank_pattern: Option<RankSource>,

    /// The start time of the run, if the log does not contain it: 2026-11-21T00:18:40Z. Records without timestamps follow it
    #[arg(long, value_name = "RFC3339", value_parser = start_time)]
    pub(crate) start_time: Option<UnixNanos>,

    /// The zone of timestamps without one: a name such as America/New_York, local, UTC, or an offset such as -05:00 [default: UTC;
    /// inferred from a log that is followed]
    #[arg(long, value_name = "NAME|local|UTC", allow_hyphen_values = true, value_parser = timezone)]
    pub(crate) timezone: Option<Timezone>,

    /// Reads only values: no log records of the lines that explain the run, such as warnings and exceptions
    #[arg(long)]
    pub(crate) no_messages: bool,
}

impl ReadingArguments {
    /// Returns the options for the runs of the logs, without those of the environment.
    ///
    /// # Errors
    /// Returns every fault of the mapping, and an error for a format that accepts none.
    pub(crate) fn run_options(&self) -> Result<RunOptions, Failure> {
        let (format, mapping) = mapping::read(self.format, self.mapping.as_deref())?;
        let fixed = self.rank.map(RankSource::Fixed);
        Ok(RunOptions {
            format,
            mapping,
            run_id: self.run_id.clone(),
            run_name: self.run_name.clone(),
            start_unix_nanos: self.start_time,
            rank: fixed.or_else(|| self.rank_pattern.clone()).unwrap_or_default(),
            timezone: self.timezone.clone(),
            without_messages: self.no_messages,
            ..RunOptions::default()
        })
    }
}

fn start_time(text: &str) -> Result<UnixNanos, Problem> {
    let time: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| {
        Problem::new(error.to_string()).with_remedy("write it like 2026-11-21T00:18:40Z")
    })?;
    let nanos = u64::try_from(time.as_nanosecond()).map_err(|_| "is before 1970".to_owned())?;
    Ok(UnixNanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_carry_offsets_and_nanoseconds() {
        assert_eq!(
            start_time("1970-01-01T01:00:00.000000001+01:00"),
            Ok(UnixNanos(1))
        );
        assert!(
            start_time("yesterday")
                .unwrap_err()
                .to_string()
                .contains("write it like")
        );
        assert!(start_time("1969-12-31T23:59:59Z").is_err());
    }
}
