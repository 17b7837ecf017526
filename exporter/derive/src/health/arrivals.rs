//! Arrivals of each rank's steps, by the clock: how long a rank that is alive may be silent.
//!
//! Event time is not enough: an exporter may send a minute of steps at once, and of an imported log one rank may arrive hours of
//! event time ahead of another. Exporters of OpenTelemetry SDKs send metrics once a minute by default.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_pipeline::clock::Instant;

/// The longest time between two exports that is believed to be a period.
const LONGEST_PERIOD: Duration = Duration::from_secs(120);

/// When the steps of each rank arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    ranks: BTreeMap<i64, Arrival>,
    /// The longest time between two exports of a rank.
    period: Duration,
}

#[derive(Debug)]
struct Arrival {
    newest: Instant,
    before: Instant,
}

impl Arrivals {
    /// Adds a step. Steps of a rank that arrive together after a while are one export of several.
    pub(crate) fn on_step(&mut self, rank: i64, now: Instant) {
        let arrival = self.ranks.entry(rank).or_insert(Arrival {
            newest: now,
            before: now,
        });
        if arrival.newest == now {
            let since = now.saturating_duration_since(arrival.before);
            self.period = self.period.max(since.min(LONGEST_PERIOD));
        } else {
            arrival.before = arrival.newest;
            arrival.newest = now;
        }
    }

    /// Returns the number of ranks that are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns how long a rank has been silent.
    pub(crate) fn silence(&self, rank: i64, now: Instant) -> Duration {
        let arrival = self.ranks.get(&rank);
        arrival.map_or(Duration::ZERO, |arrival| {
            now.saturating_duration_since(arrival.newest)
        })
    }

    /// Returns how long to wait for a rank: `least`, or twice the time between two exports where that is longer.
    pub(crate) fn wait(&self, least: Duration) -> Duration {
        least.max(2 * self.period)
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_pipeline::clock;

    use super::*;

    const LEAST: Duration = Duration::from_secs(10);

    #[test]
    fn exporter_that_sends_once_a_minute_has_two_minutes() {
        let (mut arrivals, start) = (Arrivals::default(), clock::now());
        for minute in 0..3 {
            for _ in 0..30 {
                arrivals.on_step(7, start + minute * Duration::from_secs(60));
            }
        }
        assert_eq!(arrivals.wait(LEAST), Duration::from_secs(120));
        let now = start + Duration::from_secs(150);
        assert_eq!(arrivals.silence(7, now), Duration::from_secs(30));
    }

    #[test]
    fn pause_before_a_single_step_is_no_period() {
        let (mut arrivals, start) = (Arrivals::default(), clock::now());
        for at in [0, 1, 2, 100, 101] {
            arrivals.on_step(0, start + Duration::from_secs(at));
        }
        assert_eq!(arrivals.wait(LEAST), LEAST);
    }
}
