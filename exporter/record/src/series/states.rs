//! State sets: one series for each state, 1 for the current state and 0 for the others.

use pulsetrain_otlp::UnixNanos;

use super::{PreparedSeries, REPEAT_AFTER};

/// A state set.
#[derive(Debug)]
pub(super) struct StateSet {
    /// The current state with the time of its latest points, or `None` before the first state and after an end.
    current: Option<(String, UnixNanos)>,
    /// The states that the registry knows, each with its series.
    known: Vec<(&'static str, PreparedSeries)>,
}

impl StateSet {
    /// Returns a set of these states, each with the series that `series` returns for it.
    pub(super) fn new(names: &[&'static str], series: impl Fn(&str) -> PreparedSeries) -> Self {
        Self {
            current: None,
            known: names.iter().map(|name| (*name, series(name))).collect(),
        }
    }

    /// Enters a state. If points are due, calls `point` with the series of each state and whether that state is active.
    pub(super) fn enter(
        &mut self,
        time_unix_nanos: UnixNanos,
        state: &str,
        series: impl Fn(&str) -> PreparedSeries,
        mut point: impl FnMut(&mut PreparedSeries, bool),
    ) {
        let mut gone = None;
        if let Some((current, since)) = &self.current {
            if current != state {
                gone = Some(current.as_str());
            } else if time_unix_nanos.saturating_duration_since(*since) < REPEAT_AFTER {
                return;
            }
        }
        for (name, series) in &mut self.known {
            point(series, *name == state);
        }
        // A state that the registry does not know is sent too, and set to 0 when it ends.
        for name in [Some(state), gone].into_iter().flatten() {
            if self.known.iter().all(|(known, _)| *known != name) {
                point(&mut series(name), name == state);
            }
        }
        self.current = Some((state.to_owned(), time_unix_nanos));
    }

    /// Makes the set begin again with its next state.
    pub(super) fn restart(&mut self) {
        self.current = None;
    }
}
