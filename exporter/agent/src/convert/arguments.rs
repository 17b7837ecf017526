//! The arguments of `convert`.

use std::{
    ops::{Range, RangeInclusive},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_to_perfetto::{AttributePolicy, PerfettoConfig};

use pulsetrain_pipeline::Problem;

use super::backends::BackendArguments;
use crate::{
    config::{self, Attributes, DrawingSection, Size, ValueError, parsed_time},
    failure::Failure,
};

/// The arguments of `convert`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct ConvertArguments {
    /// OTLP (JSON objects, lines or an array, protobuf with or without length prefixes), Zipkin JSON, Chrome JSON (PyTorch
    /// profiler), Perfetto traces or SQLite exports of Nsight Systems, plain, gzip or zstd, detected from their contents. `-` is the
    /// standard input
    #[arg(required_unless_present_any = ["tempo", "jaeger", "prometheus"], value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// The output: FILE.pftrace or FILE.perfetto-trace (also with .gz) for Perfetto, FILE.jsonl or FILE.binpb for OTLP,
    /// openmetrics:FILE for the metrics as OpenMetrics text, which promtool can backfill into Prometheus. `-` writes OTLP/JSON
    /// lines to the standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// The span attributes in the trace: lean (those that people read), full (ids too, so that the trace can be converted back),
    /// or a comma-separated list of names
    /// [default: lean, or that of --config]
    #[arg(long, value_name = "lean|full|LIST", value_parser = attributes)]
    pub(crate) attributes: Option<Attributes>,

    /// Only items that overlap this time range; either end may be omitted. Files can be cut only into a Perfetto trace
    #[arg(long, value_name = "RFC3339..RFC3339", value_parser = window)]
    pub(crate) window: Option<Range<UnixNanos>>,

    /// Only the spans of this training step, or of these, including the last one
    #[arg(long, value_name = "A[..B]", value_parser = steps)]
    pub(crate) step: Option<RangeInclusive<i64>>,

    /// Only the processes with these ranks
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) rank: Vec<i64>,

    /// The start time of a trace without a wall clock: 2026-11-21T00:18:40Z [default: the Unix seconds at the end of its file name]
    #[arg(long, value_name = "RFC3339", value_parser = start_time)]
    pub(crate) start_time: Option<UnixNanos>,

    /// Write several traces of about this size each, in order of time: FILE.000.pftrace, FILE.001.pftrace and so on. Each file
    /// opens by itself. A span that continues in the next file is drawn there again and marked `continued`. Later parts of an
    /// earlier run with the same output are removed
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) split: Option<u64>,

    /// Serve the trace on this machine and print a Perfetto UI address that shows it. Exit when the UI has read it
    #[arg(long, conflicts_with = "split")]
    pub(crate) open: bool,

    /// The port of --open. The public Perfetto UI reads from port 9001 only
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 9001,
        requires = "open",
        hide_short_help = true
    )]
    pub(crate) open_port: u16,

    /// Merge neighbouring spans of one name that are shorter than this into one slice, with their number and total time. Failed
    /// spans are not merged
    #[arg(long, value_name = "DURATION", value_parser = nanos)]
    pub(crate) downsample: Option<u64>,

    /// Group spans into rows by the value of the first of these attributes that a span has
    /// [default: device.id, thread.name, thread.id, perf.timeline]
    #[arg(long, value_name = "ATTRIBUTE,...", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,

    /// Name processes by the first of these resource attributes that is present [default: service.name]
    #[arg(long, value_name = "ATTRIBUTE,...", value_delimiter = ',')]
    pub(crate) process_by: Vec<String>,

    /// Group spans into rows by their process, or by their trace across all processes
    /// [default: process; trace if the only input is at most 10 traces of Tempo or Jaeger]
    #[arg(long, value_enum)]
    pub(crate) by: Option<SpanRows>,

    /// Colour slices by trace instead of by span name
    #[arg(long)]
    pub(crate) color_by_trace: bool,

    /// Correct clock skew between processes: no child begins before its parent, and the server span of a call lies within its
    /// client span. The summary lists the offsets
    #[arg(long)]
    pub(crate) align_clocks: bool,

    /// Also draw the buckets of histograms, one counter per bound: METRIC.le_BOUND, and METRIC.le_inf for the last
    #[arg(long)]
    pub(crate) buckets: bool,

    /// Also derive signals from the steps, as the agent and `import --derive` do: throughput, MFU, smoothed values, anomalies,
    /// ETA, stragglers, bottleneck. Metrics in the input are not derived
    #[arg(long)]
    pub(crate) derive: bool,

    /// Use the section `perfetto` of this configuration of the agent
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The memory limit for items; the rest is spilled to temporary files [default: 128MiB, or that of --config]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,

    /// The folder of temporary files [default: $TMPDIR, or /tmp]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) temporary_folder: Option<PathBuf>,

    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) backends: BackendArguments,
}

/// How spans are grouped into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpanRows {
    /// By process, and within it by device, thread or scope.
    Process,
    /// By trace.
    Trace,
}

/// The maximum number of traces of a store that have one row each by default.
pub(super) const FEW_TRACES: usize = 10;

const HELP: &str = "\
Exit status: 0 everything was converted, 1 something could not be read or written, 2 the command line is invalid.

Examples:
  pulsetrain convert traces.jsonl metrics.jsonl -o run.pftrace     (open it at https://ui.perfetto.dev)
  pulsetrain convert run.binpb -o run.pftrace --open
  pulsetrain convert run.binpb -o steps.pftrace.gz --step 100..120 --rank 0
  pulsetrain convert -o run.pftrace --tempo http://localhost:3200 --query '{ name = \"train.step\" }' --since 2h
  pulsetrain convert -o request.pftrace --by trace --jaeger http://localhost:16686 --trace-id 4bf92f3577b34da6a3ce929d0e0e4736
  pulsetrain convert perfetto_trace_v2_1795219880.pb -o tunix.jsonl
  pulsetrain convert run.jsonl run.pt.trace.json.gz nsight.sqlite -o run.pftrace   (nsight.sqlite: nsys export --type sqlite)
  pulsetrain convert rank0.jsonl rank1.jsonl -o run.pftrace --derive
  pulsetrain convert run.binpb -o run.pftrace --split 1GiB --downsample 10us
  pulsetrain convert run.jsonl -o run.pftrace --attributes full && pulsetrain convert run.pftrace -o back.jsonl";

impl ConvertArguments {
    /// Rejects drawing options if the output is not a trace, because they would have no effect. `--window` is also the time of
    /// a search in a store, and `--attributes full` is what every other output has.
    ///
    /// # Errors
    /// Returns an error for the first of these options that is set.
    pub(super) fn check_drawing(&self, draws: bool) -> Result<(), Failure> {
        let writes_fewer = |asked: &Attributes| asked.0 != AttributePolicy::Full;
        let given = [
            ("--attributes", self.attributes.as_ref().is_some_and(writes_fewer)),
            ("--window", self.window.is_some() && !self.inputs.is_empty()),
            ("--step", self.step.is_some()),
            ("--rank", !self.rank.is_empty()),
            ("--downsample", self.downsample.is_some()),
            ("--rows", !self.rows.is_empty()),
            ("--process-by", !self.process_by.is_empty()),
            ("--buckets", self.buckets),
            ("--by", self.by == Some(SpanRows::Trace)),
            ("--color-by-trace", self.color_by_trace),
            ("--open", self.open),
        ];
        match given.iter().find(|(_, is_given)| *is_given && !draws) {
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is for Perfetto traces only; name the output .pftrace, or leave {option} out"
            ))),
            None => Ok(()),
        }
    }

    /// Returns whether each trace is drawn on its own row if there are few of them.
    ///
    /// This applies only to traces from Tempo or Jaeger alone: files have rows of processes, and counters belong to
    /// processes.
    pub(super) fn draws_few_by_trace(&self) -> bool {
        let is_of_stores = self.inputs.is_empty() && self.backends.prometheus.is_none();
        let wants_processes = !self.rank.is_empty() || !self.rows.is_empty() || !self.process_by.is_empty();
        self.by.is_none() && is_of_stores && !wants_processes
    }

    /// Returns the drawing settings of a Perfetto trace.
    ///
    /// # Errors
    /// Returns an error if the configuration cannot be read.
    pub(super) fn perfetto(&self) -> Result<PerfettoConfig, Failure> {
        let section = match &self.config {
            Some(path) => {
                config::load(path, &config::environment())
                    .map_err(Failure::usage)?
                    .perfetto
            }
            None => DrawingSection::default(),
        };
        let base = section.settings();
        let attributes = self.attributes.clone().map_or(base.attributes, |asked| asked.0);
        if self.by == Some(SpanRows::Trace) && attributes == AttributePolicy::Full {
            return Err(Failure::usage(
                "--by trace leaves out the processes of spans, so --attributes full cannot be converted back; leave one of them out",
            ));
        }
        Ok(PerfettoConfig {
            attributes,
            window: self.window.clone(),
            steps: self.step.clone(),
            ranks: self.rank.clone(),
            rows: given(&self.rows, base.rows),
            process_names: given(&self.process_by, base.process_names),
            by_trace: self.by == Some(SpanRows::Trace),
            color_by_trace: self.color_by_trace,
            buckets: self.buckets || base.buckets,
            merge_below: self.downsample,
            memory_bytes: self.memory.map_or(base.memory_bytes, |bytes| bytes as usize),
            temporary: self.temporary_folder.clone().or(base.temporary),
            ..base
        })
    }
}

/// Returns the names of the command line, or the others if there are none.
fn given(names: &[String], others: Vec<String>) -> Vec<String> {
    if names.is_empty() { others } else { names.to_vec() }
}

fn attributes(text: &str) -> Result<Attributes, Problem> {
    Attributes::try_from(text).map_err(|ValueError(problem)| problem)
}

fn window(text: &str) -> Result<Range<UnixNanos>, Problem> {
    let (start, end) = text
        .split_once("..")
        .ok_or("write it like 2026-11-21T00:18:40Z..2026-11-21T00:19:00Z")?;
    let window = time(start, UnixNanos(0))?..time(end, UnixNanos::MAX)?;
    if window.is_empty() {
        return Err("ends before it starts".into());
    }
    Ok(window)
}

fn time(text: &str, open: UnixNanos) -> Result<UnixNanos, Problem> {
    if text.is_empty() {
        return Ok(open);
    }
    let time: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| {
        Problem::new(error.to_string()).with_remedy("write it like 2026-11-21T00:18:40Z")
    })?;
    let nanos = u64::try_from(time.as_nanosecond()).map_err(|_| "is before 1970".to_owned())?;
    Ok(UnixNanos(nanos))
}

fn start_time(text: &str) -> Result<UnixNanos, Problem> {
    match text {
        "" => Err(Problem::new("must not be empty").with_remedy("write it like 2026-11-21T00:18:40Z")),
        text => time(text, UnixNanos::UNKNOWN),
    }
}

fn steps(text: &str) -> Result<RangeInclusive<i64>, Problem> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    if (first, last) == ("", "") {
        return Err("write it like 100 or 100..120".into());
    }
    let step = |text: &str, open| match text {
        "" => Ok(open),
        text => text.parse().map_err(|_| {
            Problem::new(format!("{text:?} is not a step number"))
                .with_remedy("write it like 100 or 100..120")
        }),
    };
    let steps = step(first, 0)?..=step(last, i64::MAX)?;
    if steps.is_empty() {
        return Err("ends before it starts".into());
    }
    Ok(steps)
}

fn size(text: &str) -> Result<u64, Problem> {
    let Size(bytes) = Size::try_from(text.to_owned()).map_err(|ValueError(problem)| problem)?;
    match bytes {
        0 => Err("must not be zero".into()),
        bytes => Ok(bytes as u64),
    }
}

/// Parses a duration, which may be shorter than the configuration allows.
fn nanos(text: &str) -> Result<u64, Problem> {
    for (unit, nanos) in [("ns", 1.0), ("us", 1e3)] {
        if let Some(number) = text
            .strip_suffix(unit)
            .and_then(|number| number.trim().parse::<f64>().ok())
            && number >= 0.0
        {
            return Ok((number * nanos) as u64);
        }
    }
    let wrong = |_| {
        Problem::new(format!("{text:?} is not a duration"))
            .with_remedy("write a number with its unit, like 500ns, 10us, 1ms or 2s")
    };
    let duration = parsed_time(text).map_err(wrong)?;
    u64::try_from(duration.as_nanos()).map_err(|_| "is too long".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_nanosecond_precision() {
        assert_eq!(nanos("500ns"), Ok(500));
        assert_eq!(nanos("1.5us"), Ok(1_500));
        assert_eq!(nanos("2ms"), Ok(2_000_000));
        assert!(nanos("-1us").unwrap_err().to_string().contains("10us"));
        assert!(nanos("10").unwrap_err().to_string().contains("10us"));
    }

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        arguments: ConvertArguments,
    }

    #[test]
    fn selections_without_effect_on_the_output_are_rejected() {
        let check = |line: &str| {
            let words = ["convert"].into_iter().chain(line.split(' '));
            let line = <Command as clap::Parser>::try_parse_from(words);
            let Command { arguments } = line.expect("the line is valid");
            arguments.check_drawing(false)
        };
        for selection in [
            "--window ..2026-11-21T00:18:40Z",
            "--rank 0",
            "--step 1..2",
            "--attributes lean",
            "--attributes http.route",
            "--buckets",
        ] {
            assert!(
                check(&format!("in.jsonl -o out.jsonl {selection}")).is_err(),
                "{selection}"
            );
        }
        for allowed in [
            "in.jsonl -o out.jsonl --attributes full --by process",
            "-o out.jsonl --jaeger http://localhost --service web --window ..2026-11-21T00:18:40Z",
        ] {
            assert!(check(allowed).is_ok(), "{allowed}");
        }
    }

    #[test]
    fn search_for_no_trace_is_rejected() {
        for (limit, is_valid) in [("0", false), ("1", true)] {
            let line = [
                "convert",
                "-o",
                "x.pftrace",
                "--tempo",
                "http://localhost",
                "--limit",
                limit,
            ];
            let parsed = <Command as clap::Parser>::try_parse_from(line);
            assert_eq!(parsed.is_ok(), is_valid, "{limit}");
        }
    }

    #[test]
    fn ranges_may_be_open_and_must_not_be_empty() {
        assert_eq!(steps("100..120"), Ok(100..=120));
        assert_eq!(steps("100.."), Ok(100..=i64::MAX));
        assert_eq!(steps("7"), Ok(7..=7));
        assert!(steps("x").unwrap_err().to_string().contains("100..120"));
        assert!(steps("").is_err() && steps("..").is_err());
        assert!(steps("9..7").is_err());
        assert_eq!(
            window("1970-01-01T00:00:01Z..").unwrap().start,
            UnixNanos(1_000_000_000)
        );
        assert!(window("1970-01-01T00:00:01Z..1970-01-01T00:00:00Z").is_err());
    }
}
