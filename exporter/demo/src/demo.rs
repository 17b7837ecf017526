//! The demo: the plan of the job and the readings of its GPUs as batches, in the order of their time.

use std::collections::VecDeque;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::Batch;

use crate::{
    config::{ConfigError, DemoConfig},
    counts::DemoCounts,
    gpus::{SimulatedGpus, gpu_ids},
    job::{Activity, Job, Segment},
    telemetry::{Outbox, Telemetry, run_id},
    truth::Truth,
};

/// A simulated training job.
///
/// ```
/// use pulsetrain_demo::{Demo, DemoConfig, Fault};
///
/// let config = DemoConfig {
///     steps: 100,
///     faults: vec!["straggler@60:rank=3".parse::<Fault>()?],
///     ..DemoConfig::default()
/// };
/// let mut demo = Demo::new(config)?;
/// while let Some((_time_unix_nanos, batches)) = demo.next_batches() {
///     assert!(!batches.is_empty());
/// }
/// assert_eq!(demo.truth()[0].verdict(), Some("straggler"));
/// assert_eq!(demo.counts().steps, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Demo {
    config: DemoConfig,
    job: Job,
    telemetry: Telemetry,
    fleet: SimulatedGpus,
    segment: Option<Segment>,
    gpus_unix_nanos: UnixNanos,
    xids: VecDeque<Xid>,
    counts: DemoCounts,
}

/// A future XID error.
#[derive(Clone, Copy, Debug)]
struct Xid {
    rank: usize,
    code: u64,
    time_unix_nanos: UnixNanos,
}

impl Demo {
    /// Returns the job of a configuration, before its start.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(config: DemoConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let ids = gpu_ids(&config);
        Ok(Self {
            job: Job::new(&config, |rank| ids[rank].clone()),
            telemetry: Telemetry::new(&config, &ids, Outbox::default()),
            fleet: SimulatedGpus::new(&config, &ids, &run_id(&config)),
            segment: None,
            gpus_unix_nanos: config.start_unix_nanos,
            xids: VecDeque::new(),
            counts: DemoCounts::default(),
            config,
        })
    }

    /// Returns the next batches and the time at which the job has sent them; `None` at the end
    /// of the job. Times never go back.
    pub fn next_batches(&mut self) -> Option<(UnixNanos, Vec<Batch>)> {
        loop {
            let (time_unix_nanos, batches) = self.advance()?;
            batches.iter().for_each(|batch| self.counts.add(batch));
            if !batches.is_empty() {
                return Some((time_unix_nanos, batches));
            }
        }
    }

    /// Returns the faults so far.
    pub fn truth(&self) -> &[Truth] {
        self.job.truths()
    }

    /// Returns the counts of the telemetry so far.
    pub fn counts(&self) -> DemoCounts {
        self.counts
    }

    /// Advances to the next event: a reading of the GPUs, an XID error, or the end of a segment.
    fn advance(&mut self) -> Option<(UnixNanos, Vec<Batch>)> {
        let segment = match self.segment.take() {
            Some(segment) => segment,
            None => self.begin_segment()?,
        };
        let end = segment.end_unix_nanos;
        let gpus = self.gpus_unix_nanos;
        if let Some(xid) = self.xids.pop_front_if(|xid| xid.time_unix_nanos <= gpus.min(end)) {
            self.segment = Some(segment);
            let batches = self.fleet.record_xid(xid.rank, xid.code, xid.time_unix_nanos);
            return Some((xid.time_unix_nanos, batches));
        }
        if gpus <= end {
            self.gpus_unix_nanos = gpus.saturating_add(self.config.gpu_interval);
            let batches = self.fleet.read(gpus, &segment);
            self.segment = Some(segment);
            return Some((gpus, batches));
        }
        if matches!(segment.activity, Activity::Step(_)) {
            self.counts.steps += 1;
        }
        self.telemetry.record(&segment);
        Some((end, self.telemetry.take_batches()))
    }

    fn begin_segment(&mut self) -> Option<Segment> {
        let segment = self.job.next_segment()?;
        if let Activity::Step(_) = &segment.activity {
            let (start, end) = (segment.start_unix_nanos, segment.end_unix_nanos);
            let middle = start.saturating_add(end.saturating_duration_since(start) / 2);
            let xids = segment.effects.xids.iter().map(|(rank, code)| Xid {
                rank: *rank,
                code: *code,
                time_unix_nanos: middle,
            });
            self.xids.extend(xids);
        }
        Some(segment)
    }
}
