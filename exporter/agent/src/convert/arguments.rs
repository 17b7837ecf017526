//! What `convert` is told.

use std::{
    ops::{Range, RangeInclusive},
    path::PathBuf,
};

use clap::Args;
use pulsetrain_sinks::{AttributePolicy, PerfettoConfig};

use super::backends::BackendArguments;

/// What `convert` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct ConvertArguments {
    /// OTLP (.jsonl, .json, .binpb) or Perfetto traces (.pftrace, .perfetto-trace, .pb), plain, gzip or zstd; `-` is the
    /// standard input
    #[arg(required_unless_present_any = ["tempo", "jaeger", "prometheus"], value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Where to: FILE.pftrace or FILE.pftrace.gz for Perfetto, FILE.jsonl or FILE.binpb for OTLP
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Which attributes of spans a trace has: lean (all that people read), full (ids too, so that it can be converted back),
    /// or the names of attributes with commas between them
    #[arg(long, value_name = "lean|full|LIST", default_value = "lean", value_parser = attributes)]
    pub(crate) attributes: AttributePolicy,

    /// Only what overlaps this time; either side may be left out
    #[arg(long, value_name = "RFC3339..RFC3339", value_parser = window)]
    pub(crate) window: Option<Range<u64>>,

    /// Only the spans of these training steps, the last included
    #[arg(long, value_name = "A..B", value_parser = steps)]
    pub(crate) step: Option<RangeInclusive<i64>>,

    /// Only the processes with these ranks
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) rank: Vec<i64>,

    /// When a Perfetto trace begins that does not say it: 2026-11-21T00:18:40Z [default: the seconds at the end of its name]
    #[arg(long, value_name = "RFC3339", value_parser = start_time)]
    pub(crate) start_time: Option<u64>,

    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) backends: BackendArguments,
}

const HELP: &str = "\
Exit status: 0 everything was read and written, 1 something could not be, 2 the command line is wrong.

Examples:
  pulsetrain convert traces.jsonl metrics.jsonl -o run.pftrace     (open it at https://ui.perfetto.dev)
  pulsetrain convert run.binpb -o steps.pftrace.gz --step 100..120 --rank 0
  pulsetrain convert -o run.pftrace --tempo http://localhost:3200 --query '{ name = \"train.step\" }' --since 2h
  pulsetrain convert perfetto_trace_v2_1795219880.pb -o tunix.jsonl
  pulsetrain convert run.jsonl -o run.pftrace --attributes full && pulsetrain convert run.pftrace -o back.jsonl";

impl ConvertArguments {
    /// What a Perfetto trace is to show.
    pub(super) fn perfetto(&self) -> PerfettoConfig {
        PerfettoConfig {
            attributes: self.attributes.clone(),
            window: self.window.clone(),
            steps: self.step.clone(),
            ranks: self.rank.clone(),
            ..PerfettoConfig::default()
        }
    }
}

fn attributes(text: &str) -> Result<AttributePolicy, String> {
    Ok(match text {
        "lean" => AttributePolicy::Lean,
        "full" => AttributePolicy::Full,
        "" => return Err("must not be empty; use lean, full or names".to_owned()),
        names => AttributePolicy::Only(names.split(',').map(|name| name.trim().to_owned()).collect()),
    })
}

fn window(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = split(text, "2026-11-21T00:18:40Z..2026-11-21T00:19:00Z")?;
    let window = time(start, 0)?..time(end, u64::MAX)?;
    if window.is_empty() {
        return Err("ends before it starts".to_owned());
    }
    Ok(window)
}

fn time(text: &str, open: u64) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(open);
    }
    let time: jiff::Timestamp = text
        .parse()
        .map_err(|error| format!("{error}; write it like 2026-11-21T00:18:40Z"))?;
    u64::try_from(time.as_nanosecond()).map_err(|_| "is before 1970".to_owned())
}

fn start_time(text: &str) -> Result<u64, String> {
    match text {
        "" => Err("must not be empty; write it like 2026-11-21T00:18:40Z".to_owned()),
        text => time(text, 0),
    }
}

fn steps(text: &str) -> Result<RangeInclusive<i64>, String> {
    let (first, last) = split(text, "100..120")?;
    let step = |text: &str, open| match text {
        "" => Ok(open),
        text => text.parse().map_err(|_| format!("{text:?} is no step")),
    };
    let steps = step(first, 0)?..=step(last, i64::MAX)?;
    if steps.is_empty() {
        return Err("ends before it starts".to_owned());
    }
    Ok(steps)
}

fn split<'a>(text: &'a str, example: &str) -> Result<(&'a str, &'a str), String> {
    text.split_once("..")
        .ok_or_else(|| format!("write it like {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_be_open_and_must_not_be_empty() {
        assert_eq!(steps("100..120"), Ok(100..=120));
        assert_eq!(steps("100.."), Ok(100..=i64::MAX));
        assert!(steps("7").unwrap_err().contains("100..120"));
        assert!(steps("9..7").is_err());
        assert_eq!(window("1970-01-01T00:00:01Z..").unwrap().start, 1_000_000_000);
        assert!(window("1970-01-01T00:00:01Z..1970-01-01T00:00:00Z").is_err());
    }
}
