//! The arrivals of each rank's steps by the clock, which give the longest silence of a rank that is alive.
//!
//! Event time is not enough. An exporter may send a minute of steps at once, and event time of imported ranks
//! may differ by hours. Exporters of OpenTelemetry SDKs send metrics once a minute by default.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_pipeline::clock::Instant;

/// The longest export interval that is plausible.
const MAX_PERIOD: Duration = Duration::from_secs(120);

/// The arrival times of the steps of each rank.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    ranks: BTreeMap<i64, Arrival>,
    /// The longest interval between two exports of a rank.
    period: Duration,
}

#[derive(Debug)]
struct Arrival {
    newest: Instant,
    before: Instant,
}

impl Arrivals {
    /// Adds a step. Steps of a rank that arrive together are one export.
    pub(crate) fn on_step(&mut self, rank: i64, now: Instant) {
        let arrival = self.ranks.entry(rank).or_insert(Arrival {
            newest: now,
            before: now,
        });
        if arrival.newest == now {
            let since = now.saturating_duration_since(arrival.before);
            self.period = self.period.max(since.min(MAX_PERIOD));
        } else {
            arrival.before = arrival.newest;
            arrival.newest = now;
        }
    }

    /// Returns the number of tracked ranks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the time since the last step of a rank arrived.
    pub(crate) fn silence(&self, rank: i64, now: Instant) -> Duration {
        let arrival = self.ranks.get(&rank);
        arrival.map_or(Duration::ZERO, |arrival| {
            now.saturating_duration_since(arrival.newest)
        })
    }

    /// Returns the wait for a rank: `least`, or twice the export interval if that is longer.
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
    fn exporter_with_a_one_minute_period_gets_a_two_minute_wait() {
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
    fn single_pause_is_not_an_export_period() {
        let (mut arrivals, start) = (Arrivals::default(), clock::now());
        for at in [0, 1, 2, 100, 101] {
            arrivals.on_step(0, start + Duration::from_secs(at));
        }
        assert_eq!(arrivals.wait(LEAST), LEAST);
    }
}
