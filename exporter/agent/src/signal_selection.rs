//! The signals of a target: `traces,metrics=http://host:4318` on the command line, and the sink that filters by them.

use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};

use crate::failure::Failure;

/// Splits `SIGNAL,SIGNAL=TARGET` into the signals and the target. A text without a prefix of signals is only a target.
///
/// # Errors
/// Returns an error if a word in front of a URL is not a signal.
pub(crate) fn split(text: &str) -> Result<(Option<Signals>, &str), Failure> {
    let Some((names, target)) = text.split_once('=') else {
        return Ok((None, text));
    };
    let signals: Vec<Option<Signal>> = names.split(',').map(|name| signal(name.trim())).collect();
    let is_selection = names.chars().all(|c| c.is_ascii_alphabetic() || ", ".contains(c));
    match signals.into_iter().collect::<Option<Signals>>() {
        Some(signals) => Ok((Some(signals), target)),
        None if is_selection && target.contains("://") => Err(Failure::usage(format!(
            "{text}: {names:?} before the = is not a list of signals; write traces, metrics or logs, several with commas"
        ))),
        None => Ok((None, text)),
    }
}

fn signal(name: &str) -> Option<Signal> {
    Signal::ALL.into_iter().find(|signal| signal.as_str() == name)
}

/// A sink that receives some signals only.
pub(crate) struct SelectedSink {
    sink: Box<dyn Sink>,
    signals: Signals,
}

impl SelectedSink {
    /// Restricts `sink` to these signals. With `None`, the sink keeps all signals that it accepts.
    pub(crate) fn narrow(sink: Box<dyn Sink>, signals: Option<Signals>) -> Box<dyn Sink> {
        match signals {
            Some(signals) => Box::new(Self { sink, signals }),
            None => sink,
        }
    }
}

impl Sink for SelectedSink {
    fn name(&self) -> &str {
        self.sink.name()
    }

    fn signals(&self) -> Signals {
        self.signals.intersection(self.sink.signals())
    }

    fn fork(&self) -> Option<Box<dyn Sink>> {
        Some(Self::narrow(self.sink.fork()?, Some(self.signals)))
    }

    fn max_request_bytes(&self, signal: Signal) -> usize {
        self.sink.max_request_bytes(signal)
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        self.sink.deliver(batch)
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        self.sink.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<String>, String) {
        let (signals, target) = split(text).expect("the text makes sense");
        (signals.map(|signals| signals.to_string()), target.to_owned())
    }

    #[test]
    fn signal_names_precede_the_target() {
        let signals = |names: &str| Some(names.to_owned());
        assert_eq!(parts("http://h:1"), (None, "http://h:1".to_owned()));
        assert_eq!(
            parts("traces=http://h:1"),
            (signals("traces"), "http://h:1".to_owned())
        );
        assert_eq!(parts("logs,traces=-"), (signals("traces, logs"), "-".to_owned()));
        assert_eq!(parts("http://h/?a=b"), (None, "http://h/?a=b".to_owned()));
        assert_eq!(parts("run=7.jsonl"), (None, "run=7.jsonl".to_owned()));
    }

    #[test]
    fn unknown_signal_name_before_a_url_is_rejected() {
        let Err(Failure::Usage(problem)) = split("trace=http://h:1") else {
            panic!("it was read")
        };
        let message = problem.to_string();
        assert!(
            message.contains("\"trace\"") && message.contains("write traces"),
            "{message}"
        );
    }
}
