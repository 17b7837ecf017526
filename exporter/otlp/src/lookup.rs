//! Looks up the descriptor of a signal's outermost message.

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
