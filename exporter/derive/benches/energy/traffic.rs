//! The traffic: points of training, readings of eight GPUs, steps with their child spans.

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{
        Attribute, AttributeValue, Encoded, Envelope, MetricsWriter, PointParts, SpanParts, SpansWriter,
    },
};
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::{Instrument, Metric, attribute as a, metric as m, span};

/// The start of all telemetry, in nanoseconds since 1970.
const BEGIN: u64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
const GPUS: u64 = 8;
const STEPS: u64 = 200;
const IDS: [&str; 8] = [
    "GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5", "GPU-6", "GPU-7",
];

/// Returns batches of losses and similar values.
pub(crate) fn training() -> Vec<Batch> {
    const POINTS: u64 = 512;
    let metrics: [&'static Metric; 4] = [
        &m::TRAIN_LOSS,
        &m::TRAIN_LEARNING_RATE,
        &m::TRAIN_GRAD_NORM,
        &m::TRAIN_THROUGHPUT_TOKENS,
    ];
    let batch = |number: u64| {
        let mut writer = MetricsWriter::default();
        for point in 0..POINTS {
            let parts = PointParts {
                time_unix_nanos: UnixNanos(BEGIN + (number * POINTS + point) * SECOND / 4),
                ..PointParts::default()
            };
            let metric = metrics[point as usize % metrics.len()];
            writer.number(metric, parts, NumberValue::Double(point as f64));
        }
        of_run(|envelope| writer.finish(envelope), 0)
    };
    (0..STEPS).map(batch).collect()
}

/// Returns the readings of eight GPUs, one a second.
pub(crate) fn gpus() -> Vec<Batch> {
    (1..=STEPS).map(tick).collect()
}

/// Returns the steps of eight ranks, a second each.
pub(crate) fn steps() -> Vec<Batch> {
    (0..STEPS)
        .flat_map(|step| (0..GPUS as i64).map(move |rank| step_of(rank, step)))
        .collect()
}

/// Returns the steps of a run, each followed by readings of the GPUs.
pub(crate) fn run() -> Vec<Batch> {
    let step = |step: u64| {
        (0..GPUS as i64)
            .map(move |rank| step_of(rank, step))
            .chain([tick(step + 1)])
    };
    (0..STEPS).flat_map(step).collect()
}

/// Returns the readings before all steps.
pub(crate) fn first_tick() -> Batch {
    tick(0)
}

/// Returns one reading of eight GPUs. The stage uses some of its metrics and ignores most.
fn tick(second: u64) -> Batch {
    let mut writer = MetricsWriter::default();
    for gpu in 0..GPUS {
        let (id, rank) = (IDS[gpu as usize], AttributeValue::Int(gpu as i64));
        let rank_attributes = [
            (&a::GPU_ID, AttributeValue::Text(id)),
            (&a::TRAIN_RUN_ID, "r".into()),
            (&a::TRAIN_RANK, rank),
        ];
        let mut put = |metric: &'static Metric, own: &[Attribute<'_>], value: f64| {
            let attributes: Vec<_> = rank_attributes.iter().chain(own).copied().collect();
            let parts = PointParts {
                start_unix_nanos: if metric.instrument == Instrument::Counter {
                    UnixNanos(BEGIN)
                } else {
                    UnixNanos::UNKNOWN
                },
                time_unix_nanos: UnixNanos(BEGIN + second * SECOND),
                attributes: &attributes,
            };
            writer.number(metric, parts, NumberValue::Double(value));
        };
        put(&m::GPU_ENERGY, &[], second as f64 * 500.0);
        put(&m::GPU_POWER, &[(&a::GPU_POWER_READING, "instant".into())], 500.0);
        put(&m::GPU_UTILIZATION, &[(&a::GPU_TASK, "general".into())], 0.9);
        for reason in ["power_cap", "thermal_cap", "sync_boost", "board_limit"] {
            put(
                &m::GPU_THROTTLE_TIME,
                &[(&a::GPU_THROTTLE_REASON, reason.into())],
                second as f64 * 0.01,
            );
        }
        for link in 0..70 {
            put(
                &m::GPU_NVLINK_SPEED,
                &[(&a::GPU_LINK_INDEX, AttributeValue::Int(link))],
                26e9,
            );
        }
    }
    of_run(|envelope| writer.finish(envelope), -1)
}

fn step_of(rank: i64, step: u64) -> Batch {
    let mut writer = SpansWriter::default();
    let (start, length) = (BEGIN + step * SECOND, SECOND - 1_000_000);
    let id = |place: u64| (step << 16 | (rank as u64) << 8 | place).to_be_bytes();
    for place in 1..=8 {
        writer.span(&SpanParts {
            span: &span::PERF_FORWARD,
            trace_id: [7; 16],
            span_id: id(place + 1),
            parent_span_id: Some(id(1)),
            start_unix_nanos: UnixNanos(start + (place - 1) * length / 8),
            end_unix_nanos: UnixNanos(start + place * length / 8),
            attributes: &[],
        });
    }
    writer.span(&SpanParts {
        span: &span::TRAIN_STEP,
        trace_id: [7; 16],
        span_id: id(1),
        parent_span_id: None,
        start_unix_nanos: UnixNanos(start),
        end_unix_nanos: UnixNanos(start + length),
        attributes: &[(&a::TRAIN_STEP, AttributeValue::Int(step as i64))],
    });
    of_run(|envelope| writer.finish(envelope), rank)
}

/// Returns a batch of a rank of the run, or of the host without a rank.
fn of_run(finish: impl FnOnce(&Envelope) -> Option<Encoded>, rank: i64) -> Batch {
    let of_rank = [
        (a::TRAIN_RUN_ID.name, AttributeValue::Text("r")),
        (a::TRAIN_RANK.name, AttributeValue::Int(rank)),
        (a::TRAIN_WORLD_SIZE.name, AttributeValue::Int(8)),
        (a::HOST_NAME.name, AttributeValue::Text("h")),
    ];
    let resource = if rank < 0 { &of_rank[3..] } else { &of_rank };
    let encoded = finish(&Envelope::new(resource, "bench", "1", "")).unwrap();
    Batch::new(encoded.signal, encoded.items, encoded.bytes)
}
