//! Decides whether a receiver refuses one request or all of them.
//!
//! A refusal whose answer does not blame the contents of the request ([`Delivery::Denied`](crate::Delivery::Denied),
//! [`Delivery::Unsupported`](crate::Delivery::Unsupported)) can have both causes: a missing token, or one batch on which the receiver
//! fails. The evidence is another request that the receiver accepted and that was started after the refusal. Without
//! one, every request is refused alike, and the batches wait.

use pulsetrain_otlp::Signal;

use super::group::Group;

/// The number of times that the oldest batch of metrics is refused before the next one is tried, without a wait. The next one
/// overtakes it, and the points of a series must stay in order, so the oldest batch is dropped if the next one is accepted.
const METRICS_PATIENCE: usize = 10;

/// The cause of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalCause {
    /// The receiver accepts no request at all.
    Service,
    /// The receiver accepts other signals, and not this one.
    Signal,
    /// The receiver accepts other requests of this signal: a batch of this request is at fault.
    Contents,
}

/// The refusals and the accepted requests of one sink, by signal.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    signals: [SignalRefusals; Signal::ALL.len()],
    is_refusing: bool,
    /// The number of refused requests: successive probes carry different signals.
    turn: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct SignalRefusals {
    /// The number of the newest accepted request.
    accepted: Option<u64>,
    /// The number of the first request that started after the first refusal since the last accepted request.
    refused_at: Option<u64>,
    /// The number of refused requests with one batch since then.
    alone: usize,
}

impl Refusals {
    /// Returns whether the last requests were refused, so that the next one is a probe with one batch.
    pub(super) fn is_refusing(&self) -> bool {
        self.is_refusing
    }

    /// Returns the signal of the next probe, among those that have a batch.
    pub(super) fn signal_of_probe(&self, signals: &[Signal]) -> Option<Signal> {
        let at = self.turn.checked_rem(signals.len())?;
        signals.get(at).copied()
    }

    /// Returns whether the next probe carries the second batch of its signal, because the first one may be at fault.
    pub(super) fn overtakes(&self, signal: Signal) -> bool {
        let alone = self.signals[signal as usize].alone;
        let patience = if signal == Signal::Metrics {
            METRICS_PATIENCE
        } else {
            2
        };
        alone % patience == patience - 1
    }

    /// Returns whether the receiver has accepted a request of this signal.
    pub(super) fn has_accepted(&self, signal: Signal) -> bool {
        self.signals[signal as usize].accepted.is_some()
    }

    /// Records that the receiver accepted request `number`.
    pub(super) fn record_accepted(&mut self, signal: Signal, number: u64) {
        let of_signal = &mut self.signals[signal as usize];
        of_signal.accepted = of_signal.accepted.max(Some(number));
        of_signal.refused_at = None;
        of_signal.alone = 0;
        self.is_refusing = false;
    }

    /// Records a refusal, given the number of the next request, and returns its cause. `is_of_signal` if the answer names
    /// the signal as the reason.
    pub(super) fn record_refused(
        &mut self,
        group: &mut Group,
        next_request: u64,
        is_of_signal: bool,
    ) -> RefusalCause {
        let signal = group.signal();
        let newest = self.signals.iter().filter_map(|other| other.accepted).max();
        let of_signal = &mut self.signals[signal as usize];
        let is_repeated = |refused_at: u64| of_signal.accepted.is_some_and(|accepted| accepted >= refused_at);
        if group.refused_at().is_some_and(is_repeated) {
            return RefusalCause::Contents;
        }
        of_signal.alone += usize::from(!group.is_merged());
        let began = *of_signal.refused_at.get_or_insert(next_request);
        // A receiver that names the signal, accepts others and never accepted this one does not support it.
        let began = if is_of_signal && of_signal.accepted.is_none() {
            0
        } else {
            began
        };
        let is_certain = is_of_signal || !group.is_merged() || of_signal.alone > 1;
        if is_certain && newest.is_some_and(|accepted| accepted >= began) {
            return RefusalCause::Signal;
        }
        group.mark_refused(next_request);
        self.is_refusing = true;
        self.turn += 1;
        RefusalCause::Service
    }
}
