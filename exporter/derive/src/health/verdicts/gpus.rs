//! `gpu_throttled`, `gpu_xid` and `gpu_lost`: conditions of a run's GPUs that the driver reports.
//!
//! - **Throttled**: heat or a power brake reduced the clocks for 10 s or more of the last 60 s, by the
//!   counter `gpu.throttle.time` or by the flags `gpu.throttle.active`. Resolved below 1 s. A power cap is no
//!   fault, because GPUs are run with one. A rank that is slow while its GPU is throttled at all is no
//!   straggler.
//! - **XID**: the counter `gpu.xid_errors` grew, by a code other than 43 and 45, which follow a killed
//!   process. Reported 15 s later unless the GPU is lost by then, which is the cause then. Resolved after 5
//!   minutes without another.
//! - **Lost**: `gpu.fault.active` of the fault `lost`, which the driver's ERROR_GPU_IS_LOST sets. Resolved
//!   when the GPU answers again.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use pulsetrain_run::{Increase, IncreaseKind, SeriesPoint, SeriesTracker};

use super::super::{
    UnixNanos,
    sample::{Samples, median},
    verdict::{Board, Span, Subject, VerdictKind},
};
use super::StallKind;
use crate::config::MAX_REASONS;

const WINDOW_SECS: f64 = 60.0;
const THROTTLED_SECS: f64 = 10.0;
const FREE_SECS: f64 = 1.0;
/// The maximum time for which a flag holds until the next reading.
const MAX_READING_SECS: f64 = 15.0;
const XID_WAIT: Duration = Duration::from_secs(15);
const XID_QUIET: Duration = Duration::from_secs(300);
/// Codes that are consequences: a process whose work was stopped, cleanup after a killed one.
const CONSEQUENCES: [i64; 2] = [43, 45];
/// Codes with a program as the usual cause.
const OF_THE_PROGRAM: [i64; 2] = [13, 31];
/// The limits of a GPU that is busy at low power: above this utilization, below this share of its usual
/// power.
const BUSY: f64 = 0.9;
const LOW_POWER: f64 = 0.7;
/// The maximum age of a current reading.
const FRESH_SECS: f64 = 30.0;
const POWER_WINDOW: usize = 64;
/// The maximum number of GPUs of a run.
const MAX_GPUS: usize = 16_384;
/// The maximum number of XID codes of a GPU. NVIDIA documents about 150.
const MAX_XID_CODES: usize = 256;
/// The minimum interval of power samples of a working GPU, whatever the interval of the readings.
const POWER_INTERVAL: Duration = Duration::from_secs(1);
/// The time without readings after which a GPU no longer belongs to the run.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);
/// The maximum number of readings in the throttle window: 60 s at 10 readings a second.
const MAX_THROTTLE_READINGS: usize = 640;

const OF_A_GPU: [VerdictKind; 3] = [
    VerdictKind::GpuThrottled,
    VerdictKind::GpuXid,
    VerdictKind::GpuLost,
];

/// A reading of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GpuReading<'a> {
    /// The share of time in which the GPU was busy.
    Utilization(f64),
    /// Power in watts.
    Power(f64),
    /// Whether heat or a power brake reduces the clocks, for one reason.
    Throttling(&'a str, bool),
    /// The seconds in which heat or a power brake reduced the clocks, for one reason, since the driver was
    /// loaded.
    ThrottleTime(&'a str, SeriesPoint),
    /// The number of XID errors of a code.
    Xids(i64, SeriesPoint),
    /// Whether the GPU does not answer.
    Lost(bool),
}

/// The GPUs of a run.
#[derive(Debug, Default)]
pub(crate) struct GpuVerdicts {
    gpus: BTreeMap<Arc<str>, Gpu>,
}

#[derive(Debug)]
struct Gpu {
    rank: Option<i64>,
    utilization: Option<(UnixNanos, f64)>,
    power: Option<(UnixNanos, f64)>,
    /// The power while steps end, at most one sample a second. So the first seconds of a hang, in which the
    /// run still seems to work, are few among those of work.
    usual_power: Samples,
    power_noted: UnixNanos,
    /// The time of the newest reading.
    newest: UnixNanos,
    throttle_time: BTreeMap<Box<str>, SeriesTracker>,
    throttling: BTreeMap<Box<str>, UnixNanos>,
    /// The seconds of throttling that readings added, with their times.
    throttled: VecDeque<(UnixNanos, f64)>,
    xids: BTreeMap<i64, SeriesTracker>,
    pending_xid: Option<(UnixNanos, i64)>,
    last_xid: UnixNanos,
    is_lost: bool,
}

impl Default for Gpu {
    fn default() -> Self {
        Self {
            rank: None,
            utilization: None,
            power: None,
            usual_power: Samples::new(POWER_WINDOW),
            power_noted: UnixNanos::default(),
            newest: UnixNanos::default(),
            throttle_time: BTreeMap::new(),
            throttling: BTreeMap::new(),
            throttled: VecDeque::new(),
            xids: BTreeMap::new(),
            pending_xid: None,
            last_xid: UnixNanos::default(),
            is_lost: false,
        }
    }
}

impl GpuVerdicts {
    /// Adds a reading. `steps_end` is whether the run makes progress. Returns `false` for a GPU beyond
    /// [`MAX_GPUS`].
    pub(crate) fn on_reading(
        &mut self,
        id: &Arc<str>,
        rank: Option<i64>,
        time: UnixNanos,
        reading: GpuReading<'_>,
        steps_end: bool,
        board: &mut Board,
    ) -> bool {
        if self.gpus.len() >= MAX_GPUS && !self.gpus.contains_key(id) {
            return false;
        }
        let gpu = self.gpus.entry(Arc::clone(id)).or_default();
        gpu.newest = gpu.newest.max(time);
        gpu.rank = rank.or(gpu.rank);
        match reading {
            GpuReading::Utilization(share) => {
                gpu.utilization = Some((time, share));
                gpu.check_throttling(id, time, board);
            }
            GpuReading::Power(watts) => {
                gpu.power = Some((time, watts));
                if steps_end && time >= gpu.power_noted.saturating_add(POWER_INTERVAL) {
                    gpu.power_noted = time;
                    gpu.usual_power.push(watts);
                }
            }
            GpuReading::Throttling(reason, holds) => gpu.observe_flag(reason, time, holds),
            GpuReading::ThrottleTime(reason, secs) => gpu.record_throttle_time(reason, time, &secs),
            GpuReading::Xids(code, count) => gpu.record_xids(code, time, &count),
            GpuReading::Lost(true) => {
                gpu.is_lost = true;
                gpu.pending_xid = None;
                let rank = gpu.rank;
                board.open(VerdictKind::GpuLost, Subject::Gpu(Arc::clone(id)), time, || {
                    let of_rank = rank.map(|rank| format!(" of rank {rank}")).unwrap_or_default();
                    format!("GPU {id}{of_rank} no longer answers the driver; it needs a reset or a restart of its host.")
                });
            }
            GpuReading::Lost(false) => {
                gpu.is_lost = false;
                board.resolve(VerdictKind::GpuLost, &Subject::Gpu(Arc::clone(id)), time);
            }
        }
        true
    }

    /// Evaluates throttling, reports XID errors that have waited long enough, and resolves old ones.
    pub(crate) fn on_time(&mut self, now: UnixNanos, board: &mut Board) {
        for (id, gpu) in &mut self.gpus {
            let subject = || Subject::Gpu(Arc::clone(id));
            if !gpu.throttled.is_empty() {
                gpu.check_throttling(id, now, board);
            }
            if let Some((time, code)) = gpu.pending_xid
                && now >= time.saturating_add(XID_WAIT)
            {
                gpu.pending_xid = None;
                board.open(VerdictKind::GpuXid, subject(), time, || {
                    xid_reason(id, gpu.rank, code)
                });
            }
            if gpu.last_xid.0 > 0 && now >= gpu.last_xid.saturating_add(XID_QUIET) {
                gpu.last_xid = UnixNanos::default();
                board.resolve(VerdictKind::GpuXid, &subject(), now);
            }
        }
    }

    /// Removes the GPUs without readings for a day, resolves their verdicts, and returns their ids.
    pub(crate) fn evict(&mut self, now: UnixNanos, board: &mut Board) -> Vec<Arc<str>> {
        let is_old = |gpu: &Gpu| now >= gpu.newest.saturating_add(FORGOTTEN);
        let old: Vec<Arc<str>> = self
            .gpus
            .iter()
            .filter(|(_, gpu)| is_old(gpu))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for id in &old {
            self.gpus.remove(id);
            let is_it = |subject: &Subject| matches!(subject, Subject::Gpu(gpu) if gpu == id);
            board.resolve_where(&OF_A_GPU, is_it, now);
        }
        old
    }

    /// Reports pending errors at the end of the input.
    pub(crate) fn finish(&mut self, board: &mut Board) {
        for (id, gpu) in &mut self.gpus {
            if let Some((time, code)) = gpu.pending_xid.take() {
                board.open(VerdictKind::GpuXid, Subject::Gpu(Arc::clone(id)), time, || {
                    xid_reason(id, gpu.rank, code)
                });
            }
        }
    }

    /// Returns whether the clocks of a rank's GPU are throttled at all.
    pub(crate) fn is_throttling(&self, rank: i64) -> bool {
        let mut of_rank = self.gpus.values().filter(|gpu| gpu.rank == Some(rank));
        of_rank.any(|gpu| gpu.throttled_secs() >= FREE_SECS)
    }

    /// Returns the state of the GPUs of a run without progress since `since`.
    pub(crate) fn stall_kind(&self, since: UnixNanos, now: UnixNanos) -> (StallKind, Option<(f64, f64)>) {
        let is_fresh = |time: UnixNanos| time > since && now.secs_since(time) <= FRESH_SECS;
        let readings: Vec<(f64, f64, Option<f64>)> = self
            .gpus
            .values()
            .filter_map(|gpu| {
                let (busy_time, busy) = gpu.utilization?;
                let (power_time, power) = gpu.power?;
                let is_fresh = is_fresh(busy_time) && is_fresh(power_time) && !gpu.is_lost;
                is_fresh.then(|| (busy, power, gpu.usual_power.median()))
            })
            .collect();
        let spins = |(busy, power, usual): &&(f64, f64, Option<f64>)| {
            *busy >= BUSY && usual.is_some_and(|usual| *power <= LOW_POWER * usual)
        };
        let spinning = readings.iter().filter(spins).count();
        let means = median(readings.iter().map(|(busy, ..)| *busy))
            .zip(median(readings.iter().map(|(_, power, _)| *power)));
        let hangs = spinning > 0 && 2 * spinning >= readings.len();
        (if hangs { StallKind::Busy } else { StallKind::Idle }, means)
    }

    /// Returns the rank of a GPU.
    pub(crate) fn rank_of(&self, id: &str) -> Option<i64> {
        self.gpus.get(id).and_then(|gpu| gpu.rank)
    }
}

impl Gpu {
    fn record_throttle_time(&mut self, reason: &str, time: UnixNanos, point: &SeriesPoint) {
        if self.throttle_time.len() >= MAX_REASONS && !self.throttle_time.contains_key(reason) {
            return;
        }
        let tracker = self.throttle_time.entry(reason.into()).or_default();
        // Reasons overlap, so only the longest counts.
        if let Some(secs) = new_part(tracker.observe(point)) {
            self.add_throttled(time, secs.min(WINDOW_SECS));
        }
    }

    fn observe_flag(&mut self, reason: &str, time: UnixNanos, holds: bool) {
        let since = self.throttling.remove(reason);
        if holds && self.throttling.len() < MAX_REASONS {
            self.throttling.insert(reason.into(), time);
        }
        if let Some(since) = since {
            self.add_throttled(time, time.secs_since(since).clamp(0.0, MAX_READING_SECS));
        }
    }

    fn add_throttled(&mut self, time: UnixNanos, secs: f64) {
        match self.throttled.back_mut() {
            Some((last, longest)) if *last == time => *longest = longest.max(secs),
            _ => self.throttled.push_back((time, secs)),
        }
        if self.throttled.len() > MAX_THROTTLE_READINGS {
            self.throttled.pop_front();
        }
    }

    fn throttled_secs(&self) -> f64 {
        self.throttled.iter().map(|(_, secs)| secs).sum()
    }

    fn check_throttling(&mut self, id: &Arc<str>, now: UnixNanos, board: &mut Board) {
        while self
            .throttled
            .front()
            .is_some_and(|(time, _)| now.secs_since(*time) > WINDOW_SECS)
        {
            self.throttled.pop_front();
        }
        let secs = self.throttled_secs();
        if secs >= THROTTLED_SECS {
            let (rank, reason) = (self.rank, self.throttling.keys().next());
            board.open(
                VerdictKind::GpuThrottled,
                Subject::Gpu(Arc::clone(id)),
                now,
                || {
                    let of_rank = rank.map(|rank| format!(" of rank {rank}")).unwrap_or_default();
                    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                    format!(
                        "The clocks of GPU {id}{of_rank} were throttled{reason} for {} of the last {}.",
                        Span(secs.min(WINDOW_SECS)),
                        Span(WINDOW_SECS)
                    )
                },
            );
        } else if secs < FREE_SECS {
            board.resolve(VerdictKind::GpuThrottled, &Subject::Gpu(Arc::clone(id)), now);
        }
    }

    fn record_xids(&mut self, code: i64, time: UnixNanos, count: &SeriesPoint) {
        if self.xids.len() >= MAX_XID_CODES && !self.xids.contains_key(&code) {
            return;
        }
        let is_new = new_part(self.xids.entry(code).or_default().observe(count)).is_some();
        if !is_new || CONSEQUENCES.contains(&code) || self.is_lost {
            return;
        }
        self.last_xid = time;
        self.pending_xid.get_or_insert((time, code));
    }
}

fn xid_reason(id: &str, rank: Option<i64>, code: i64) -> String {
    let of_rank = rank.map(|rank| format!(" of rank {rank}")).unwrap_or_default();
    let cause = if OF_THE_PROGRAM.contains(&code) {
        "; usually the program causes this code"
    } else {
        ""
    };
    format!("The driver reported XID {code} of GPU {id}{of_rank}{cause}.")
}

/// Returns the new part of a counter. The first value and that after a reset are of the past.
fn new_part(increase: Option<Increase>) -> Option<f64> {
    let increase =
        increase.filter(|increase| matches!(increase.kind, IncreaseKind::Growth | IncreaseKind::Delta))?;
    (increase.sum > 0.0).then_some(increase.sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    struct World {
        gpus: GpuVerdicts,
        board: Board,
        id: Arc<str>,
    }

    impl World {
        fn new() -> Self {
            Self {
                gpus: GpuVerdicts::default(),
                board: Board::default(),
                id: "GPU-1".into(),
            }
        }

        fn read(&mut self, secs: u64, reading: GpuReading<'_>) {
            let time = UnixNanos(secs * SECOND);
            self.gpus
                .on_reading(&self.id, Some(3), time, reading, secs < 100, &mut self.board);
            self.gpus.on_time(time, &mut self.board);
        }

        fn changes(&mut self) -> Vec<(VerdictKind, bool, u64)> {
            self.board
                .map_changes(|change| (change.kind, change.is_open, change.time.0 / SECOND))
        }
    }

    /// Returns a cumulative point.
    fn total(sum: f64) -> SeriesPoint {
        SeriesPoint {
            start: UnixNanos::UNKNOWN,
            time: UnixNanos::UNKNOWN,
            is_delta: false,
            count: None,
            sum,
        }
    }

    /// Returns the delta of a second.
    fn growth(secs: u64, sum: f64) -> SeriesPoint {
        SeriesPoint {
            time: UnixNanos((secs + 1) * SECOND),
            is_delta: true,
            ..total(sum)
        }
    }

    #[test]
    fn thermal_throttling_opens_a_verdict_after_ten_seconds() {
        let mut world = World::new();
        for secs in 0..200 {
            let hot = (secs.clamp(50, 80) - 50) as f64;
            let time = total(7.0 + hot);
            world.read(secs, GpuReading::ThrottleTime("thermal_cap", time));
            world.read(secs, GpuReading::ThrottleTime("hw_thermal_slowdown", time));
            let is_hot = (50..80).contains(&secs);
            world.read(secs, GpuReading::Throttling("hw_thermal_slowdown", is_hot));
            world.read(secs, GpuReading::Utilization(1.0));
            assert_eq!(world.gpus.is_throttling(3), (51..141).contains(&secs), "{secs}");
        }
        assert_eq!(world.changes(), VerdictKind::GpuThrottled.lasts(60, 141));
    }

    #[test]
    fn throttling_is_judged_without_a_reading_of_the_utilization() {
        let mut world = World::new();
        for secs in 0..20 {
            let time = total(secs as f64);
            world.read(secs, GpuReading::ThrottleTime("thermal_cap", time));
        }
        world.gpus.on_time(UnixNanos(200 * SECOND), &mut world.board);
        assert_eq!(world.changes(), VerdictKind::GpuThrottled.lasts(10, 200));
    }

    #[test]
    fn xid_opens_a_verdict_unless_the_gpu_is_lost() {
        let mut world = World::new();
        for secs in 0..400 {
            for (code, first) in [(94, 10), (45, 20)] {
                let count = total(f64::from(u8::from(secs >= first)));
                world.read(secs, GpuReading::Xids(code, count));
            }
        }
        assert_eq!(world.changes(), VerdictKind::GpuXid.lasts(10, 310));
        world.read(500, GpuReading::Xids(79, total(0.0)));
        world.read(501, GpuReading::Xids(79, total(1.0)));
        world.read(502, GpuReading::Lost(true));
        world.read(600, GpuReading::Lost(true));
        world.read(601, GpuReading::Lost(false));
        assert_eq!(world.changes(), VerdictKind::GpuLost.lasts(502, 601));
    }

    #[test]
    fn busy_gpus_at_low_power_count_as_spinning() {
        let mut world = World::new();
        (0..100).for_each(|secs| world.read(secs, GpuReading::Power(600.0)));
        let since = UnixNanos(100 * SECOND);
        for (busy, power, kind) in [
            (1.0, 138.0, StallKind::Busy),
            (0.0, 80.0, StallKind::Idle),
            (1.0, 600.0, StallKind::Idle),
        ] {
            world.read(130, GpuReading::Utilization(busy));
            world.read(130, GpuReading::Power(power));
            let (found, means) = world.gpus.stall_kind(since, UnixNanos(131 * SECOND));
            assert_eq!((found, means), (kind, Some((busy, power))));
        }
        let (old, means) = world.gpus.stall_kind(since, UnixNanos(300 * SECOND));
        assert_eq!((old, means), (StallKind::Idle, None));
    }

    #[test]
    fn delta_counters_yield_the_same_verdicts_as_totals() {
        let mut world = World::new();
        for secs in 0..200 {
            let hot = f64::from(u8::from((51..=80).contains(&secs)));
            world.read(secs, GpuReading::ThrottleTime("thermal_cap", growth(secs, hot)));
            // The first error is one, without an earlier reading.
            let error = f64::from(u8::from(secs == 10));
            world.read(secs, GpuReading::Xids(94, growth(secs, error)));
        }
        assert_eq!(
            world.changes(),
            [
                (VerdictKind::GpuXid, true, 10),
                (VerdictKind::GpuThrottled, true, 60),
                (VerdictKind::GpuThrottled, false, 141)
            ]
        );
    }

    #[test]
    fn spinning_gpus_are_detected_at_any_sampling_rate() {
        for (readings_a_second, readings) in [(1, 100), (10, 1000), (100, 10_000)] {
            let mut world = World::new();
            let time = |reading: u64| UnixNanos(reading * SECOND / readings_a_second);
            // After 90 s the run hangs. For ten seconds it still seems to work.
            for reading in 0..readings {
                let power = if reading < readings * 9 / 10 { 600.0 } else { 138.0 };
                let (time, power) = (time(reading), GpuReading::Power(power));
                world
                    .gpus
                    .on_reading(&world.id, None, time, power, true, &mut world.board);
            }
            let now = UnixNanos(130 * SECOND);
            for reading in [GpuReading::Power(138.0), GpuReading::Utilization(1.0)] {
                world
                    .gpus
                    .on_reading(&world.id, None, now, reading, false, &mut world.board);
            }
            let (kind, _) = world.gpus.stall_kind(UnixNanos(90 * SECOND), now);
            assert_eq!(kind, StallKind::Busy, "{readings_a_second} readings a second");
        }
    }

    #[test]
    fn gpu_ids_are_limited_and_expired_ones_are_evicted() {
        let mut world = World::new();
        world.read(0, GpuReading::Lost(true));
        for number in 0..2 * MAX_GPUS as u64 {
            world.id = format!("GPU-{number}").into();
            let time = UnixNanos(SECOND);
            let reading = GpuReading::Xids(number as i64, total(0.0));
            let is_kept = world
                .gpus
                .on_reading(&world.id, None, time, reading, true, &mut world.board);
            assert_eq!(is_kept, number < MAX_GPUS as u64, "{number}");
        }
        assert_eq!(world.gpus.gpus.len(), MAX_GPUS);
        let later = UnixNanos(SECOND).saturating_add(FORGOTTEN);
        assert_eq!(world.gpus.evict(later, &mut world.board).len(), MAX_GPUS);
        assert!(world.gpus.gpus.is_empty());
        let changes = world.changes();
        assert_eq!(changes.len(), 2, "the lost GPU is forgotten: {changes:?}");
        for code in 0..1000 {
            world.read(200_000, GpuReading::Xids(code, total(0.0)));
        }
        assert_eq!(world.gpus.gpus[&world.id].xids.len(), MAX_XID_CODES);
    }
}
