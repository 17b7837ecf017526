//! Energy of steps, end to end on a fake driver: its counters are read as they are on a GPU, and what each step took is known to
//! the joule beforehand.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_derive::{EnergyConfig, EnergyStage};
use pulsetrain_otlp::{
    Signal,
    write::{Envelope, SpanParts, SpansWriter, Value as Written},
};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Pipeline, Sink, StopRaiser, run_sources};
use pulsetrain_semconv::{attribute, span};
use pulsetrain_sources::{
    nvml::{NvmlConfig, NvmlSource},
    workload::{Workload, WorkloadConfig, Workloads},
};
use pulsetrain_tests::{FakeNvml, Import, command, corpus, wait_until};
use serde_json::Value;

/// Between these seconds of the scenario lie the steps; their lengths are uneven and have nothing to do with the ticks.
const BORDERS: [f64; 7] = [0.5, 0.617, 1.31, 1.313, 1.9, 2.24, 2.9];

/// What the GPU draws, as `uneven_power` says: watts from a second on.
const POWER: [(f64, f64); 4] = [(0.0, 100.0), (1.3, 700.0), (2.05, 350.0), (4.7, 690.0)];

#[test]
fn steps_add_up_to_what_the_gpu_used_and_keep_their_bounds() {
    let driver = FakeNvml::with("uneven_power", ALONE);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let sent = Arc::<Mutex<Vec<Value>>>::default();
    let (sink, stop) = (Collected(Arc::clone(&sent)), StopRaiser::new());
    let (pipeline, door, reading) = runtime.block_on(async {
        let stage = EnergyStage::new(EnergyConfig::default());
        let builder = Pipeline::builder().stage(Box::new(stage)).sink(Box::new(sink));
        let (pipeline, door) = builder.start();
        let (to, told) = (door.clone(), stop.stop());
        let source = source(&driver);
        let reading = tokio::spawn(async move { run_sources(vec![source], &to, &told).await });
        (pipeline, door, reading)
    });
    driver.run_from(0.0);
    for (number, pair) in (0_i64..).zip(BORDERS.windows(2)) {
        let [start, end] = [pair[0], pair[1]].map(|second| driver.unix_nanos(second));
        // A step is told when it is over, and before the counter is read again.
        let read = |energies: &[u64]| {
            energies
                .last()
                .is_some_and(|time| *time >= end.saturating_sub(200_000_000))
        };
        wait_until("the GPU was read up to the end of the step", || {
            read(&read_at(&sent))
        });
        door.offer(step(number, start, end))
            .expect("the pipeline is open");
    }
    let derived = || {
        spans(&sent)
            .into_iter()
            .filter(|span| number(span, "gpu.step.energy").is_some())
            .collect::<Vec<_>>()
    };
    wait_until("every step says its energy", || {
        derived().len() == BORDERS.len() - 1
    });
    let derived = derived();
    stop.raise();
    runtime.block_on(async {
        reading.await.expect("the source does not panic");
        pipeline.drain(Duration::from_secs(10)).await;
    });

    let mut sum = 0.0;
    for (pair, span) in BORDERS.windows(2).zip(&derived) {
        let truth = joules(pair[0], pair[1]);
        let said = number(span, "gpu.step.energy").expect("it is there");
        let error = number(span, "gpu.step.energy_error").expect("it has a bound");
        // The driver counts in millijoules.
        assert!(
            (said - truth).abs() <= error + 0.002,
            "{pair:?}: {said} J, not {truth} J within {error} J"
        );
        sum += said;
    }
    let whole = joules(BORDERS[0], BORDERS[6]);
    assert!(
        (sum - whole).abs() <= 0.01 * whole,
        "{sum} J, not {whole} J within 1 %"
    );
}

/// The numbers of the scenario's processes may be those of processes of this machine.
const ALONE: &str = "gpus: {each: {\"0\": {processes: []}}}";

/// Prints ten steps of a quarter of a second each, as Surogate does.
const TRAINER: &str = r#"
import datetime, json, sys, time
for step in range(10):
    began = time.time()
    time.sleep(0.25)
    now = time.time()
    record = {"log": "step", "time": datetime.datetime.utcfromtimestamp(now).strftime("%Y-%m-%d %H:%M:%S.%f"), "step": step,
              "epoch": 0.5, "step_tokens": 16384, "duration_ms": int((now - began) * 1000), "norm": 1.5, "loss": 2.5, "lr": 2e-05,
              "phase": "converging"}
    print(json.dumps(record), flush=True)
"#;

#[test]
fn run_says_what_the_steps_of_its_trainer_took_of_the_gpus_that_are_its_own() {
    let driver = FakeNvml::with("uneven_power", ALONE);
    driver.run_from(0.0);
    let folder = tempfile::TempDir::new().expect("a folder");
    let (config, out) = (folder.path().join("run.yaml"), folder.path().join("out.jsonl"));
    let library = driver.library();
    let section = format!("gpu: {{interval: 120ms, library: \"{}\"}}\n", library.display());
    std::fs::write(&config, section).expect("a file");
    let mut command = command(["run", "--run-id", "ours", "--drain", "10"]);
    let finished = command
        .arg("--config")
        .arg(&config)
        .arg("--to")
        .arg(&out)
        .args(["--", "python3", "-c", TRAINER])
        .envs([("TZ", "UTC"), ("PYTHONWARNINGS", "ignore")])
        .output()
        .expect("pulsetrain can be started");
    assert!(
        finished.status.success(),
        "{}",
        String::from_utf8_lossy(&finished.stderr)
    );
    let text = std::fs::read_to_string(&out).expect("the file was written");
    let messages: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let sent = Mutex::new(messages);
    let steps: Vec<_> = spans(&sent)
        .into_iter()
        .filter(|span| span["name"] == "train.step")
        .collect();
    assert_eq!(steps.len(), 10);
    let said = steps
        .iter()
        .filter(|step| text_of(step, "gpu.step.energy_status") == Some("complete"));
    let said: Vec<_> = said.collect();
    // The first may have begun before the GPU was first read, and the last ended after it was read last.
    assert!(said.len() >= 7, "{steps:#?}");
    for step in said {
        assert_eq!(text_of(step, "gpu.step.attribution"), Some("rank"));
        let watts = number(step, "gpu.step.mean_power").expect("a complete step has its power");
        assert!(
            (99.0..701.0).contains(&watts),
            "{watts} W is not what the GPU can draw"
        );
    }
    let metrics = below(&lock(&sent), ["resourceMetrics", "scopeMetrics", "metrics"]);
    let energy = metrics
        .iter()
        .find(|metric| metric["name"] == "gpu.energy")
        .expect("the counter");
    let point = &energy["sum"]["dataPoints"][0];
    assert_eq!(text_of(point, "train.run.id"), Some("ours"), "{point}");
}

#[test]
fn an_import_says_what_steps_took_by_readings_of_the_gpu_that_were_recorded() {
    const WATTS: f64 = 300.0;
    let folder = tempfile::TempDir::new().expect("a folder");
    let (plain, out) = (folder.path().join("plain.jsonl"), folder.path().join("out.jsonl"));
    let log = corpus("surogate/training_dense.json");
    let steps = |path: &std::path::Path| {
        let text = std::fs::read_to_string(path).expect("the file was written");
        let messages = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let mut steps = spans(&Mutex::new(messages));
        steps.retain(|span| span["name"] == "train.step");
        steps
    };
    let time = |span: &Value, key: &str| -> u64 {
        let text = span[key].as_str().expect("a span has its times");
        text.parse().expect("a time is a number")
    };
    Import::of(&log).to(&plain).run().expect_code(0);
    let known = steps(&plain);
    let first = known
        .iter()
        .map(|span| time(span, "startTimeUnixNano"))
        .min()
        .expect("there are steps");
    let last = known
        .iter()
        .map(|span| time(span, "endTimeUnixNano"))
        .max()
        .expect("there are steps");

    let readings = folder.path().join("gpu.jsonl");
    let mut lines = String::new();
    let begin = first - 700_000_000;
    let mut at = begin;
    while at < last + 1_000_000_000 {
        let joules = WATTS * (at - begin) as f64 / 1e9;
        let id = r#"{"key":"gpu.id","value":{"stringValue":"GPU-1"}}"#;
        lines += &format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"gpu.energy","unit":"J","sum":{{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{{"timeUnixNano":"{at}","asDouble":{joules},"attributes":[{id}]}}]}}}}]}}]}}]}}"#
        );
        lines += "\n";
        at += 1_000_000_000;
    }
    std::fs::write(&readings, lines).expect("a file");
    Import::of(&log)
        .arg("--gpu-readings")
        .arg(&readings)
        .to(&out)
        .run()
        .expect_code(0);
    let derived = steps(&out);
    assert_eq!(derived.len(), known.len());
    for span in &derived {
        let secs = (time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano")) as f64 / 1e9;
        let said = number(span, "gpu.step.energy").expect("every step lies among the readings");
        assert!((said - WATTS * secs).abs() < 1e-6, "{said} J in {secs} s");
        assert_eq!(text_of(span, "gpu.step.attribution"), Some("host"));
    }
    Import::of(&log)
        .arg("--gpu-readings")
        .arg(&plain)
        .to(&out)
        .run()
        .expect_code(1);
}

/// The source of a driver without processes, of whose GPUs it is known that they are of our run.
fn source(driver: &FakeNvml) -> Box<NvmlSource> {
    let ours = Workload::of_variables(|name| (name == "PULSETRAIN_RUN_ID").then(|| "r".to_owned()));
    let config = WorkloadConfig {
        kubelet: None,
        ours: Some(ours),
        ..WorkloadConfig::default()
    };
    let workloads = Workloads::start(config, |notice| panic!("{notice}"));
    let config = NvmlConfig {
        library: Some(driver.library()),
        interval: Duration::from_millis(120),
        ..NvmlConfig::default()
    };
    Box::new(NvmlSource::new(config, Box::new(workloads), |_| {}))
}

/// The joules that the GPU uses between two seconds.
fn joules(from: f64, to: f64) -> f64 {
    let ends = POWER
        .iter()
        .skip(1)
        .map(|(second, _)| *second)
        .chain([f64::INFINITY]);
    let parts = POWER.iter().zip(ends).map(|((start, watts), end)| {
        let (start, end) = (start.max(from), end.min(to));
        watts * (end - start).max(0.0)
    });
    parts.sum()
}

fn step(number: i64, start: u64, end: u64) -> Batch {
    let resource = [
        (attribute::TRAIN_RUN_ID.name, Written::Text("r")),
        (attribute::TRAIN_RANK.name, Written::Int(0)),
    ];
    let mut writer = SpansWriter::default();
    writer.span(&SpanParts {
        span: &span::TRAIN_STEP,
        trace_id: [7; 16],
        span_id: (number + 1).to_be_bytes(),
        parent_span_id: None,
        start_unix_nanos: start,
        end_unix_nanos: end,
        attributes: &[(&attribute::TRAIN_STEP, Written::Int(number))],
    });
    let encoded = writer
        .finish(&Envelope::new(&resource, "trainer", "1", ""))
        .expect("a span");
    Batch::new(encoded.signal, encoded.items, encoded.bytes)
}

/// Keeps what it is sent, as OTLP/JSON.
struct Collected(Arc<Mutex<Vec<Value>>>);

impl Sink for Collected {
    fn name(&self) -> &str {
        "collected"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let mut json = Vec::new();
        pulsetrain_otlp::json::encode(batch.signal(), batch.bytes(), &mut json).expect("a batch is OTLP");
        let message = serde_json::from_slice(&json).expect("OTLP/JSON is JSON");
        if batch.signal() != Signal::Logs {
            lock(&self.0).push(message);
        }
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the energy counter was read.
fn read_at(sent: &Mutex<Vec<Value>>) -> Vec<u64> {
    let metrics = below(&lock(sent), ["resourceMetrics", "scopeMetrics", "metrics"]);
    let energies = metrics
        .into_iter()
        .filter(|metric| metric["name"] == "gpu.energy");
    let points = energies.flat_map(|metric| {
        metric["sum"]["dataPoints"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    });
    points
        .filter_map(|point| point["timeUnixNano"].as_str()?.parse().ok())
        .collect()
}

/// The spans so far, in the order of their steps.
fn spans(sent: &Mutex<Vec<Value>>) -> Vec<Value> {
    let mut spans = below(&lock(sent), ["resourceSpans", "scopeSpans", "spans"]);
    spans.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap_or_default().to_owned());
    spans
}

fn below(messages: &[Value], path: [&str; 3]) -> Vec<Value> {
    let mut found = messages.to_vec();
    for key in path {
        found = found
            .iter()
            .flat_map(|value| value[key].as_array().cloned().unwrap_or_default())
            .collect();
    }
    found
}

fn number(span: &Value, name: &str) -> Option<f64> {
    let attributes = span["attributes"].as_array()?;
    let attribute = attributes.iter().find(|attribute| attribute["key"] == name)?;
    attribute["value"]["doubleValue"].as_f64()
}

fn text_of<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    let attributes = item["attributes"].as_array()?;
    let attribute = attributes.iter().find(|attribute| attribute["key"] == name)?;
    attribute["value"]["stringValue"].as_str()
}
