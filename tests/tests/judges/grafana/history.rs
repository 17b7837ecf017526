//! Simulated jobs as stored series: the demo through the stages that derive signals, exported as OpenMetrics, and imported as
//! blocks into a real Prometheus. Everything is in simulated time.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_demo::{Demo, DemoConfig, Truth};
use pulsetrain_derive::{EnergyConfig, EnergyStage, SignalsConfig, SignalsStage};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Batch, Stage,
    clock::{self, Instant},
    spill::MemoryBudget,
};
use pulsetrain_prometheus::{OpenMetricsHistory, PrometheusConfig};
use pulsetrain_tests::{Folder, Prometheus, promtool};

/// The memory limit of a job's samples, beyond which they are in temporary files.
const MEMORY_BYTES: usize = 32 << 20;

/// A completed job.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) truths: Vec<Truth>,
    /// The first and the last second of its telemetry, in Unix seconds.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Runs a job until it ends, and writes the series of `names` to a file as OpenMetrics.
pub(crate) fn run(config: &DemoConfig, names: &BTreeSet<String>, path: &Path) -> Finished {
    let mut demo = Demo::new(config.clone()).expect("a job that can be simulated");
    let room = MemoryBudget {
        bytes: MEMORY_BYTES,
        folder: None,
    };
    let mut history = OpenMetricsHistory::new(&PrometheusConfig::default(), room);
    let mut add = |batches: Vec<Batch>| {
        for batch in batches.iter().filter(|batch| batch.signal() == Signal::Metrics) {
            history.add(batch.bytes()).expect("points");
        }
    };
    let mut stages = Stages::new();
    let begin = clock::now();
    let mut end = config.start_unix_nanos;
    while let Some((time_unix_nanos, batches)) = demo.next_batches() {
        let since = time_unix_nanos.saturating_duration_since(config.start_unix_nanos);
        end = time_unix_nanos;
        add(stages.pass(batches, begin + since));
    }
    add(stages.finish());
    let mut filter = Filter {
        out: BufWriter::new(File::create(path).expect("a file can be made")),
        names,
        line: Vec::new(),
    };
    history.write(&mut filter).expect("the history can be written");
    filter.flush().expect("the history can be written");
    Finished {
        truths: demo.truth().to_vec(),
        start: config.start_unix_nanos.0 / 1_000_000_000,
        end: end.0 / 1_000_000_000,
    }
}

/// Rewrites a file of OpenMetrics without exemplars as a Prometheus would have scraped it: for each series the last sample
/// before each scrape, at the time of the scrape.
pub(crate) fn scrape(path: &Path, interval: Duration) {
    let text = fs::read_to_string(path).expect("the history can be read");
    let mut out = String::new();
    let mut last: Option<(&str, u64, &str)> = None;
    let write = |last: Option<(&str, u64, &str)>, out: &mut String| {
        if let Some((series, scrape, value)) = last {
            out.push_str(&format!("{series} {value} {}\n", scrape * interval.as_secs()));
        }
    };
    for line in text.lines() {
        let mut fields = line.rsplitn(3, ' ');
        let time = fields.next().and_then(|time| time.parse::<f64>().ok());
        let sample = time.zip(fields.next()).zip(fields.next());
        let Some(((time, value), series)) = sample.filter(|_| !line.starts_with('#')) else {
            write(last.take(), &mut out);
            out.push_str(&format!("{line}\n"));
            continue;
        };
        let scrape = (time / interval.as_secs_f64()).ceil() as u64;
        if last.is_some_and(|(of, at, _)| (of, at) != (series, scrape)) {
            write(last, &mut out);
        }
        last = Some((series, scrape, value));
    }
    write(last, &mut out);
    fs::write(path, out).expect("the history can be written");
}

/// Starts Prometheus on the series of OpenMetrics files, and on the series that the rules of `recording` compute between two
/// times.
pub(crate) fn store(
    program: &Path,
    folder: &Folder,
    files: &[PathBuf],
    recording: &Path,
    (start, end): (u64, u64),
) -> Prometheus {
    let data = folder.path("data");
    for file in files {
        let made = promtool(
            program,
            &["tsdb", "create-blocks-from", "openmetrics"],
            &[file, &data],
        );
        assert!(made.status.success(), "{made:?}");
    }
    let prometheus = Prometheus::start_on(program, &data, "");
    let (start, end, url) = (start.to_string(), end.to_string(), prometheus.url());
    let output = format!("--output-dir={}", data.display());
    let arguments = [
        "tsdb",
        "create-blocks-from",
        "rules",
        "--start",
        &start,
        "--end",
        &end,
        "--url",
        &url,
        "--eval-interval=60s",
        &output,
    ];
    let recorded = promtool(program, &arguments, &[recording]);
    assert!(recorded.status.success(), "{recorded:?}");
    drop(prometheus);
    Prometheus::start_on(program, &data, "")
}

/// The stages of the agent, in its order.
struct Stages {
    signals: SignalsStage,
    energy: EnergyStage,
}

impl Stages {
    fn new() -> Self {
        Self {
            signals: SignalsStage::new(SignalsConfig::default()),
            // Readings come once a minute here, so steps wait for theirs without a time limit.
            energy: EnergyStage::new(EnergyConfig::offline()),
        }
    }

    fn pass(&mut self, batches: Vec<Batch>, now: Instant) -> Vec<Batch> {
        let (mut between, mut out) = (Vec::new(), Vec::new());
        while self.signals.due().is_some_and(|due| due <= now) {
            self.signals.release(now, &mut between);
        }
        for batch in batches {
            self.signals.pass(batch, now, &mut between);
        }
        for batch in between {
            self.energy.pass(batch, now, &mut out);
        }
        out
    }

    fn finish(mut self) -> Vec<Batch> {
        let (mut between, mut out) = (Vec::new(), Vec::new());
        self.signals.finish(&mut between);
        for batch in between {
            self.energy.pass(batch, clock::now(), &mut out);
        }
        self.energy.finish(&mut out);
        out
    }
}

/// Writes only the lines of OpenMetrics whose series is one of `names`.
struct Filter<'a, W> {
    out: W,
    names: &'a BTreeSet<String>,
    line: Vec<u8>,
}

impl<W: Write> Write for Filter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let name = line.split(|byte| matches!(byte, b'{' | b' ')).next();
                let is_named = name
                    .and_then(|name| std::str::from_utf8(name).ok())
                    .is_some_and(|name| self.names.contains(name));
                if is_named || line.starts_with(b"#") {
                    self.out.write_all(&line)?;
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
