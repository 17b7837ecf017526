//! A monitored GPU: its rows, its instances, the processes on it, and whether it answers.

use std::{sync::Arc, time::Duration};

use nvml_wrapper::{Device, Nvml};
use pulsetrain_pipeline::clock::{self, Instant};

use super::{
    device,
    events::Registered,
    probe::{Outcome, Pass, Probe, outcome_of},
    row::reason,
    rows,
};
use crate::{
    Gpu, GpuConfig, GpuTrouble, MigInstance, Reason,
    driver::GpuTick,
    reading::{Entity, INFREQUENT_INTERVAL, Readings},
};

/// The interval at which a GPU that does not answer is checked again.
const LOST_GPU_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// A monitored GPU and its handle.
pub(super) struct MonitoredGpu<'nvml> {
    gpu: Arc<Gpu>,
    device: Device<'nvml>,
    probe: Probe<'nvml>,
    instances: Vec<Instance<'nvml>>,
    /// The reason that its processes cannot be listed; `None` if they can.
    hidden: Option<Reason>,
    listed: Option<Instant>,
    /// Whether its registration with an NVLink fabric is still pending.
    awaits_fabric: bool,
}

/// A MIG instance of the GPU.
struct Instance<'nvml> {
    device: Device<'nvml>,
    instance: MigInstance,
    probe: Probe<'nvml>,
}

impl<'nvml> MonitoredGpu<'nvml> {
    /// Creates the monitor of an opened GPU.
    pub(super) fn new(device: Device<'nvml>, gpu: Gpu, config: &GpuConfig) -> Self {
        Self {
            gpu: Arc::new(gpu),
            probe: Probe::new(rows::of_gpu(), &device, config),
            device,
            instances: Vec::new(),
            hidden: None,
            listed: None,
            awaits_fabric: true,
        }
    }

    /// Returns the handle of the GPU.
    pub(super) fn device(&self) -> &Device<'nvml> {
        &self.device
    }

    /// Records which events of the GPU the driver reports.
    pub(super) fn settle_events(&mut self, registered: &Registered<'_>) {
        self.probe.settle_events(registered);
    }

    /// Reads the rows that are due.
    ///
    /// # Errors
    /// NVML has to be loaded again.
    pub(super) fn read(&mut self, nvml: &'nvml Nvml, config: &GpuConfig) -> Result<GpuTick, Outcome> {
        let (now, time_unix_nanos) = (clock::now(), clock::unix_nanos());
        let mut readings = Readings::default();
        if self.is_still_lost(now) {
            return Ok(GpuTick::new(&self.gpu, Some(readings.all), time_unix_nanos));
        }
        let trouble = match self.read_all(nvml, config, now, &mut readings) {
            Outcome::Gone => return Err(Outcome::Gone),
            Outcome::Lost => Some(GpuTrouble::Lost),
            Outcome::Failing => Some(GpuTrouble::DriverError),
            Outcome::Read => None,
        };
        if trouble.is_some() {
            self.listed = Some(now);
            readings.all.clear();
            self.probe.forget_failures();
            self.mark_all_rows_due();
        } else if let Some(unavailable) = self.probe.changed_unavailable() {
            self.update_gpu(|gpu| gpu.unavailable = unavailable);
        }
        self.update_gpu(|gpu| gpu.trouble = trouble);
        Ok(GpuTick::new(&self.gpu, Some(readings.all), time_unix_nanos))
    }

    /// Makes all rows due that have an answer, constants included, because the series of the GPU have ended.
    pub(super) fn mark_all_rows_due(&mut self) {
        let instances = self.instances.iter_mut().map(|instance| &mut instance.probe);
        std::iter::once(&mut self.probe)
            .chain(instances)
            .for_each(Probe::mark_all_rows_due);
    }

    /// Returns whether a GPU that did not answer still does not. It is checked with a single call, and not in every pass.
    fn is_still_lost(&mut self, now: Instant) -> bool {
        let (Some(_), Some(asked)) = (self.gpu.trouble, self.listed) else {
            return false;
        };
        if now.saturating_duration_since(asked) < LOST_GPU_RETRY_INTERVAL {
            return true;
        }
        self.listed = Some(now);
        let answers = match self.device.performance_state() {
            Err(error) => outcome_of(&error).is_none() && reason(&error) != Reason::DriverError,
            Ok(_) => true,
        };
        if answers {
            self.listed = None;
        }
        !answers
    }

    fn read_all(
        &mut self,
        nvml: &'nvml Nvml,
        config: &GpuConfig,
        now: Instant,
        readings: &mut Readings,
    ) -> Outcome {
        let is_due = |listed: Instant| now.saturating_duration_since(listed) >= INFREQUENT_INTERVAL;
        if self.listed.is_none_or(is_due) {
            self.listed = Some(now);
            if let Some(outcome) = self.list(config) {
                return outcome;
            }
        }
        let mut pass = Pass {
            nvml,
            device: &self.device,
            instance: None,
            processes: match self.hidden {
                Some(reason) => Err(reason),
                None => Ok(&self.gpu.processes),
            },
            now,
        };
        let mut outcome = self.probe.read(&pass, readings);
        for instance in &mut self.instances {
            if outcome != Outcome::Read {
                break;
            }
            readings.entity = Entity::Instance(instance.instance.index);
            pass.instance = Some((&self.device, instance.instance.gpu_instance_id));
            pass.device = &instance.device;
            outcome = match instance.probe.read(&pass, readings) {
                // Every call about a destroyed instance fails; the GPU itself works.
                Outcome::Failing => Outcome::Read,
                outcome => outcome,
            };
        }
        readings.entity = Entity::Gpu;
        outcome
    }

    /// Lists the processes on the GPU and its instances.
    fn list(&mut self, config: &GpuConfig) -> Option<Outcome> {
        let device = &self.device;
        let mut processes = device::processes(device);
        let split = match device::instances(device) {
            Ok(split) => split,
            Err(error) => return outcome_of(&error),
        };
        if let (Err(Reason::NoPermission), Some(found)) = (&processes, &split)
            && !found.is_empty()
        {
            processes = device::processes_of_instances(found);
        }
        self.hidden = processes.as_ref().err().copied();
        let mig = split
            .as_ref()
            .map(|found| !found.is_empty() || device.mig_mode().is_ok_and(|mode| mode.current == 1));
        let fabric = if self.awaits_fabric {
            device::fabric(device)
        } else {
            Ok(None)
        };
        // A GPU registers some time after it appears. An error means that it cannot register.
        self.awaits_fabric &= matches!(fabric, Ok(None));
        self.follow_split(split.unwrap_or_default(), config);
        let instances = self
            .instances
            .iter()
            .map(|known| known.instance.clone())
            .collect::<Vec<_>>();
        self.update_gpu(|gpu| {
            gpu.fabric = gpu.fabric.take().or(fabric.ok().flatten());
            gpu.processes = processes.unwrap_or_default();
            gpu.mig = mig;
            gpu.instances = instances;
        });
        None
    }

    /// Keeps the probes of known instances, and creates probes for new ones.
    fn follow_split(&mut self, found: Vec<(Device<'nvml>, MigInstance)>, config: &GpuConfig) {
        let mut known = std::mem::take(&mut self.instances);
        for (device, instance) in found {
            let same = known.iter().position(|known| known.instance == instance);
            let monitored = match same {
                Some(place) => known.swap_remove(place),
                None => Instance {
                    probe: Probe::new(rows::of_instance(), &device, config),
                    device,
                    instance,
                },
            };
            self.instances.push(monitored);
        }
    }

    /// Updates the description of the GPU; the `Arc` is replaced only if the description has changed.
    fn update_gpu(&mut self, change: impl FnOnce(&mut Gpu)) {
        let mut changed = (*self.gpu).clone();
        change(&mut changed);
        if changed != *self.gpu {
            self.gpu = Arc::new(changed);
        }
    }
}
