//! Decides for each signal of the keeper whether the trainer has received it as well.
//!
//! The kernel does not report how far a signal was sent. The witness, a process that nobody signals alone, answers that:
//! a signal that it received too was sent to the group, by a terminal, or by a scheduler to every process. The sender may
//! need a moment for all of them (`timeout` signals its child, then its group), so the decision is made [`WINDOW`] after
//! the signal, when the witness has answered a question and so has reported everything that it received before.

use crate::signals::Received;

/// A time in milliseconds on the monotonic clock.
pub(crate) type Millis = u64;

/// The time that a sender may need to signal all of its processes. The same signal within it is the same event.
const WINDOW: Millis = 50;

/// The time limit for the answer of the witness.
const ANSWER: Millis = 1_000;

/// The number of questions until their numbers repeat.
const QUESTIONS: u8 = 128;

/// The signals whose reach is not decided yet.
#[derive(Default)]
pub(crate) struct Arrivals {
    undecided: Vec<Arrival>,
    /// The reports of the witness without a signal of the keeper, by time.
    early: Vec<(i32, Millis)>,
    question: u8,
}

struct Arrival {
    received: Received,
    due: Millis,
    is_shared: bool,
    asked: Option<u8>,
}

/// A signal, and whether the trainer has received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) received: Received,
    pub(crate) is_shared: bool,
}

impl Arrivals {
    /// Records a signal of the keeper.
    pub(crate) fn receive(&mut self, received: Received, now: Millis) {
        let is_same = |arrival: &Arrival| arrival.received.signal == received.signal;
        if self.undecided.iter().any(is_same) {
            return;
        }
        self.forget_old_reports(now);
        let reported = self
            .early
            .iter()
            .position(|(signal, _)| *signal == received.signal);
        self.undecided.push(Arrival {
            received,
            due: now + WINDOW,
            is_shared: reported.map(|at| self.early.swap_remove(at)).is_some(),
            asked: None,
        });
    }

    /// Records a signal of the witness.
    pub(crate) fn report(&mut self, signal: i32, now: Millis) {
        let arrival = self
            .undecided
            .iter_mut()
            .find(|arrival| arrival.received.signal == signal);
        match arrival {
            Some(arrival) => arrival.is_shared = true,
            None => {
                self.forget_old_reports(now);
                self.early.push((signal, now));
            }
        }
    }

    fn forget_old_reports(&mut self, now: Millis) {
        self.early.retain(|(_, at)| at + WINDOW >= now);
    }

    /// Returns the question to the witness that is due now.
    pub(crate) fn question(&mut self, now: Millis) -> Option<u8> {
        let question = (self.question + 1) % QUESTIONS;
        let mut is_due = false;
        for arrival in &mut self.undecided {
            if arrival.asked.is_none() && !arrival.is_shared && arrival.due <= now {
                (arrival.asked, arrival.due) = (Some(question), now + ANSWER);
                is_due = true;
            }
        }
        is_due.then(|| {
            self.question = question;
            question
        })
    }

    /// Records the answer to a question; `None` without a witness that could answer.
    pub(crate) fn answer(&mut self, question: Option<u8>) {
        for arrival in &mut self.undecided {
            if arrival.asked.is_some() && (question.is_none() || arrival.asked == question) {
                arrival.due = 0;
            }
        }
    }

    /// Removes and returns the signals that are decided now.
    pub(crate) fn decided(&mut self, now: Millis) -> Vec<Decided> {
        let is_decided =
            |arrival: &mut Arrival| arrival.due <= now && (arrival.is_shared || arrival.asked.is_some());
        let decided = self.undecided.extract_if(.., is_decided);
        let decided = decided.map(|arrival| Decided {
            received: arrival.received,
            is_shared: arrival.is_shared,
        });
        decided.collect()
    }

    /// Returns the time of the next decision or question.
    pub(crate) fn due(&self) -> Option<Millis> {
        self.undecided.iter().map(|arrival| arrival.due).min()
    }
}

#[cfg(test)]
mod tests {
    use libc::{SIGINT, SIGTERM};

    use super::*;

    fn sent(signal: i32) -> Received {
        Received {
            signal,
            is_from_kernel: false,
        }
    }

    fn decided(signal: i32, is_shared: bool) -> Decided {
        Decided {
            received: sent(signal),
            is_shared,
        }
    }

    #[test]
    fn signal_that_only_the_keeper_received_is_decided_by_an_answer() {
        let mut arrivals = Arrivals::default();
        arrivals.receive(sent(SIGINT), 1_000);
        assert_eq!((arrivals.question(1_049), arrivals.due()), (None, Some(1_050)));
        let question = arrivals.question(1_050).unwrap();
        assert_eq!(arrivals.decided(1_051), []);
        arrivals.answer(Some(question));
        assert_eq!(arrivals.decided(1_051), [decided(SIGINT, false)]);
        assert_eq!(arrivals.due(), None);
    }

    /// `timeout` signals its child, and then its group.
    #[test]
    fn signal_to_the_keeper_and_then_to_its_group_is_one_shared_signal() {
        let mut arrivals = Arrivals::default();
        arrivals.receive(sent(SIGTERM), 1_000);
        arrivals.report(SIGTERM, 1_001);
        arrivals.receive(sent(SIGTERM), 1_002);
        assert_eq!(
            (arrivals.question(1_050), arrivals.decided(1_049)),
            (None, vec![])
        );
        assert_eq!(arrivals.decided(1_050), [decided(SIGTERM, true)]);
        assert_eq!(arrivals.decided(1_100), []);
    }

    #[test]
    fn report_before_the_signal_counts_within_the_window() {
        let mut arrivals = Arrivals::default();
        arrivals.report(SIGTERM, 1_000);
        arrivals.receive(sent(SIGTERM), 1_050);
        assert_eq!(arrivals.decided(1_100), [decided(SIGTERM, true)]);
        arrivals.report(SIGTERM, 2_000);
        arrivals.receive(sent(SIGTERM), 2_051);
        assert!(arrivals.question(2_101).is_some());
    }

    #[test]
    fn report_before_the_answer_counts() {
        let mut arrivals = Arrivals::default();
        arrivals.receive(sent(SIGINT), 1_000);
        let question = arrivals.question(1_050).unwrap();
        arrivals.report(SIGINT, 1_060);
        arrivals.answer(Some(question));
        assert_eq!(arrivals.decided(1_060), [decided(SIGINT, true)]);
    }

    #[test]
    fn signal_is_forwarded_without_an_answer_in_time() {
        let mut arrivals = Arrivals::default();
        arrivals.receive(sent(SIGINT), 1_000);
        arrivals.receive(sent(SIGTERM), 1_020);
        let first = arrivals.question(1_050).unwrap();
        let second = arrivals.question(1_070).unwrap();
        assert_ne!(first, second);
        arrivals.answer(Some(second));
        assert_eq!(arrivals.decided(1_071), [decided(SIGTERM, false)]);
        assert_eq!(arrivals.decided(2_050), [decided(SIGINT, false)]);
    }
}
