//! A set of signals: those that a sink accepts, or that a receiver supports.

use std::fmt;

use crate::Signal;

/// A set of [`Signal`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signals(u8);

impl Signals {
    /// No signal.
    pub const NONE: Self = Self(0);
    /// Every signal.
    pub const ALL: Self = Self((1 << Signal::ALL.len()) - 1);

    /// Returns whether the signal is in the set.
    pub fn contains(self, signal: Signal) -> bool {
        self.0 & bit(signal) != 0
    }

    /// Adds a signal.
    pub fn insert(&mut self, signal: Signal) {
        self.0 |= bit(signal);
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Returns the signals that are in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Iterates over the signals, in the order of [`Signal::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        Signal::ALL
            .into_iter()
            .filter(move |signal| self.contains(*signal))
    }
}

impl FromIterator<Signal> for Signals {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> Self {
        let mut set = Self::NONE;
        signals.into_iter().for_each(|signal| set.insert(signal));
        set
    }
}

/// Lists the signals: `traces, metrics`.
impl fmt::Display for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Signal::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

fn bit(signal: Signal) -> u8 {
    1 << signal as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_set_iterates_in_the_order_of_the_signals() {
        let set: Signals = [Signal::Logs, Signal::Traces, Signal::Logs].into_iter().collect();
        assert_eq!(set.to_string(), "traces, logs");
        assert!(!set.contains(Signal::Metrics));
        assert_eq!(
            set.intersection([Signal::Logs].into_iter().collect()).to_string(),
            "logs"
        );
        assert_eq!(Signal::ALL.into_iter().collect::<Signals>(), Signals::ALL);
        assert!(Signals::NONE.is_empty() && !set.is_empty());
    }
}
