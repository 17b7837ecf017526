//! State sets: one series for each state, 1 for the current state and 0 for the others.

use std::time::Duration;

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, Value},
};
use pulsetrain_semconv::{self as semconv, AttributeKind, Metric};

use super::{PreparedSeries, series::PerSeries};

/// The interval after which an unchanged state is sent again: well below the five minutes after which Prometheus treats a
/// series as stale.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

/// The current state of every state set.
#[derive(Debug, Default)]
pub(super) struct StateTable {
    sets: PerSeries<StateSet>,
}

#[derive(Debug)]
struct StateSet {
    /// `None` before the first state.
    entered: Option<EnteredState>,
    /// The states that the registry knows, each with its series.
    known: Vec<(&'static str, PreparedSeries)>,
}

#[derive(Debug)]
struct EnteredState {
    state: String,
    recorded_unix_nanos: UnixNanos,
}

impl StateTable {
    /// Enters a state. If points are due, calls `point` with the series of each state and whether that state is active.
    /// Returns `false` if the state set is beyond the limit.
    pub(super) fn enter(
        &mut self,
        (metric, attribute): (&'static Metric, &'static semconv::Attribute),
        time_unix_nanos: UnixNanos,
        state: &str,
        attributes: &[Attribute<'_>],
        mut point: impl FnMut(&PreparedSeries, bool),
    ) -> bool {
        let AttributeKind::Enum(names) = attribute.kind else {
            return true;
        };
        let series = |name: &str| {
            let all = [attributes, &[(attribute, Value::Text(name))]].concat();
            PreparedSeries::new(metric, &all)
        };
        let mut key = PreparedSeries::new(metric, attributes);
        let set = self.sets.of(&mut key, |_| StateSet {
            entered: None,
            known: names.iter().map(|name| (*name, series(name))).collect(),
        });
        let Some(set) = set else {
            return false;
        };
        let last = set.entered.as_ref();
        if last.is_some_and(|last| {
            last.state == state
                && time_unix_nanos.saturating_duration_since(last.recorded_unix_nanos) < REPEAT_AFTER
        }) {
            return true;
        }
        for (name, series) in &set.known {
            point(series, *name == state);
        }
        // A state that the registry does not know is sent too, and set to 0 when it ends.
        let gone = last.map(|last| last.state.as_str()).filter(|last| *last != state);
        for name in [Some(state), gone].into_iter().flatten() {
            if !names.contains(&name) {
                point(&series(name), name == state);
            }
        }
        set.entered = Some(EnteredState {
            state: state.to_owned(),
            recorded_unix_nanos: time_unix_nanos,
        });
        true
    }
}
