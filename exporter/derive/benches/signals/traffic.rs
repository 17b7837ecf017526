//! The traffic: values that no step needs, and steps of ranks with their points and spans.

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{
        AttributeValue, Encoded, EncodedSeries, Envelope, GrowingHistogram, MetricsWriter, PointParts,
        SpanParts, SpansWriter,
    },
};
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::{Instrument, Metric, Number, attribute as a, metric as m, span as s};

/// The start of all telemetry, in nanoseconds since 1970.
const BEGIN: u64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// The number of steps of a rank.
const STEPS: u64 = 400;

/// Batches of one kind.
pub(crate) struct Traffic {
    pub(crate) name: &'static str,
    pub(crate) batches: Vec<Batch>,
    /// The number of steps of all ranks.
    pub(crate) steps: u64,
}

impl Traffic {
    pub(crate) fn items(&self) -> u64 {
        self.batches.iter().map(|batch| u64::from(batch.items())).sum()
    }
}

/// Returns values of layers: points that no derived signal reads.
pub(crate) fn layers() -> Traffic {
    const POINTS: u64 = 512;
    let envelope = envelope(0, 1);
    let batch = |number: u64| {
        let mut writer = MetricsWriter::default();
        for point in 0..POINTS {
            let time = BEGIN + (number * POINTS + point) * SECOND / 4;
            writer.measured(&m::MOE_LOAD_IMBALANCE, UnixNanos(time), NumberValue::Double(1.5));
        }
        batch_of(writer.finish(&envelope).unwrap())
    };
    Traffic {
        name: "other points of a rank, 512 a batch",
        batches: (0..STEPS).map(batch).collect(),
        steps: 0,
    }
}

/// Returns the steps of `ranks` ranks, `in_a_batch` steps of a rank in a batch.
pub(crate) fn steps(name: &'static str, ranks: i64, in_a_batch: u64) -> Traffic {
    let mut trainers: Vec<Trainer> = (0..ranks).map(|rank| Trainer::new(rank, ranks)).collect();
    let mut batches = Vec::new();
    for first in (0..STEPS).step_by(in_a_batch as usize) {
        for trainer in &mut trainers {
            (first..first + in_a_batch).for_each(|step| trainer.step(step));
            batches.extend(trainer.batches());
        }
    }
    Traffic {
        name,
        batches,
        steps: STEPS * ranks as u64,
    }
}

/// A rank that records nine points and five spans a step.
struct Trainer {
    envelope: Envelope,
    metrics: MetricsWriter,
    spans: SpansWriter,
    histograms: Vec<GrowingHistogram>,
    tokens: i64,
}

impl Trainer {
    fn new(rank: i64, ranks: i64) -> Self {
        let histograms = [
            &m::TRAIN_STEP_DURATION,
            &m::PERF_DATA_TIME,
            &m::PERF_FORWARD_TIME,
            &m::PERF_BACKWARD_TIME,
        ];
        Self {
            envelope: envelope(rank, ranks),
            metrics: MetricsWriter::default(),
            spans: SpansWriter::default(),
            histograms: histograms
                .map(|metric| GrowingHistogram::for_series(&EncodedSeries::new(metric, &[])))
                .into(),
            tokens: 0,
        }
    }

    fn step(&mut self, step: u64) {
        let (start, end) = (BEGIN + step * SECOND, BEGIN + (step + 1) * SECOND);
        self.tokens += 16_384;
        let noise = (step * 7919 % 13) as f64 / 130.0;
        self.number(&m::TRAIN_GLOBAL_STEP, end, step as f64);
        self.number(&m::TRAIN_LOSS, end, 3.0 - noise);
        self.number(&m::TRAIN_GRAD_NORM, end, 1.0 + noise);
        self.number(&m::TRAIN_LEARNING_RATE, end, 2e-4);
        self.number(&m::TRAIN_TOKENS, end, self.tokens as f64);
        for (histogram, secs) in self.histograms.iter_mut().zip([1.0, 0.05, 0.3, 0.6]) {
            self.metrics
                .observe(histogram, (UnixNanos(BEGIN), UnixNanos(end)), secs + noise);
        }
        self.span(&s::TRAIN_STEP, step, start, end);
        for (place, child) in [
            &s::PERF_DATA,
            &s::PERF_FORWARD,
            &s::PERF_BACKWARD,
            &s::PERF_OPTIMIZER,
        ]
        .into_iter()
        .enumerate()
        {
            let start = start + place as u64 * SECOND / 4;
            self.span(child, step, start, start + SECOND / 4);
        }
    }

    fn number(&mut self, metric: &'static Metric, time: u64, value: f64) {
        let is_counter = metric.instrument == Instrument::Counter;
        let point = PointParts {
            start_unix_nanos: if is_counter {
                UnixNanos(BEGIN)
            } else {
                UnixNanos::UNKNOWN
            },
            time_unix_nanos: UnixNanos(time),
            attributes: &[],
        };
        let value = match metric.number {
            Number::Int => NumberValue::Int(value as i64),
            Number::Double => NumberValue::Double(value),
        };
        self.metrics.number(metric, point, value);
    }

    fn span(&mut self, span: &'static pulsetrain_semconv::Span, step: u64, start: u64, end: u64) {
        let mut trace_id = [7; 16];
        trace_id[..8].copy_from_slice(&step.to_be_bytes());
        self.spans.span(&SpanParts {
            span,
            trace_id,
            span_id: (start ^ end).to_be_bytes(),
            parent_span_id: None,
            start_unix_nanos: UnixNanos(start),
            end_unix_nanos: UnixNanos(end),
            attributes: &[(&a::TRAIN_STEP, AttributeValue::Int(step as i64))],
        });
    }

    fn batches(&mut self) -> [Batch; 2] {
        let metrics = self.metrics.finish(&self.envelope).unwrap();
        let spans = self.spans.finish(&self.envelope).unwrap();
        [metrics, spans].map(batch_of)
    }
}

fn batch_of(encoded: Encoded) -> Batch {
    Batch::new(encoded.signal, encoded.items, encoded.bytes)
}

fn envelope(rank: i64, ranks: i64) -> Envelope {
    let (instance, host) = (format!("r/{rank}"), format!("host-{}", rank / 8));
    let resource = [
        (a::SERVICE_NAME.name, AttributeValue::Text("trainer")),
        (a::SERVICE_INSTANCE_ID.name, AttributeValue::Text(&instance)),
        (a::HOST_NAME.name, AttributeValue::Text(&host)),
        (a::TRAIN_RUN_ID.name, AttributeValue::Text("r")),
        (a::TRAIN_RANK.name, AttributeValue::Int(rank)),
        (a::TRAIN_WORLD_SIZE.name, AttributeValue::Int(ranks)),
        (a::TRAIN_ATTEMPT.name, AttributeValue::Int(1)),
    ];
    Envelope::new(&resource, "bench", "1", "")
}
