//! The stage between the GPU source and a sink: the energy of each step is known exactly in advance.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pulsetrain_derive::{EnergyConfig, EnergyStage};
use pulsetrain_gpu::{
    GpuConfig, GpuSource,
    workload::{ProcessAttribution, Workload, WorkloadConfig},
};
use pulsetrain_otlp::{
    Signal, UnixNanos,
    write::{AttributeValue as Written, Envelope, SpanParts, SpansWriter},
};
use pulsetrain_pipeline::{Batch, CancellationToken, Pipeline, run_sources};
use pulsetrain_semconv::{attribute, span};
use pulsetrain_tests::{
    FakeNvml,
    otlp::{double, steps, sums, time},
    wait_until,
};
use serde_json::Value;

use crate::{
    step_energy::power::{ALONE, joules},
    watch::{JsonSink, lock},
};

/// The boundaries of the steps, in seconds of the scenario; their lengths are uneven and unrelated to the ticks.
const BORDERS: [f64; 7] = [0.5, 0.617, 1.31, 1.313, 1.9, 2.24, 2.9];

#[test]
fn step_energies_add_up_to_the_gpu_energy_within_their_error_bounds() {
    let driver = FakeNvml::with("uneven_power", ALONE);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let sent = Arc::<Mutex<Vec<Value>>>::default();
    let (collected, stop) = (Arc::clone(&sent), CancellationToken::new());
    let sink = JsonSink(move |batch: &Batch, message: Value| {
        if batch.signal() != Signal::Logs {
            lock(&collected).push(message);
        }
    });
    let (pipeline, ingress, reading) = runtime.block_on(async {
        let stage = EnergyStage::new(EnergyConfig::default());
        let builder = Pipeline::builder().stage(Box::new(stage)).sink(Box::new(sink));
        let (pipeline, ingress) = builder.start();
        let (to, stopped) = (ingress.clone(), stop.clone());
        let source = source(&driver);
        let reading = tokio::spawn(async move { run_sources(vec![source], &to, &stopped).await });
        (pipeline, ingress, reading)
    });
    driver.run_from(0.0);
    for (number, pair) in (0_i64..).zip(BORDERS.windows(2)) {
        let [start, end] = [pair[0], pair[1]].map(|second| driver.unix_nanos(second));
        // A step is recorded after its end, and before the next reading of the counter.
        let read = |energies: &[u64]| {
            energies
                .last()
                .is_some_and(|time| *time >= end.saturating_sub(200_000_000))
        };
        wait_until("the GPU was read up to the end of the step", || {
            read(&read_at(&sent))
        });
        ingress
            .try_send_or_drop(step(number, start, end))
            .expect("the pipeline is open");
    }
    let derived = || {
        steps(&lock(&sent))
            .into_iter()
            .filter(|span| double(span, "gpu.step.energy").is_some())
            .collect::<Vec<_>>()
    };
    wait_until("every step has its energy", || {
        derived().len() == BORDERS.len() - 1
    });
    let derived = derived();
    stop.cancel();
    runtime.block_on(async {
        reading.await.expect("the source does not panic");
        pipeline.drain(Duration::from_secs(10)).await;
    });

    let mut sum = 0.0;
    for (pair, span) in BORDERS.windows(2).zip(&derived) {
        let truth = joules(pair[0], pair[1]);
        let reported = double(span, "gpu.step.energy").expect("it is there");
        let error = double(span, "gpu.step.energy_error").expect("it has a bound");
        // The driver counts in millijoules.
        assert!(
            (reported - truth).abs() <= error + 0.002,
            "{pair:?}: {reported} J, not {truth} J within {error} J"
        );
        sum += reported;
    }
    let complete = joules(BORDERS[0], BORDERS[6]);
    assert!(
        (sum - complete).abs() <= 0.01 * complete,
        "{sum} J, not {complete} J within 1 %"
    );
}

/// Returns the source of a driver without processes, whose GPUs are all attributed to our run.
fn source(driver: &FakeNvml) -> Box<GpuSource> {
    let ours = Workload::of_variables(|name| (name == "PULSETRAIN_RUN_ID").then(|| "r".to_owned()));
    let config = WorkloadConfig {
        kubelet: None,
        ours: Some(ours),
        ..WorkloadConfig::default()
    };
    let workloads = ProcessAttribution::start(config, |notice| panic!("{notice}"));
    let config = GpuConfig {
        library: Some(driver.library()),
        interval: Duration::from_millis(120),
        ..GpuConfig::default()
    };
    Box::new(GpuSource::new(config, Box::new(workloads), |_| {}))
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
        start_unix_nanos: UnixNanos(start),
        end_unix_nanos: UnixNanos(end),
        attributes: &[(&attribute::TRAIN_STEP, Written::Int(number))],
    });
    let encoded = writer
        .finish(&Envelope::new(&resource, "trainer", "1", ""))
        .expect("a span");
    Batch::new(encoded.signal, encoded.items, encoded.bytes)
}

/// Returns the times of the readings of the energy counter.
fn read_at(sent: &Mutex<Vec<Value>>) -> Vec<u64> {
    let energies = sums(&lock(sent), "gpu.energy");
    energies.iter().map(|point| time(point, "timeUnixNano")).collect()
}
