//! The report about an input: its messages, problems and notes.

use std::time::Duration;

use pulsetrain_backends::QueryResponse;
use pulsetrain_otlp::Signal;

use crate::MovedClock;

/// The limit on the problems of one input that are listed individually.
const PROBLEMS: usize = 20;

/// The report about an input.
#[derive(Debug, Default)]
pub struct InputReport {
    /// The path of the file, or the kind and address of a store.
    pub name: String,
    /// The format.
    pub form: &'static str,
    /// The number of messages that were delivered.
    pub messages: u64,
    /// The problems of the input, the first ones with their places.
    pub problems: Vec<String>,
    /// The number of problems.
    pub lost: u64,
    /// The notes about data that was converted to another form.
    pub notes: Vec<String>,
    /// The number of bytes that went through temporary files before the conversion to OTLP.
    pub spilled_bytes: u64,
}

impl InputReport {
    /// Returns the empty report of an input.
    pub fn new(name: String, form: &'static str) -> Self {
        Self {
            name,
            form,
            ..Self::default()
        }
    }

    /// Delivers the messages of an answer, and adds its problems.
    ///
    /// # Errors
    /// The first error of `deliver`.
    pub fn take<E>(
        &mut self,
        answer: QueryResponse,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        for problem in answer.problems {
            self.problem(problem);
        }
        self.deliver(answer.messages, deliver)
    }

    /// Delivers messages, and counts them.
    ///
    /// # Errors
    /// The first error of `deliver`.
    pub fn deliver<E>(
        &mut self,
        messages: Vec<(Signal, Vec<u8>)>,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.messages += messages.len() as u64;
        let mut messages = messages.into_iter();
        messages.try_for_each(|(signal, bytes)| deliver(signal, bytes))
    }

    /// Records the clocks that were shifted, the first few by name.
    pub fn record_clocks(&mut self, moved: &[MovedClock]) {
        self.notes.extend(moved.iter().take(PROBLEMS).map(|clock| {
            let direction = if clock.nanos < 0 { "earlier" } else { "later" };
            let by = Duration::from_nanos(clock.nanos.unsigned_abs());
            format!(
                "the times of {} are {by:?} {direction} than its clock had them",
                clock.name
            )
        }));
        let more = moved.len().saturating_sub(PROBLEMS) as u64;
        self.report_count(more, "more clocks were moved");
    }

    /// Adds a note about `count` things, if there are any.
    pub fn report_count(&mut self, count: u64, text: &str) {
        if count > 0 {
            self.notes.push(format!("{count} {text}"));
        }
    }

    /// Counts a problem; the first ones are listed.
    pub fn problem(&mut self, problem: String) {
        self.lost += 1;
        if self.problems.len() < PROBLEMS {
            self.problems.push(problem);
        }
    }
}
