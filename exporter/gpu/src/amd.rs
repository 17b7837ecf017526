//! AMD GPUs through the files of the kernel's `amdgpu` driver, without a library.
//!
//! `card` finds the GPUs and reads their files, `rows` is the table of their metrics. `metrics_table` decodes the file
//! `gpu_metrics`, `table_rows` is the table of its metrics. `energy` checks the energy counter against the power, `throttle`
//! converts the firmware's cycles to times, `compute` has the processes. The files and their units are those of the kernel's
//! documentation (`Documentation/gpu/amdgpu`).

mod card;
mod compute;
mod energy;
mod metrics_table;
mod rows;
mod table_rows;
mod throttle;

use std::{
    io::{self, ErrorKind},
    path::Path,
    sync::Arc,
};

use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_semconv::metric;

pub use self::rows::markdown;
use self::{
    card::Card,
    compute::ComputeNode,
    energy::{Energy, Verdict},
    metrics_table::{Field, MetricsTable},
    rows::ROWS,
    table_rows::TABLE_ROWS,
    throttle::Throttle,
};
use crate::{
    Driver, Gpu, GpuConfig, GpuProcess, GpuTrouble, Reason, Unavailable,
    driver::{GpuTick, StopReason, Tick},
    reading::{Cadence, Entity, INFREQUENT_INTERVAL, Labels, Reading, Readings, Sample},
};

/// The GPUs of a machine, in the order of their PCI addresses, as HIP numbers them.
pub(crate) struct AmdGpus(Vec<MonitoredGpu>);

/// A GPU with its state between passes.
struct MonitoredGpu {
    card: Card,
    node: Option<ComputeNode>,
    gpu: Arc<Gpu>,
    energy: Energy,
    throttle: Throttle,
    /// The time of the next pass that also reads the infrequent rows; `None` before the first pass.
    next_infrequent: Option<Instant>,
}

impl AmdGpus {
    /// Returns the GPUs that the kernel lists below `sysfs`, numbered from `first_index` on, or `None` if there are none.
    pub(crate) fn find(sysfs: &Path, first_index: u32) -> Option<Self> {
        let nodes = compute::nodes(sysfs);
        let monitored = |(index, card): (usize, Card)| {
            let node = nodes.iter().find(|node| node.is_of(&card)).cloned();
            let gpu = Arc::new(card.gpu(first_index + index as u32, node.as_ref()));
            MonitoredGpu {
                card,
                node,
                gpu,
                energy: Energy::default(),
                throttle: Throttle::default(),
                next_infrequent: None,
            }
        };
        let gpus: Vec<_> = card::find(sysfs).into_iter().enumerate().map(monitored).collect();
        (!gpus.is_empty()).then_some(Self(gpus))
    }

    /// Reads the GPUs until the kernel lists different ones, or until `wait` returns the reason to end. `wait` waits until the
    /// time of the next pass.
    pub(crate) fn read(
        mut self,
        config: &GpuConfig,
        mut on_pass: impl FnMut(Tick),
        wait: impl Fn(Instant) -> Option<StopReason>,
    ) -> StopReason {
        let driver = Arc::new(Driver {
            version: card::driver_version(&config.sysfs),
            ..Driver::default()
        });
        let (mut due, mut counted) = (clock::now(), clock::now());
        loop {
            let (time_unix_nanos, began) = (clock::unix_nanos(), clock::now());
            let gpus = self.0.iter_mut().map(|gpu| gpu.read(config)).collect();
            on_pass(Tick {
                driver: Arc::clone(&driver),
                gpus,
                time_unix_nanos,
                took: clock::now().saturating_duration_since(began),
            });
            let now = clock::now();
            if now.saturating_duration_since(counted) >= INFREQUENT_INTERVAL {
                counted = now;
                let listed = card::find(&config.sysfs);
                if !listed.iter().eq(self.0.iter().map(|gpu| &gpu.card)) {
                    return StopReason::ReloadRequired;
                }
            }
            due = clock::later(due, config.interval).max(now);
            if let Some(ended) = wait(due) {
                return ended;
            }
        }
    }
}

impl MonitoredGpu {
    /// Makes one pass over the table.
    fn read(&mut self, config: &GpuConfig) -> GpuTick {
        let time_unix_nanos = clock::unix_nanos();
        let now = clock::now();
        let is_first = self.next_infrequent.is_none();
        let is_infrequent = self.next_infrequent.is_none_or(|at| at <= now);
        if is_infrequent {
            self.next_infrequent = Some(clock::later(now, INFREQUENT_INTERVAL));
        }
        let mut out = Readings::default();
        let (mut missing, mut answers) = (Vec::new(), false);
        let is_due = |cadence| match cadence {
            Cadence::Tick => true,
            Cadence::Infrequent => is_infrequent,
            Cadence::Once => is_first,
        };
        for row in ROWS {
            if !is_due(row.cadence) {
                missing.extend(self.known_missing(row.file));
                continue;
            }
            out.cadence = row.cadence;
            match (row.read)(&self.card, &mut out) {
                Ok(()) => answers = true,
                Err(error) => missing.push(row.unavailable(card::reason(&error))),
            }
        }
        let table = self.card.metrics_table();
        self.read_table(&table, is_due, &mut out, &mut missing);
        self.read_throttling(&table, &mut out, &mut missing);
        self.read_energy(&table, now, &mut out, &mut missing);
        let processes = self.read_processes(config, is_infrequent, &mut out, &mut missing);
        let trouble = (!answers).then_some(GpuTrouble::DriverError);
        let partitions = if is_infrequent {
            self.card.partitions()
        } else {
            let known = &self.gpu;
            [known.compute_partition.clone(), known.memory_partition.clone()]
        };
        let known = &*self.gpu;
        let known_partitions = [&known.compute_partition, &known.memory_partition];
        if missing != known.unavailable
            || processes != known.processes
            || trouble != known.trouble
            || partitions.each_ref() != known_partitions
        {
            let [compute_partition, memory_partition] = partitions;
            self.gpu = Arc::new(Gpu {
                unavailable: missing,
                processes,
                trouble,
                compute_partition,
                memory_partition,
                ..known.clone()
            });
        }
        GpuTick::new(&self.gpu, Some(out.all), time_unix_nanos)
    }

    /// Returns the metric that was missing when a file was last read, for a pass that does not read the file.
    fn known_missing(&self, file: &str) -> Option<Unavailable> {
        let mut known = self.gpu.unavailable.iter();
        known.find(|known| known.call == file).cloned()
    }

    /// Reads the metrics from the table that no file has.
    fn read_table(
        &self,
        table: &io::Result<MetricsTable>,
        is_due: impl Fn(Cadence) -> bool,
        out: &mut Readings,
        missing: &mut Vec<Unavailable>,
    ) {
        for row in TABLE_ROWS {
            if !is_due(row.cadence) {
                missing.extend(self.known_missing(row.field));
                continue;
            }
            let is_read = |reading: &Reading| reading.metric.ordinal == row.metric.ordinal;
            if out.all.iter().any(is_read) {
                continue;
            }
            out.cadence = row.cadence;
            if let Err(error) = from_table(table, |table| (row.read)(table, out)) {
                missing.push(row.unavailable(card::reason(&error)));
            }
        }
    }

    /// Reads the throttle reasons and the throttle times.
    fn read_throttling(
        &mut self,
        table: &io::Result<MetricsTable>,
        out: &mut Readings,
        missing: &mut Vec<Unavailable>,
    ) {
        out.cadence = Cadence::Tick;
        let has_status = from_table(table, |table| table_rows::record_status(table, out));
        let has_cycles = from_table(table, |table| table.value(Field::Cycles));
        if let (Ok(table), Ok(_)) = (table, &has_cycles) {
            for (reason, throttled) in self.throttle.update(table).into_iter().flatten() {
                out.flag(&metric::GPU_THROTTLE_ACTIVE, reason, throttled.is_active);
                let labels = Labels::fixed(reason);
                out.total(
                    &metric::GPU_THROTTLE_TIME,
                    labels,
                    throttled.nanos,
                    throttle::SECONDS,
                );
            }
        }
        let mut lacks = |metric, call, error: &io::Error, meaning| {
            missing.push(Unavailable {
                metric,
                call,
                reason: card::reason(error),
                meaning,
                partly: false,
            });
        };
        let Err(error) = has_cycles else { return };
        lacks(
            &metric::GPU_THROTTLE_TIME,
            table_rows::RESIDENCIES,
            &error,
            table_rows::NO_RESIDENCIES,
        );
        if has_status.is_err() {
            lacks(
                &metric::GPU_THROTTLE_ACTIVE,
                table_rows::THROTTLE,
                &error,
                table_rows::NO_THROTTLE,
            );
        }
    }

    /// Reads the energy counter, which is recorded once it has agreed with the power.
    fn read_energy(
        &mut self,
        table: &io::Result<MetricsTable>,
        now: Instant,
        out: &mut Readings,
        missing: &mut Vec<Unavailable>,
    ) {
        let energy = from_table(table, |table| table.value(Field::Energy));
        let reason = match (energy, power_of(out)) {
            (Ok(raw), Some(watts)) => match self.energy.check(raw, watts, now) {
                Verdict::Agrees => {
                    out.cadence = Cadence::Tick;
                    out.total(&metric::GPU_ENERGY, Labels::default(), raw, energy::JOULES);
                    return;
                }
                Verdict::Unknown => return,
                Verdict::Disagrees => Reason::DriverError,
            },
            (Err(error), _) => card::reason(&error),
            // Without the power, the counter cannot be checked.
            (Ok(_), None) => Reason::NotSupported,
        };
        missing.push(Unavailable {
            metric: &metric::GPU_ENERGY,
            call: "gpu_metrics",
            reason,
            meaning: energy::ABSENT,
            partly: false,
        });
    }

    /// Reads the processes and their memory in infrequent passes. In between, the processes of the last such pass are returned.
    fn read_processes(
        &self,
        config: &GpuConfig,
        is_infrequent: bool,
        out: &mut Readings,
        missing: &mut Vec<Unavailable>,
    ) -> Vec<GpuProcess> {
        let (true, Some(node)) = (config.processes, &self.node) else {
            return Vec::new();
        };
        if !is_infrequent {
            missing.extend(self.known_missing(compute::PROCESSES));
            return self.gpu.processes.clone();
        }
        match node.processes(&config.sysfs) {
            Ok(processes) => {
                out.cadence = Cadence::Infrequent;
                for process in &processes {
                    out.entity = Entity::Process(process.pid);
                    let bytes = process.memory_bytes.unwrap_or_default();
                    out.now(&metric::GPU_PROCESS_MEMORY, Labels::default(), bytes as f64);
                }
                processes
            }
            Err(error) => {
                missing.push(Unavailable {
                    metric: &metric::GPU_PROCESS_MEMORY,
                    call: compute::PROCESSES,
                    reason: card::reason(&error),
                    meaning: compute::ABSENT,
                    partly: false,
                });
                Vec::new()
            }
        }
    }
}

/// Returns a value of the table, or an error with the reason for its absence.
fn from_table<T>(
    table: &io::Result<MetricsTable>,
    read: impl FnOnce(&MetricsTable) -> Option<T>,
) -> io::Result<T> {
    match table {
        Ok(table) => read(table).ok_or_else(|| ErrorKind::Unsupported.into()),
        Err(error) => Err(error.kind().into()),
    }
}

/// Returns the power in watts that this pass has read.
fn power_of(readings: &Readings) -> Option<f64> {
    let is_power = |reading: &&Reading| reading.metric.ordinal == metric::GPU_POWER.ordinal;
    match readings.all.iter().find(is_power)?.value {
        Sample::Now(watts) => Some(watts),
        _ => None,
    }
}
