//! Looks up the descriptor of a signal's outermost message, and the signal of a field name.

use crate::{
    Signal,
    descriptor::MessageDescriptor,
    view::{LogsData, Message, MetricsData, TracesData},
};

/// Returns the descriptor of a signal's outermost message.
pub(crate) fn top(signal: Signal) -> &'static MessageDescriptor {
    match signal {
        Signal::Traces => TracesData::descriptor(),
        Signal::Metrics => MetricsData::descriptor(),
        Signal::Logs => LogsData::descriptor(),
    }
}

/// Returns the signal whose outermost message has a field of this name.
pub(crate) fn signal_named(name: &[u8]) -> Option<Signal> {
    Signal::ALL
        .into_iter()
        .find(|signal| top(*signal).by_name(name).is_some())
}
