//! The throttle time of an MI300 and later.
//!
//! The firmware counts its cycles, and the cycles in which each throttler was active (residencies). Their quotient is a share of
//! the time between two tables, as `amd-smi metric --throttle` reports it; the times of both tables convert it to seconds.
//!
//! Some firmware counts every cycle in some residencies: a driver 6.10.5 has shown an idle MI300X at 100 % of three throttlers. A
//! residency that equals the cycles is therefore ignored.

use pulsetrain_semconv::attribute::GPU_THROTTLE_REASON;

use super::metrics_table::{Field, MetricsTable};
use crate::reading::Fixed;

/// A nanosecond in seconds.
pub(super) const SECONDS: f64 = 1e-9;

/// A reason with its residencies. Throttlers of one reason can be active in the same cycle, so the longest residency is the time
/// of the reason.
const REASONS: [(Fixed, &[Field]); 3] = [
    (&[(&GPU_THROTTLE_REASON, "power_cap")], &[Field::PowerLimit]),
    (
        &[(&GPU_THROTTLE_REASON, "thermal_cap")],
        &[Field::SocketHot, Field::RegulatorsHot, Field::MemoryHot],
    ),
    (
        &[(&GPU_THROTTLE_REASON, "hw_thermal_slowdown")],
        &[Field::ProcessorHot],
    ),
];

/// The throttling of a GPU since its first table.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    last: Option<MetricsTable>,
    throttled: [Throttled; REASONS.len()],
}

/// The throttling for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Throttled {
    /// The throttle time in nanoseconds.
    pub(super) nanos: u64,
    /// Whether the GPU was throttled since the last table.
    pub(super) is_active: bool,
}

impl Throttle {
    /// Adds a table. Returns each reason with a residency from the second table on, or `None` before it and without residencies.
    pub(super) fn update(
        &mut self,
        table: &MetricsTable,
    ) -> Option<impl Iterator<Item = (Fixed, Throttled)>> {
        let cycles = table.value(Field::Cycles)?;
        let Some(last) = &self.last else {
            self.last = Some(table.clone());
            return None;
        };
        let grown = |field| growth(last, table, field);
        let is_residency = |field: &Field| table.value(*field).is_some_and(|value| value != cycles);
        let counted = REASONS.map(|(_, fields)| fields.iter().any(is_residency));
        match (grown(Field::Cycles), grown(Field::Time)) {
            // The firmware has not counted since the last table.
            (Some(0), _) => {}
            (Some(cycles), Some(nanos)) => {
                for (throttled, (_, fields)) in self.throttled.iter_mut().zip(REASONS) {
                    let residencies = fields.iter().copied().filter(is_residency).filter_map(grown);
                    let active = residencies.max().unwrap_or_default();
                    let share = active.min(cycles) as f64 / cycles as f64;
                    throttled.nanos += (share * nanos as f64) as u64;
                    throttled.is_active = share > 0.0;
                }
                self.last = Some(table.clone());
            }
            // A 32-bit counter wrapped, or the GPU was reset.
            _ => self.last = Some(table.clone()),
        }
        let reasons = REASONS.iter().map(|(reason, _)| *reason).zip(self.throttled);
        Some(
            reasons
                .zip(counted)
                .filter_map(|(reason, is_counted)| is_counted.then_some(reason)),
        )
    }
}

/// Returns the growth of a counter between two tables, or `None` if it decreased.
fn growth(from: &MetricsTable, to: &MetricsTable, field: Field) -> Option<u64> {
    to.value(field)?.checked_sub(from.value(field)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A table of format 1.6 at a second, with cycles of the firmware and residencies in the order of the table.
    fn table(second: u64, cycles: u32, residencies: [u32; 5]) -> MetricsTable {
        let mut bytes = vec![0xff; 1664];
        bytes[..4].copy_from_slice(&[0x80, 0x06, 1, 6]);
        bytes[24..32].copy_from_slice(&(second * SECOND).to_le_bytes());
        bytes[32..36].copy_from_slice(&cycles.to_le_bytes());
        for (residency, bytes) in residencies.iter().zip(bytes[36..].chunks_mut(4)) {
            bytes.copy_from_slice(&residency.to_le_bytes());
        }
        MetricsTable::decode(bytes).unwrap()
    }

    /// Seconds of the power limit, of heat and of the signal "processor hot", and which of them are active.
    fn update(throttle: &mut Throttle, table: &MetricsTable) -> Option<([f64; 3], [bool; 3])> {
        let reasons: Vec<_> = throttle.update(table)?.map(|(_, throttled)| throttled).collect();
        let seconds = [0, 1, 2].map(|reason: usize| reasons[reason].nanos as f64 / SECOND as f64);
        Some((seconds, [0, 1, 2].map(|reason: usize| reasons[reason].is_active)))
    }

    #[test]
    fn residency_is_the_share_of_time_between_two_tables() {
        let mut throttle = Throttle::default();
        assert_eq!(update(&mut throttle, &table(10, 5000, [7, 100, 0, 0, 0])), None);
        // 2,000 cycles in 4 s: a fourth of them at the power limit, the memory hot in a half and the socket in a tenth.
        let first = table(14, 7000, [7, 600, 200, 0, 1000]);
        assert_eq!(
            update(&mut throttle, &first),
            Some(([1.0, 2.0, 0.0], [true, true, false]))
        );
        // The table of the same cycle again, and then one in which only the signal is active.
        assert_eq!(
            update(&mut throttle, &first),
            Some(([1.0, 2.0, 0.0], [true, true, false]))
        );
        let last = table(15, 7500, [507, 600, 200, 0, 1000]);
        assert_eq!(
            update(&mut throttle, &last),
            Some(([1.0, 2.0, 1.0], [false, false, true]))
        );
    }

    #[test]
    fn residency_counter_reset_is_not_throttling() {
        let mut throttle = Throttle::default();
        update(&mut throttle, &table(10, 5000, [9; 5]));
        update(&mut throttle, &table(11, 6000, [509; 5]));
        let reset = update(&mut throttle, &table(12, 3, [0; 5])).unwrap();
        assert_eq!(reset.0, [0.5; 3]);
        let after = update(&mut throttle, &table(13, 1003, [0; 5])).unwrap();
        assert_eq!(after, ([0.5; 3], [false; 3]));
    }

    /// An idle MI300X with the driver 6.10.5, as SebastianM-C/GPUDiagnostics.jl has it.
    #[test]
    fn residency_counter_that_counts_every_cycle_is_ignored() {
        let mut throttle = Throttle::default();
        for (second, cycles) in [(10, 10_657_785), (11, 10_658_785)] {
            let idle = table(second, cycles, [0, cycles, cycles, 0, cycles]);
            let reasons = throttle.update(&idle).into_iter().flatten();
            for (reason, throttled) in reasons {
                assert!(!throttled.is_active && reason[0].1 != "power_cap", "{reason:?}");
            }
        }
    }

    /// An MI300X at its power limit of 750 W: two tables of it, 5 s apart, from the same source.
    #[test]
    fn gpu_at_its_power_limit_is_throttled_most_of_the_time() {
        let mut throttle = Throttle::default();
        update(&mut throttle, &table(0, 55_257_356, [0, 749_905, 0, 0, 0]));
        let (seconds, active) = update(&mut throttle, &table(5, 55_262_364, [0, 754_247, 0, 0, 0])).unwrap();
        assert!((seconds[0] - 5.0 * 4342.0 / 5008.0).abs() < 1e-6, "{seconds:?}");
        assert_eq!((seconds[1], seconds[2], active), (0.0, 0.0, [true, false, false]));
    }

    #[test]
    fn metrics_table_without_residencies_reports_no_throttle_reasons() {
        let mut bytes = vec![0; 360];
        bytes[..4].copy_from_slice(&[0x68, 0x01, 1, 5]);
        let table = MetricsTable::decode(bytes).unwrap();
        let mut throttle = Throttle::default();
        assert!(throttle.update(&table).is_none());
        assert!(throttle.update(&table).is_none());
    }
}
