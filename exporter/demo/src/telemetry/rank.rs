//! A rank with its recorder: its resource, its attempts, and the ids of its spans.

use std::rc::Rc;

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, SpanParts},
};
use pulsetrain_pipeline::Batch;
use pulsetrain_record::{Recorder, Run, lifecycle_trace};
use pulsetrain_semconv::{Span, attribute};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::Outbox;
use crate::{
    config::DemoConfig,
    gpus::{GPUS_PER_HOST, host_name},
};

/// The name of the simulated trainer.
pub(super) const FRAMEWORK: &str = "pulsetrain-demo";

/// One rank.
pub(super) struct Rank {
    recorder: Recorder<'static>,
    outbox: Outbox,
}

impl Rank {
    pub(super) fn new(config: &DemoConfig, rank: u32, outbox: Outbox) -> Self {
        let run = run(config, rank);
        Self {
            recorder: recorder(run, &outbox),
            outbox,
        }
    }

    pub(super) fn recorder(&mut self) -> &mut Recorder<'static> {
        &mut self.recorder
    }

    pub(super) fn run(&self) -> &Run {
        self.recorder.run()
    }

    pub(super) fn local_rank(&self) -> i64 {
        self.run().local_rank.unwrap_or_default()
    }

    /// Begins another attempt, with its own sums.
    pub(super) fn begin_attempt(&mut self, attempt: i64, start_unix_nanos: UnixNanos) {
        self.flush();
        let run = Run {
            attempt,
            start_unix_nanos,
            ..self.run().clone()
        };
        self.recorder = recorder(run, &self.outbox);
    }

    pub(super) fn end_series(&mut self) {
        self.recorder.end_series();
    }

    pub(super) fn flush(&mut self) {
        self.recorder.flush();
    }

    /// Records a span in the trace of the run's life.
    pub(super) fn record_lifecycle(
        &mut self,
        span: &'static Span,
        (start_unix_nanos, end_unix_nanos): (UnixNanos, UnixNanos),
        attributes: &[Attribute<'_>],
    ) {
        let run = self.run();
        let parts = SpanParts {
            span,
            trace_id: lifecycle_trace(run),
            span_id: span_id(run, span.name, start_unix_nanos.0),
            parent_span_id: None,
            start_unix_nanos,
            end_unix_nanos,
            attributes,
        };
        self.recorder.record_span(&parts);
    }
}

/// Returns the id of a span by its name and the number that identifies it among spans of the name.
pub(super) fn span_id(run: &Run, name: &str, number: u64) -> [u8; 8] {
    let mut hash = Xxh3::new();
    for part in [run.id.as_bytes(), name.as_bytes()] {
        hash.update(part);
        hash.update(&[0]);
    }
    for number in [run.rank as u64, run.attempt as u64, number] {
        hash.update(&number.to_le_bytes());
    }
    // An id of zeroes is invalid.
    hash.digest().max(1).to_be_bytes()
}

fn recorder(run: Run, outbox: &Outbox) -> Recorder<'static> {
    let outbox = Rc::clone(outbox);
    let put = move |encoded: pulsetrain_otlp::write::Encoded| {
        let batch = Batch::new(encoded.signal, encoded.items, encoded.bytes);
        outbox.borrow_mut().push(batch);
    };
    Recorder::new(run, put).tracking_series()
}

fn run(config: &DemoConfig, rank: u32) -> Run {
    let workload = config.workload.as_str();
    let id = run_id(config);
    Run {
        name: format!("demo-{workload}-{}", config.seed),
        id,
        project: "demo".to_owned(),
        framework: FRAMEWORK.to_owned(),
        rank: i64::from(rank),
        local_rank: Some(i64::from(rank % GPUS_PER_HOST)),
        world_size: Some(i64::from(config.ranks)),
        start_unix_nanos: config.start_unix_nanos,
        extra: vec![(
            attribute::HOST_NAME.name.to_owned(),
            host_name(rank / GPUS_PER_HOST),
        )],
        ..Run::default()
    }
}

/// Returns the id of the run, which differs for every start time and every seed.
pub(crate) fn run_id(config: &DemoConfig) -> String {
    let parts = [config.seed, config.start_unix_nanos.0, u64::from(config.ranks)];
    let bytes = parts.map(u64::to_le_bytes).concat();
    format!("demo-{:016x}", xxh3_64(&bytes))
}
