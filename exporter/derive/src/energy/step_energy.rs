//! Energy and activity of the GPUs of one step.

use pulsetrain_otlp::write::{Attribute, AttributeValue};
use pulsetrain_semconv::attribute;

use super::{
    assignment::{Attribution, GpuAssignment},
    gpu_readings::Gpu,
    readings::{ErrorBound, Measured},
    window::Window,
};

/// How completely the energy of a step is measured (`gpu.step.energy_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Complete,
    /// Complete, with an error of more than half of the energy.
    Coarse,
    Partial,
    Shared,
    Repeated,
    Unknown,
}

/// The part of the energy above which its error makes a step coarse.
const COARSE: f64 = 0.5;

/// The energy of one GPU in the parts of a step that no other step has.
struct UnattributedEnergy {
    measured: Measured,
    /// The length of these parts.
    nanos: u64,
}

/// Energy and activity of a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepEnergy {
    pub(super) status: Status,
    pub(super) attribution: Attribution,
    pub(super) gpus: usize,
    pub(super) energy_joules: Option<f64>,
    pub(super) error_joules: f64,
    /// The energy of each GPU, in the order of the assignment.
    pub(super) by_gpu: Vec<f64>,
    pub(super) mean_watts: Option<f64>,
    pub(super) peak_watts: Option<f64>,
    pub(super) busy_ratio: Option<f64>,
    pub(super) throttle: Option<(Box<str>, f64)>,
}

impl Status {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Coarse => "coarse",
            Self::Partial => "partial",
            Self::Shared => "shared",
            Self::Repeated => "repeated",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether the energy of all GPUs is known over the complete step. Consecutive steps share their borders, so the errors of
    /// coarse steps cancel in sums and means.
    pub(super) fn is_complete(self) -> bool {
        matches!(self, Self::Complete | Self::Coarse)
    }

    fn new(assignment: &GpuAssignment<'_>, energy: &[UnattributedEnergy], window: Window) -> Self {
        // Clocks of several processes differ slightly: if most of the time is attributed already, it is the same step.
        let unattributed: u64 = energy.iter().map(|gpu| gpu.nanos).sum();
        let half = window.nanos().saturating_mul(energy.len() as u64) / 2;
        if assignment.is_shared {
            Self::Shared
        } else if unattributed < half {
            Self::Repeated
        } else if energy.iter().all(|gpu| gpu.measured.nanos == gpu.nanos) {
            let joules: f64 = energy.iter().map(|gpu| gpu.measured.amount).sum();
            if error_joules(energy) > COARSE * joules {
                Self::Coarse
            } else {
                Self::Complete
            }
        } else if energy.iter().any(|gpu| gpu.measured.nanos > 0) {
            Self::Partial
        } else {
            Self::Unknown
        }
    }
}

impl StepEnergy {
    /// Computes energy and activity of the assigned GPUs in `window`.
    pub(super) fn new(assignment: &GpuAssignment<'_>, window: Window, resolution_nanos: u64) -> Self {
        let energy: Vec<_> = assignment
            .gpus
            .iter()
            .map(|gpu| UnattributedEnergy::new(gpu, window, resolution_nanos))
            .collect();
        let status = Status::new(assignment, &energy, window);
        let is_known = matches!(status, Status::Complete | Status::Coarse | Status::Partial);
        Self {
            status,
            attribution: assignment.attribution,
            gpus: assignment.gpus.len(),
            energy_joules: is_known.then(|| energy.iter().map(|gpu| gpu.measured.amount).sum()),
            by_gpu: energy.iter().map(|gpu| gpu.measured.amount).collect(),
            error_joules: error_joules(&energy),
            mean_watts: sum_of_all(assignment.gpus.iter().map(|gpu| {
                let mean_of_counter = mean(&gpu.energy.energy(window, 0));
                mean_of_counter.or_else(|| mean(&gpu.power.level(window)))
            })),
            peak_watts: peak(&assignment.gpus, window),
            busy_ratio: sum_of_all(assignment.gpus.iter().map(|gpu| mean(&gpu.busy.level(window))))
                .map(|sum| sum / assignment.gpus.len() as f64),
            throttle: throttle(&assignment.gpus, window),
        }
    }

    /// Calls `write` with the attributes for the span of the step.
    pub(super) fn with_attributes(&self, write: impl FnOnce(&[Attribute<'_>])) {
        let count = i64::try_from(self.gpus).unwrap_or(i64::MAX);
        let mut all: Vec<Attribute<'_>> = vec![
            (&attribute::GPU_STEP_ENERGY_STATUS, self.status.as_str().into()),
            (&attribute::GPU_STEP_ATTRIBUTION, self.attribution.as_str().into()),
            (&attribute::GPU_STEP_GPUS, count.into()),
        ];
        let mut number = |attribute, value: Option<f64>| {
            all.extend(value.map(|value| (attribute, AttributeValue::Double(value))));
        };
        number(&attribute::GPU_STEP_ENERGY, self.energy_joules);
        number(
            &attribute::GPU_STEP_ENERGY_ERROR,
            self.energy_joules.map(|_| self.error_joules),
        );
        number(&attribute::GPU_STEP_MEAN_POWER, self.mean_watts);
        number(&attribute::GPU_STEP_PEAK_POWER, self.peak_watts);
        number(&attribute::GPU_STEP_BUSY_RATIO, self.busy_ratio);
        number(
            &attribute::GPU_STEP_THROTTLE_TIME,
            self.throttle.as_ref().map(|(_, secs)| *secs),
        );
        if let Some((reason, _)) = self.throttle.as_ref().filter(|(_, secs)| *secs > 0.0) {
            all.push((&attribute::GPU_THROTTLE_REASON, AttributeValue::Text(reason)));
        }
        write(&all);
    }
}

impl UnattributedEnergy {
    fn new(gpu: &Gpu, window: Window, resolution_nanos: u64) -> Self {
        let (mut measured, mut nanos) = (Measured::default(), 0);
        for part in gpu.attributed.unattributed(window) {
            let energy = gpu.energy.energy(part, resolution_nanos);
            measured.amount += energy.amount;
            measured.error += energy.error;
            measured.nanos += energy.nanos;
            nanos += part.nanos();
        }
        Self { measured, nanos }
    }
}

/// Returns the bound of the error of the energy of all GPUs together.
fn error_joules(energy: &[UnattributedEnergy]) -> f64 {
    let sum = |sum, gpu: &UnattributedEnergy| sum + gpu.measured.error;
    energy.iter().fold(ErrorBound::default(), sum).joules()
}

/// Returns the sum, or `None` if a part is unknown.
fn sum_of_all(parts: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    parts.sum()
}

/// Returns the mean over the time that the readings cover.
fn mean(measured: &Measured) -> Option<f64> {
    (measured.nanos > 0).then(|| measured.amount / (measured.nanos as f64 / 1e9))
}

/// Returns the highest power of all GPUs together. The power of a GPU at a moment is the mean between two readings of its energy
/// counter, or a power reading between them if that is higher.
fn peak(gpus: &[&Gpu], window: Window) -> Option<f64> {
    let mut borders = vec![window.start, window.end];
    for gpu in gpus {
        borders.extend(gpu.energy.times_in(window).chain(gpu.power.times_in(window)));
    }
    borders.sort_unstable();
    borders.dedup();
    let parts = borders.windows(2).map(|pair| Window::new(pair[0], pair[1]));
    parts
        .filter_map(|part| sum_of_all(gpus.iter().map(|gpu| power(gpu, part))))
        .reduce(f64::max)
}

/// Returns the power of a GPU in an interval without readings, except at its end.
fn power(gpu: &Gpu, part: Window) -> Option<f64> {
    let mean = gpu
        .energy
        .power_at(part.end)
        .or_else(|| gpu.power.level_at(part.end));
    [mean, gpu.power.highest_in(part)]
        .into_iter()
        .flatten()
        .reduce(f64::max)
}

/// Returns the reason that throttled one GPU for the longest time, and that time in seconds.
fn throttle(gpus: &[&Gpu], window: Window) -> Option<(Box<str>, f64)> {
    gpus.iter()
        .flat_map(|gpu| &gpu.throttle)
        .filter_map(|(reason, time)| {
            let measured = time.growth(window);
            (measured.nanos > 0).then(|| (reason.clone(), measured.amount.min(window.secs())))
        })
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
}
