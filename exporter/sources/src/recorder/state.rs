//! State sets: one series a state, 1 for the state that holds and 0 for the others.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{self as semconv, AttributeKind, Metric};

use super::series::PerSeries;

/// After how long a state that has not changed is said again: well under the five minutes after which Prometheus lets a
/// series go.
const REPEAT_NANOS: u64 = 60_000_000_000;

/// Which state every state set is in.
#[derive(Debug, Default)]
pub(super) struct StateTable {
    /// Nothing where no state was entered yet.
    current: PerSeries<Option<Entered>>,
}

#[derive(Debug)]
struct Entered {
    state: String,
    said_unix_nanos: u64,
}

impl StateTable {
    /// Enters a state; `point` is called with the attributes of each state and whether it holds, if that is to be said.
    pub(super) fn enter(
        &mut self,
        metric: &Metric,
        attribute: &'static semconv::Attribute,
        time_unix_nanos: u64,
        state: &str,
        attributes: &[Attribute<'_>],
        mut point: impl FnMut(&[Attribute<'_>], bool),
    ) {
        let AttributeKind::Enum(known) = attribute.kind else {
            return;
        };
        let current = self.current.of(metric, attributes, || None);
        let last = current.as_ref();
        if last.is_some_and(|last| {
            last.state == state && time_unix_nanos.saturating_sub(last.said_unix_nanos) < REPEAT_NANOS
        }) {
            return;
        }
        let mut all = attributes.to_vec();
        all.push((attribute, Value::Text(state)));
        let foreign = (!known.contains(&state)).then_some(state);
        // A state that the registry does not know is said too, and taken back when it ends.
        let gone = last
            .map(|last| last.state.as_str())
            .filter(|last| *last != state && !known.contains(last));
        for name in known.iter().copied().chain(foreign).chain(gone) {
            *all.last_mut().expect("invariant: pushed above") = (attribute, Value::Text(name));
            point(&all, name == state);
        }
        *current = Some(Entered {
            state: state.to_owned(),
            said_unix_nanos: time_unix_nanos,
        });
    }
}
