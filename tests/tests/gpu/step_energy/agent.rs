//! The agent follows a log and reads a GPU: the energy of each step is in the file and on the page, and every joule is
//! attributed once, even if runs share the GPUs.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use pulsetrain_tests::{
    FakeNvml, Folder, Process, command, free_port,
    http::{is_open, metrics},
    otlp::{double, messages, steps, sums, text_of, time},
    wait_until,
};
use serde_json::Value;

use crate::step_energy::{
    power::joules,
    trainer::{OnGpu, log_steps, on_gpus},
};

/// The boundaries of the steps, in seconds of the scenario; their lengths are uneven and unrelated to the readings.
const BORDERS: [f64; 10] = [4.5, 4.617, 5.31, 5.313, 5.9, 6.24, 8.0, 8.4, 8.41, 9.95];
const STEPS: usize = BORDERS.len() - 1;

#[test]
fn step_energies_of_a_growing_log_add_up_to_the_gpu_counters() {
    let trainer = OnGpu::of_run("ours", 0, 1);
    let world = World::start(&[("ours", "training.json")], &[&[&trainer], &[&trainer]]);
    log_steps(&world.driver, &[&world.path("training.json")], &BORDERS);
    let spans = world.wait_for_steps(STEPS);
    let mut sum = 0.0;
    for (pair, span) in BORDERS.windows(2).zip(&spans) {
        assert_eq!(text_of(span, "gpu.step.attribution"), Some("rank"));
        let reported = double(span, "gpu.step.energy").expect("it is known");
        let error = double(span, "gpu.step.energy_error").expect("it has a bound");
        // Steps of a few milliseconds are shorter than the update period of a counter; a busy machine may read the counter late
        // for longer ones.
        let status = if error <= 0.5 * reported {
            "complete"
        } else {
            "coarse"
        };
        assert_eq!(text_of(span, "gpu.step.energy_status"), Some(status), "{span}");
        let truth = 2.0 * joules(pair[0], pair[1]);
        assert!(
            (reported - truth).abs() <= error + 0.01,
            "{pair:?}: {reported} J, not {truth} J within {error} J"
        );
        let watts = double(span, "gpu.step.mean_power").expect("it is complete");
        assert!((179.0..1401.0).contains(&watts), "two GPUs do not draw {watts} W");
        assert!(double(span, "gpu.step.busy_ratio").is_some_and(|busy| (0.0..=1.0).contains(&busy)));
        let throttled = double(span, "gpu.step.throttle_time").expect("the driver counts it");
        assert!(
            (0.0..=pair[1] - pair[0]).contains(&throttled),
            "{throttled} s of {pair:?}"
        );
        sum += reported;
    }
    let (first, last) = (BORDERS[0], BORDERS[STEPS]);
    let counted = world.counted(first, last);
    assert!(
        (sum - counted).abs() <= 0.01 * counted,
        "{sum} J, but the counters grew by {counted} J"
    );
    let truth = 2.0 * joules(first, last);
    assert!(
        (counted - truth).abs() <= 0.01 * truth,
        "{counted} J, not {truth} J"
    );
    let page = world.page("gpu_step_energy_joules");
    assert_eq!(page["gpu_step_energy_joules_count"], STEPS as f64);
    let of_run = world.page("gpu_run_energy_joules_total");
    let of_phase = |phase: &str| {
        let mut series = of_run
            .iter()
            .filter(|(series, _)| series.contains(&format!("\"{phase}\"")));
        *series.next().expect("a series of the phase").1
    };
    assert!((of_phase("step") - sum).abs() < 1e-6 * sum, "{of_run:?}");
    assert!(
        of_phase("outside") > 0.0,
        "the GPU drew power before the first step: {of_run:?}"
    );
    assert!(
        page.keys()
            .any(|series| series.starts_with("gpu_step_energy_joules_bucket"))
    );
    for metric in [
        "gpu_step_mean_power_watts_count",
        "gpu_step_peak_power_watts_count",
        "gpu_step_throttle_time_seconds_count",
    ] {
        assert_eq!(world.page(metric)[metric], STEPS as f64, "{metric}");
    }
}

#[test]
fn only_the_first_of_ranks_logging_the_same_steps_gets_the_energy() {
    let ranks = [OnGpu::of_run("ours", 0, 2), OnGpu::of_run("ours", 1, 2)];
    let logs = [("ours", "rank0.json"), ("ours", "rank1.json")];
    let world = World::start(&logs, &[&[&ranks[0]], &[&ranks[1]]]);
    log_steps(
        &world.driver,
        &[&world.path("rank0.json"), &world.path("rank1.json")],
        &BORDERS,
    );
    let spans = world.wait_for_steps(2 * STEPS);
    let of = |status: &str| {
        let is = |span: &&Value| text_of(span, "gpu.step.energy_status") == Some(status);
        spans.iter().filter(is).count()
    };
    assert_eq!(
        (of("complete") + of("coarse"), of("repeated")),
        (STEPS, STEPS),
        "{spans:#?}"
    );
    let sum: f64 = spans
        .iter()
        .filter_map(|span| double(span, "gpu.step.energy"))
        .sum();
    let counted = world.counted(BORDERS[0], BORDERS[STEPS]);
    assert!(
        (sum - counted).abs() <= 0.01 * counted,
        "{sum} J, but the counters grew by {counted} J"
    );
    let page = world.page("gpu_step_energy_joules");
    assert_eq!(page["gpu_step_energy_joules_count"], STEPS as f64);
}

#[test]
fn energy_of_a_gpu_shared_by_two_runs_is_not_attributed() {
    let (one, other) = (OnGpu::of_run("one", 0, 1), OnGpu::of_run("other", 0, 1));
    let logs = [("one", "one.json"), ("other", "other.json")];
    let world = World::start(&logs, &[&[&one, &other]]);
    log_steps(
        &world.driver,
        &[&world.path("one.json"), &world.path("other.json")],
        &BORDERS[..4],
    );
    let spans = world.wait_for_steps(6);
    for span in &spans {
        assert_eq!(text_of(span, "gpu.step.energy_status"), Some("shared"), "{span}");
        assert_eq!(double(span, "gpu.step.energy"), None);
        assert!(
            double(span, "gpu.step.mean_power").is_some(),
            "the power of the GPU is known: {span}"
        );
    }
    assert!(
        world.page("gpu_step_energy_joules").is_empty(),
        "joules of nobody are in no distribution"
    );
    let shared = world.page("gpu_steps_total");
    let counts: Vec<_> = shared
        .iter()
        .filter(|(series, _)| series.contains("\"shared\""))
        .map(|(_, count)| *count)
        .collect();
    assert_eq!(counts, [3.0, 3.0], "{shared:?}");
}

/// A driver, logs, and an agent that reads both.
struct World {
    driver: FakeNvml,
    folder: Folder,
    page: u16,
    _agent: Process,
}

impl World {
    /// Starts a world with logs by their run, and with processes on each GPU.
    fn start(logs: &[(&str, &str)], processes: &[&[&OnGpu]]) -> Self {
        let driver = FakeNvml::with("uneven_power", &on_gpus(processes));
        let folder = Folder::new();
        let page = free_port();
        let config = configuration(folder.root(), page, &driver.library(), logs);
        let config = folder.file("agent.yaml", config);
        let mut agent = Process::start(
            "pulsetrain agent",
            command(["agent", "--config"]).arg(config).env("TZ", "UTC"),
        );
        agent.wait_until_ready(|| is_open(page));
        let world = Self {
            driver,
            folder,
            page,
            _agent: agent,
        };
        wait_until("every GPU was read, and whose it is", || {
            let messages = messages(&world.file());
            let points = sums(&messages, "gpu.energy");
            let runs = |metric| {
                let points = sums(&messages, metric);
                let runs = points.iter().filter_map(|point| text_of(point, "train.run.id"));
                runs.map(str::to_owned).collect::<BTreeSet<String>>()
            };
            // A GPU with two runs has no run attribute, as before its processes are read; so the test waits for the processes.
            let is_known = match processes {
                [several] if several.len() > 1 => runs("gpu.process.memory").len() == several.len(),
                _ => true,
            };
            let is_claimed =
                |point: &&Value| processes[0].len() > 1 || text_of(point, "train.run.id").is_some();
            is_known && points.iter().filter(is_claimed).count() >= processes.len()
        });
        // Allow some readings before the first step.
        world.driver.run_from(BORDERS[0] - 0.6);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn file(&self) -> PathBuf {
        self.path("telemetry.jsonl")
    }

    /// Waits for the spans of this number of steps, and returns them.
    fn wait_for_steps(&self, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        wait_until(&format!("{count} steps are in the file"), || {
            found = steps(&messages(&self.file()));
            found.len() >= count
        });
        assert_eq!(found.len(), count, "no more than those");
        found
    }

    /// Returns the increase of all energy counters between two seconds, interpolated between the points of the file.
    fn counted(&self, from: f64, to: f64) -> f64 {
        let mut counters = BTreeMap::<String, Vec<(f64, f64)>>::new();
        for point in sums(&messages(&self.file()), "gpu.energy") {
            if let (Some(id), Some(value)) = (text_of(&point, "gpu.id"), point["asDouble"].as_f64()) {
                let second = (time(&point, "timeUnixNano") as f64 - self.driver.unix_nanos(0.0) as f64) / 1e9;
                counters.entry(id.to_owned()).or_default().push((second, value));
            }
        }
        counters
            .values()
            .map(|readings| is_at(readings, to) - is_at(readings, from))
            .sum()
    }

    /// Returns the samples on the page with this prefix, without labels if a name has only one series.
    fn page(&self, begin: &str) -> BTreeMap<String, f64> {
        let page = metrics(self.page).expect("the page is answered in time");
        let lines = page.lines().filter(|line| line.starts_with(begin));
        let samples = lines.filter_map(|line| line.rsplit_once(' '));
        samples
            .map(|(series, value)| {
                let name = series.split('{').next().unwrap_or(series);
                let is_one = page
                    .lines()
                    .filter(|line| line.starts_with(&format!("{name}{{")))
                    .count()
                    == 1;
                let key = if is_one { name } else { series };
                (key.to_owned(), value.parse().expect("a sample is a number"))
            })
            .collect()
    }
}

fn is_at(readings: &[(f64, f64)], second: f64) -> f64 {
    let after = readings
        .iter()
        .position(|(time, _)| *time >= second)
        .expect("it was read after that");
    let ((t0, v0), (t1, v1)) = (readings[after - 1], readings[after]);
    v0 + (v1 - v0) * (second - t0) / (t1 - t0)
}

fn configuration(folder: &Path, page: u16, library: &Path, logs: &[(&str, &str)]) -> String {
    let sources: String = logs
        .iter()
        .enumerate()
        .map(|(place, (run, log))| {
            let log = folder.join(log);
            format!(
                "  log{place}: {{logs: {{paths: [{}], run_id: {run}, poll_interval: 100ms}}}}\n",
                log.display()
            )
        })
        .collect();
    format!(
        "state_folder: {}
sources:
{sources}gpu: {{library: {}, interval: 120ms}}
sinks:
  page: {{prometheus: {{listen: 127.0.0.1:{page}}}}}
  file: {{file: {{path: {}}}}}
health: {{listen: 127.0.0.1:{}}}
",
        folder.join("state").display(),
        library.display(),
        folder.join("telemetry.jsonl").display(),
        free_port()
    )
}
