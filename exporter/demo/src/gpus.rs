//! The GPUs of all hosts, read as the NVML source reads real ones: `model` is the physics of one, `readings` the rows.

mod model;
mod readings;

use std::{sync::Arc, time::Duration};

use pulsetrain_gpu::{
    Driver, Gpu, GpuAttribution, GpuConfig, GpuRecorder, GpuSemconv, OwnedAttribute, OwnedValue, Subject,
};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::attribute;

use self::model::{GpuModel, Load};
use crate::{
    config::DemoConfig,
    job::{Activity, Phase, Segment, StepRun},
    random::Random,
};

/// GPUs, and ranks, of a host.
pub(crate) const GPUS_PER_HOST: u32 = 8;
/// The duration of a pass over the GPUs of a host.
const PASS: Duration = Duration::from_millis(4);
/// The first random stream of the ids; each GPU has its own.
const ID_STREAM: u64 = 0x6700_0000;

/// Power in watts: idle, under light load, in a collective that waits, under full load.
const IDLE: f64 = 75.0;
const LIGHT: f64 = 118.0;
const WAITING: f64 = 138.0;
const FULL: f64 = 630.0;

/// Returns the name of a host.
pub(crate) fn host_name(host: u32) -> String {
    format!("demo-node-{host}")
}

/// Returns the ids of the GPUs, one for each rank.
pub(crate) fn gpu_ids(config: &DemoConfig) -> Vec<String> {
    let id = |rank| {
        let mut random = Random::new(config.seed, ID_STREAM + rank);
        let (high, low) = (random.next(), random.next());
        let hex = format!("{high:016x}{low:016x}");
        let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
        format!("GPU-{a}-{b}-{c}-{d}-{e}")
    };
    (0..u64::from(config.ranks)).map(id).collect()
}

/// All GPUs.
pub(crate) struct SimulatedGpus {
    hosts: Vec<Host>,
    step_seconds: f64,
}

/// The GPUs of a host.
struct Host {
    recorder: GpuRecorder,
    gpus: Vec<GpuModel>,
    first_rank: usize,
}

impl SimulatedGpus {
    /// Returns the GPUs of a job.
    pub(crate) fn new(config: &DemoConfig, ids: &[String], run_id: &str) -> Self {
        let hosts = ids.chunks(GPUS_PER_HOST as usize).enumerate();
        Self {
            hosts: hosts
                .map(|(host, ids)| Host::new(config, host as u32, ids, run_id))
                .collect(),
            step_seconds: config.step_time.as_secs_f64(),
        }
    }

    /// Reads all GPUs at a time within a segment.
    pub(crate) fn read(&mut self, time_unix_nanos: UnixNanos, segment: &Segment) -> Vec<Batch> {
        let step_seconds = self.step_seconds;
        let read = |host: &mut Host| host.read(time_unix_nanos, segment, step_seconds);
        self.hosts.iter_mut().flat_map(read).collect()
    }

    /// Records an XID error of the GPU of a rank.
    pub(crate) fn record_xid(&mut self, rank: usize, code: u64, time_unix_nanos: UnixNanos) -> Vec<Batch> {
        let host = &mut self.hosts[rank / GPUS_PER_HOST as usize];
        let id = host.gpus[rank - host.first_rank].gpu().uuid.clone();
        host.recorder.record_xid(&id, code, time_unix_nanos);
        host.flush(time_unix_nanos)
    }
}

impl Host {
    fn new(config: &DemoConfig, host: u32, ids: &[String], run_id: &str) -> Self {
        let first_rank = (host * GPUS_PER_HOST) as usize;
        let name = host_name(host);
        let nvml = GpuConfig {
            interval: config.gpu_interval,
            semconv: GpuSemconv::Gpu,
            resource: vec![
                (attribute::HOST_NAME.name.to_owned(), name.clone()),
                (attribute::SERVICE_INSTANCE_ID.name.to_owned(), name),
            ],
            ..GpuConfig::default()
        };
        let driver = Driver {
            version: "580.82.07".to_owned(),
            nvml_version: "13.580.82.07".to_owned(),
            cuda_version: 13_000,
        };
        let owner = RankAttribution {
            run: run_id.into(),
            first_rank: first_rank as i64,
            world_size: i64::from(config.ranks),
        };
        let gpu = |(index, id): (usize, &String)| {
            GpuModel::new(index as u32, id, config.seed, (first_rank + index) as u64)
        };
        Self {
            recorder: GpuRecorder::new(&nvml, driver, Box::new(owner)),
            gpus: ids.iter().enumerate().map(gpu).collect(),
            first_rank,
        }
    }

    fn read(&mut self, time_unix_nanos: UnixNanos, segment: &Segment, step_seconds: f64) -> Vec<Batch> {
        let Self {
            recorder,
            gpus,
            first_rank,
        } = self;
        for (index, gpu) in gpus.iter_mut().enumerate() {
            let rank = *first_rank + index;
            let condition = &segment.effects.gpus[rank];
            gpu.advance(time_unix_nanos, step_seconds, &load(rank, segment), condition);
        }
        let described: Vec<Gpu> = gpus.iter().map(|gpu| gpu.gpu().clone()).collect();
        recorder.record_pass(time_unix_nanos, PASS, described, |gpu, readings| {
            gpus[gpu.index as usize].read(readings);
        });
        self.flush(time_unix_nanos)
    }

    fn flush(&mut self, now_unix_nanos: UnixNanos) -> Vec<Batch> {
        let batches = self.recorder.flush(now_unix_nanos).into_iter();
        batches
            .map(|encoded| Batch::new(encoded.signal, encoded.items, encoded.bytes))
            .collect()
    }
}

/// The attribution of the GPUs of a host: each belongs to the rank with its index.
struct RankAttribution {
    run: Arc<str>,
    first_rank: i64,
    world_size: i64,
}

impl GpuAttribution for RankAttribution {
    fn attributes(&mut self, subject: Subject<'_>, into: &mut Vec<OwnedAttribute>) {
        let (Subject::Gpu(gpu) | Subject::Instance(gpu, _) | Subject::Process(gpu, _)) = subject;
        let index = i64::from(gpu.index);
        into.extend([
            (&attribute::TRAIN_RUN_ID, OwnedValue::Text(Arc::clone(&self.run))),
            (&attribute::TRAIN_RANK, OwnedValue::Int(self.first_rank + index)),
            (&attribute::TRAIN_LOCAL_RANK, OwnedValue::Int(index)),
            (&attribute::TRAIN_WORLD_SIZE, OwnedValue::Int(self.world_size)),
        ]);
    }
}

/// Returns the load of the GPU of a rank in a segment.
fn load(rank: usize, segment: &Segment) -> Load {
    let load = |busy, power, is_used| Load {
        busy,
        power,
        is_used,
        lost: false,
    };
    match &segment.activity {
        Activity::Init | Activity::Load { .. } | Activity::Save { .. } => load(0.04, LIGHT, true),
        Activity::Compile => load(0.2, LIGHT, true),
        Activity::Eval { .. } => load(0.93, 480.0, true),
        Activity::Step(step) => {
            let (busy, computes) = step_load(step, rank);
            load(busy, LIGHT + (FULL - LIGHT) * computes, true)
        }
        Activity::Stalled => load(0.0, IDLE + 6.0, true),
        // A collective that waits spins on the GPU: NVML counts it as busy, its power is low.
        Activity::Hanging { lost } => Load {
            lost: *lost == Some(rank),
            ..load(1.0, WAITING, true)
        },
        Activity::Down { lost } => Load {
            lost: *lost == Some(rank),
            ..load(0.0, IDLE, false)
        },
    }
}

/// Returns the share of a step in which the GPU of a rank is busy, and in which it computes: without waits for other ranks.
fn step_load(step: &StepRun, rank: usize) -> (f64, f64) {
    let own = &step.ranks[rank];
    let duration = own.end_unix_nanos.nanos_since(own.start_unix_nanos).max(1) as f64;
    let share = |wanted: fn(Phase) -> bool| {
        let of_kind = own.phases().filter(|(phase, ..)| wanted(*phase));
        of_kind.map(|(_, start, end)| end.nanos_since(start)).sum::<u64>() as f64 / duration
    };
    let waits = share(|phase| matches!(phase, Phase::DispatchWait | Phase::Data));
    // The rank that is last at the barrier does not wait: its backward pass is the shortest.
    let backward = |step: &crate::job::RankStep| {
        let end_of = |wanted| step.phases().find(|(phase, ..)| *phase == wanted);
        end_of(Phase::Backward).map_or(0, |(_, start, end)| end.nanos_since(start))
    };
    let shortest = step.ranks.iter().map(backward).min().unwrap_or_default();
    let barrier = backward(own).saturating_sub(shortest) as f64 / duration;
    let busy = (1.0 - waits - 0.01).clamp(0.0, 1.0);
    (busy, (busy - barrier).clamp(0.0, 1.0))
}
