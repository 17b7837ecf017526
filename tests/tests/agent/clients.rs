//! Clients of a receiver that is killed repeatedly.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use pulsetrain_tests::{Process, wait_at_most};

use crate::delivery::post;

/// Clients that send numbered messages until they are stopped.
#[derive(Default)]
pub(crate) struct Clients {
    number: AtomicU32,
    answers: AtomicU32,
    acknowledged: Mutex<BTreeSet<String>>,
    is_over: AtomicBool,
}

impl Clients {
    /// Sends messages one after another until [`end`](Self::end).
    pub(crate) fn post(&self, port: u16) {
        while !self.is_over.load(Ordering::Relaxed) {
            let text = format!("message {}", self.number.fetch_add(1, Ordering::Relaxed));
            match post(port, &text) {
                Some(200) => {
                    self.acknowledged.lock().expect("nobody panics here").insert(text);
                }
                Some(503) => {}
                // The agent does not run: the next message gets another number.
                None => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Some(status) => panic!("{status}"),
            }
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until a message is acknowledged, or rejected temporarily.
    pub(crate) fn wait_for_answers(&self, agent: &Process) {
        let before = self.answers.load(Ordering::Relaxed);
        let log = || agent.log();
        let is_answered = wait_at_most(Duration::from_secs(60), || {
            self.answers.load(Ordering::Relaxed) > before
        });
        assert!(is_answered, "no client has an answer: {}", log());
    }

    /// Stops sending.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns the acknowledged messages.
    pub(crate) fn acknowledged(self) -> BTreeSet<String> {
        self.acknowledged.into_inner().expect("nobody panics here")
    }
}
