//! A fleet that provides data for every panel: simulated jobs with faults and an agent with GPUs, in real backends with the
//! files of `collector-config/`. One Prometheus scrapes it, another one receives the same data by OTLP through a Collector.

use std::{fs, path::Path};

use pulsetrain_tests::{
    FakeNvml, Folder, Judge, Process, Prometheus, SurogateWriter, Tempo, command, corpus, free_port,
    record_at, surogate_records, unix_nanos, wait_until,
};

use crate::collector_config::otelcol::{Otelcol, config};

/// An SFT job: a rank is slow, a gradient spikes, a GPU reports an error, another GPU is lost, and the job restarts.
const SFT: [&str; 12] = [
    "--rate",
    "8",
    "--seed",
    "1",
    "--fault",
    "straggler@20:rank=2",
    "--fault",
    "gradient-spike@40",
    "--fault",
    "xid@60",
    "--fault",
    "gpu-lost@180",
];
/// An RL job whose inference is too slow for a while.
const RL: [&str; 8] = [
    "--workload",
    "rl",
    "--rate",
    "8",
    "--seed",
    "2",
    "--fault",
    "inference-bottleneck@30",
];

/// A job whose steps and rollouts last longer than a second, as in real jobs.
const SLOW_RL: [&str; 8] = ["--workload", "rl", "--rate", "0.3", "--seed", "3", "--ranks", "2"];

/// The backends, and the processes that feed them.
pub(crate) struct Fleet {
    /// Scrapes the pages of the jobs and of the agent.
    pub(crate) scraped: Prometheus,
    /// Receives OTLP through a Collector.
    pub(crate) pushed: Prometheus,
    /// Receives the spans of the jobs through a Collector; `None` without a Tempo.
    pub(crate) tempo: Option<Tempo>,
    /// The start of the jobs, in Unix seconds.
    pub(crate) start: u64,
    feeders: Vec<Process>,
    collectors: Vec<Otelcol>,
    _gpus: FakeNvml,
    _folder: Folder,
}

impl Fleet {
    /// Starts the fleet, and waits until the fast jobs have passed their faults and the agent has dropped items because of its
    /// dead sink. Returns `None` without Prometheus or Collector.
    pub(crate) fn start() -> Option<Self> {
        let prometheus = Judge::Prometheus.require_or_skip()?;
        let collector = Judge::Collector.require_or_skip()?;
        let tempo = Tempo::program().map(|program| Tempo::start(&program));
        let folder = Folder::new();
        let pages = [(); 4].map(|()| format!("127.0.0.1:{}", free_port()));
        let scraped = Prometheus::start_on(
            &prometheus,
            &folder.path("scraped"),
            &scrape_configuration(&pages),
        );
        let pushed = Prometheus::start_on(
            &prometheus,
            &folder.path("pushed"),
            &file("backends/prometheus-otlp.yml"),
        );
        let start = |name: &str, variable: (&str, String)| Otelcol::start(&collector, name, &[variable]);
        let of_metrics = start("prometheus-otlp.yaml", ("PROMETHEUS_URL", pushed.url()));
        let metrics = of_metrics.target();
        let (mut collectors, mut targets) = (vec![of_metrics], vec![format!("metrics={metrics}")]);
        if let Some(tempo) = &tempo {
            let of_traces = start("tempo.yaml", ("TEMPO_ENDPOINT", tempo.otlp()));
            targets.push(format!("traces={}", of_traces.target()));
            collectors.push(of_traces);
        }
        let mut feeders = Vec::new();
        for (arguments, page) in [&SFT[..], &RL, &SLOW_RL].into_iter().zip(&pages) {
            let mut demo = command(["demo", "--json", "--steps", "100000", "--listen", page]);
            demo.args(arguments);
            for target in &targets {
                demo.args(["--to", target]);
            }
            feeders.push(Process::start("pulsetrain demo", &mut demo));
        }
        let start = seconds();
        let gpus = FakeNvml::with("h100x8", BUSY_GPUS);
        gpus.run_from(0.0);
        write_log(&folder.path("training.json"));
        feeders.push(start_agent(&folder, &pages[3], &metrics, &gpus));
        let fleet = Self {
            scraped,
            pushed,
            tempo,
            start,
            feeders,
            collectors,
            _gpus: gpus,
            _folder: folder,
        };
        fleet.wait();
        Some(fleet)
    }

    /// Returns both Prometheus backends, each with a name for reports.
    pub(crate) fn backends(&self) -> [(&'static str, &Prometheus); 2] {
        [("scrape", &self.scraped), ("OTLP", &self.pushed)]
    }

    /// Stops the jobs, the agent and the Collectors, and returns the last second of their telemetry, in Unix seconds.
    pub(crate) fn end(&mut self) -> u64 {
        let end = seconds();
        self.feeders.clear();
        self.collectors.clear();
        end
    }

    fn wait(&self) {
        // The second attempt runs, and RL has steps after its fault.
        let conditions = [
            "max(train_global_step{train_attempt=\"1\"}) > 240",
            "count(max by (train_run_id) (train_global_step) > 240) > 1",
            "sum(pulsetrain_dropped_items_total) > 0",
        ];
        for (way, prometheus) in self.backends() {
            for condition in conditions {
                wait_until(&format!("by {way}: {condition}"), || {
                    !prometheus.query(condition).is_empty()
                });
            }
        }
    }
}

/// Returns the current time in Unix seconds.
pub(crate) fn seconds() -> u64 {
    unix_nanos() / 1_000_000_000
}

/// Returns the text of a file in `collector-config/`.
fn file(name: &str) -> String {
    fs::read_to_string(config(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the shipped scrape configuration with other targets and with an interval of two seconds, because the jobs are fast.
fn scrape_configuration(pages: &[String]) -> String {
    let text = file("backends/prometheus-scrape.yml");
    let changed = text
        .replace("'127.0.0.1:9464'", &pages.join(", "))
        .replace("scrape_interval: 5s", "scrape_interval: 2s");
    assert!(changed.contains(&pages[3]) && changed.contains(": 2s"), "{text}");
    changed
}

/// Processes on the GPUs, and counters that increase.
const BUSY_GPUS: &str = "gpus:
  all:
    processes:
      - {pid: 4242, memory_bytes: 8589934592, sm_percent: 90, memory_percent: 40}
";

/// Starts an agent that follows a log and monitors GPUs. One of its sinks has no receiver, and a small queue.
fn start_agent(folder: &Folder, page: &str, metrics: &str, gpus: &FakeNvml) -> Process {
    let (dead, health) = (free_port(), free_port());
    let text = format!(
        "state_folder: {state}
sources: {{trainer: {{logs: {{paths: [{log}], poll_interval: 100ms}}}}}}
gpu: {{library: {library}, interval: 1s}}
sinks:
  page: {{prometheus: {{listen: '{page}'}}}}
  collector: {{otlp: {{endpoint: '{metrics}', signals: [metrics]}}}}
  archive: {{otlp: {{endpoint: 'http://127.0.0.1:{dead}', required: false, disk_queue: off}}}}
limits: {{queue_batches: 10}}
telemetry: {{interval: 1s}}
health: {{listen: '127.0.0.1:{health}'}}
",
        state = folder.path("state").display(),
        log = folder.path("training.json").display(),
        library = gpus.library().display(),
    );
    let config = folder.file("agent.yaml", text);
    let mut agent = command(["agent", "--config"]);
    Process::start("pulsetrain agent", agent.arg(config))
}

/// Writes a real log of a mixture of experts with times in the last seconds, and one record without a time.
fn write_log(path: &Path) {
    let mut writer = SurogateWriter::create(path);
    let records = surogate_records(&corpus("surogate/training_moe.json"));
    let end = unix_nanos();
    for (place, record) in records.iter().enumerate() {
        writer.append(&record_at(
            record,
            end - 200_000_000 * (records.len() - place) as u64,
        ));
    }
    writer.append(r#"{"log": "step", "step": "none"}"#);
    writer.append(&record_at(&records[records.len() - 1], end));
}
