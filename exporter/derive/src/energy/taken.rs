//! What a step took of its GPUs.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::attribute;

use super::{
    fleet::Gpu,
    readings::Known,
    share::{Attribution, Share},
    window::Window,
};

/// What is known of the energy of a step (`gpu.step.energy_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Complete,
    Partial,
    Shared,
    Repeated,
    Unknown,
}

/// The energy of one GPU in a step.
struct Untold {
    known: Known,
    /// How much of the step nobody has told before.
    nanos: u64,
}

/// What a step took.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) status: Status,
    pub(super) attribution: Attribution,
    pub(super) gpus: usize,
    pub(super) energy_joules: Option<f64>,
    pub(super) error_joules: f64,
    pub(super) mean_watts: Option<f64>,
    pub(super) peak_watts: Option<f64>,
    pub(super) busy_ratio: Option<f64>,
    pub(super) throttle: Option<(Box<str>, f64)>,
}

impl Status {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Shared => "shared",
            Self::Repeated => "repeated",
            Self::Unknown => "unknown",
        }
    }

    fn of(share: &Share<'_>, energy: &[Untold], window: Window) -> Self {
        // Clocks of several processes differ a little: where most of the time was told it is the same step.
        let untold: u64 = energy.iter().map(|gpu| gpu.nanos).sum();
        let told_before = window.nanos().saturating_mul(energy.len() as u64) / 2;
        if share.is_shared {
            Self::Shared
        } else if untold < told_before {
            Self::Repeated
        } else if energy.iter().all(|gpu| gpu.known.nanos == gpu.nanos) {
            Self::Complete
        } else if energy.iter().any(|gpu| gpu.known.nanos > 0) {
            Self::Partial
        } else {
            Self::Unknown
        }
    }
}

impl Taken {
    /// What the GPUs of `share` took in `window`.
    pub(super) fn by(share: &Share<'_>, window: Window) -> Self {
        let energy: Vec<_> = share.gpus.iter().map(|gpu| Untold::of(gpu, window)).collect();
        let status = Status::of(share, &energy, window);
        let is_known = matches!(status, Status::Complete | Status::Partial);
        Self {
            status,
            attribution: share.attribution,
            gpus: share.gpus.len(),
            energy_joules: is_known.then(|| energy.iter().map(|gpu| gpu.known.amount).sum()),
            error_joules: energy.iter().map(|gpu| gpu.known.error).sum(),
            mean_watts: sum_of_all(share.gpus.iter().map(|gpu| {
                let mean_of_counter = mean(&gpu.energy.growth(window));
                mean_of_counter.or_else(|| mean(&gpu.power.level(window)))
            })),
            peak_watts: peak(&share.gpus, window),
            busy_ratio: sum_of_all(share.gpus.iter().map(|gpu| mean(&gpu.busy.level(window))))
                .map(|sum| sum / share.gpus.len() as f64),
            throttle: throttle(&share.gpus, window),
        }
    }

    /// Calls `write` with the attributes that a span of the step gets.
    pub(super) fn with_attributes(&self, write: impl FnOnce(&[Attribute<'_>])) {
        let count = i64::try_from(self.gpus).unwrap_or(i64::MAX);
        let mut all: Vec<Attribute<'_>> = vec![
            (&attribute::GPU_STEP_ENERGY_STATUS, self.status.as_str().into()),
            (&attribute::GPU_STEP_ATTRIBUTION, self.attribution.as_str().into()),
            (&attribute::GPU_STEP_GPUS, count.into()),
        ];
        let mut number = |attribute, value: Option<f64>| {
            all.extend(value.map(|value| (attribute, Value::Double(value))));
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
            all.push((&attribute::GPU_THROTTLE_REASON, Value::Text(reason)));
        }
        write(&all);
    }
}

impl Untold {
    fn of(gpu: &Gpu, window: Window) -> Self {
        let parts = gpu.told.untold(window);
        Self {
            known: gpu.energy.growth_in(&parts),
            nanos: parts.iter().map(|part| part.nanos()).sum(),
        }
    }
}

/// The sum, where every part is known.
fn sum_of_all(parts: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    parts.sum()
}

/// The mean over the time of which something is known.
fn mean(known: &Known) -> Option<f64> {
    (known.nanos > 0).then(|| known.amount / (known.nanos as f64 / 1e9))
}

/// The highest power of all GPUs together: at every moment the mean between two readings of a counter, or a reading of the
/// power in that time where it was higher.
fn peak(gpus: &[&Gpu], window: Window) -> Option<f64> {
    let mut borders = vec![window.start, window.end];
    for gpu in gpus {
        borders.extend(gpu.energy.times_in(window).chain(gpu.power.times_in(window)));
    }
    borders.sort_unstable();
    borders.dedup();
    let parts = borders.windows(2).map(|pair| Window {
        start: pair[0],
        end: pair[1],
    });
    parts
        .filter_map(|part| sum_of_all(gpus.iter().map(|gpu| power(gpu, part))))
        .reduce(f64::max)
}

/// The power of a GPU in a stretch of time in which no reading lies but at its end.
fn power(gpu: &Gpu, part: Window) -> Option<f64> {
    let mean = gpu
        .energy
        .rate_at(part.end)
        .or_else(|| gpu.power.level_at(part.end));
    [mean, gpu.power.highest_in(part)]
        .into_iter()
        .flatten()
        .reduce(f64::max)
}

/// The reason that held the clocks of one GPU down for longest, and for how long.
fn throttle(gpus: &[&Gpu], window: Window) -> Option<(Box<str>, f64)> {
    gpus.iter()
        .flat_map(|gpu| &gpu.throttle)
        .filter_map(|(reason, time)| {
            let known = time.growth(window);
            (known.nanos > 0).then(|| (reason.clone(), known.amount.min(window.secs())))
        })
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
}
