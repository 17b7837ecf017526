//! The total of a counter that is sent as deltas.

use pulsetrain_otlp::UnixNanos;
use pulsetrain_run::SeriesPoint;

/// The sum of the deltas of a counter, from zero.
#[derive(Debug, Default)]
pub(super) struct DeltaTotal {
    total: f64,
    until: UnixNanos,
}

impl DeltaTotal {
    /// Adds a delta. Returns the readings of the total at the start of its interval, if it is known, and at its end.
    ///
    /// A delta that does not end after the previous one, such as a repeated one, has no readings: those in between are unknown.
    pub(super) fn add(&mut self, delta: &SeriesPoint) -> impl Iterator<Item = (UnixNanos, f64)> + use<> {
        let is_new = delta.time > self.until;
        let start = (delta.start.max(self.until), self.total);
        if is_new {
            self.total += delta.sum;
            self.until = delta.time;
        }
        let readings = [start, (self.until, self.total)];
        readings
            .into_iter()
            .filter(move |(time, _)| is_new && time.is_known())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_become_readings_of_a_total_and_repeated_ones_do_not() {
        let mut total = DeltaTotal::default();
        let mut add = |start, time, sum| -> Vec<(u64, f64)> {
            let delta = SeriesPoint {
                start: UnixNanos(start),
                time: UnixNanos(time),
                is_delta: true,
                count: None,
                sum,
            };
            total.add(&delta).map(|(time, total)| (time.0, total)).collect()
        };
        assert_eq!(add(10, 20, 5.0), [(10, 0.0), (20, 5.0)]);
        assert_eq!(add(10, 20, 5.0), []);
        assert_eq!(add(20, 30, 3.0), [(20, 5.0), (30, 8.0)]);
        assert_eq!(add(0, 40, 1.0), [(30, 8.0), (40, 9.0)], "without a start");
    }
}
