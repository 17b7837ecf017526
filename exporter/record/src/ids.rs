//! Trace and span ids, derived from the run and the item that they identify.
//!
//! All ranks of a run derive the same trace for a step without communication, and a repeated import derives the same ids. The
//! hash is XXH3 over parts that are each followed by a zero byte.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use pulsetrain_otlp::UnixNanos;

use crate::Run;

/// Returns the trace id of a training step: the same for every rank of an attempt.
pub fn step_trace(run: &Run, step: i64) -> [u8; 16] {
    Parts::for_run(run, STEP_TRACE).trace(step)
}

/// The ids of the steps of one run. The common prefix of their hash input is built once.
#[derive(Clone, Debug)]
pub struct StepIds {
    trace: Parts,
    span: Parts,
}

impl StepIds {
    /// Returns the ids of the steps of a run.
    pub fn new(run: &Run) -> Self {
        Self {
            trace: Parts::for_run(run, STEP_TRACE),
            span: Parts::for_run(run, STEP_SPAN),
        }
    }

    /// Returns the same as [`step_trace`].
    pub fn trace(&self, step: i64) -> [u8; 16] {
        self.trace.trace(step)
    }

    /// Returns the same as [`step_span`].
    pub fn span(&self, step: i64, rank: i64) -> [u8; 8] {
        self.span.span(step, rank)
    }
}

/// The names of the traces and the spans of steps in the hash input.
const STEP_TRACE: &str = "step";
const STEP_SPAN: &str = "train.step";

/// Returns the trace id of a run's lifecycle: start, compilation, checkpoints, evaluations.
pub fn lifecycle_trace(run: &Run) -> [u8; 16] {
    Parts::for_run(run, "lifecycle").trace(0)
}

/// Returns the id of the span of one step on one rank, the root of that rank's spans in the step.
pub fn step_span(run: &Run, step: i64) -> [u8; 8] {
    Parts::for_run(run, STEP_SPAN).span(step, run.rank)
}

/// Returns the id of the span of an evaluation after a step.
pub fn eval_span(run: &Run, step: i64, time_unix_nanos: UnixNanos) -> [u8; 8] {
    Parts::for_run(run, "eval.run").span(step, time_unix_nanos.0 as i64)
}

/// Returns the id of the span of a part of a step, by its end time.
pub fn part_span(run: &Run, name: &str, step: i64, end_unix_nanos: UnixNanos) -> [u8; 8] {
    Parts::for_run(run, name).span(step, end_unix_nanos.0 as i64)
}

/// Returns the span id of a piece of work on a timeline. `start` is a time of the timeline's clock; `ordinal` distinguishes
/// spans with the same name and start.
pub fn work_span(run: &Run, timeline: &str, name: &str, start: u64, ordinal: u64) -> [u8; 8] {
    let mut parts = Parts::for_run(run, "work");
    parts.text(timeline);
    parts.text(name);
    parts.bytes(&start.to_le_bytes());
    parts.bytes(&ordinal.to_le_bytes());
    xxh3_64(&parts.0).max(1).to_be_bytes()
}

/// Returns an id for a run without one, from the first bytes that it wrote, which contain its start time.
pub fn run_id(format: &str, first_bytes: &[u8]) -> String {
    let mut parts = Parts::new("run");
    parts.text(format);
    parts.bytes(first_bytes);
    format!("{:032x}", xxh3_128(&parts.0))
}

/// The hash input: parts that are each followed by a zero byte.
#[derive(Clone, Debug)]
struct Parts(Vec<u8>);

impl Parts {
    fn new(kind: &str) -> Self {
        let mut parts = Self(Vec::new());
        parts.text("pulsetrain");
        parts.text(kind);
        parts
    }

    fn for_run(run: &Run, kind: &str) -> Self {
        let mut parts = Self::new(kind);
        parts.text(&run.id);
        parts.bytes(&run.attempt.to_le_bytes());
        parts
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.push(0);
    }

    /// Returns the trace id for a number.
    fn trace(&self, number: i64) -> [u8; 16] {
        let parts = [&self.0, &number.to_le_bytes()[..], &[0]].concat();
        // An id of zeros is invalid; the hash is zero once in 2^128.
        xxh3_128(&parts).max(1).to_be_bytes()
    }

    /// Returns the span id for a number; the discriminator distinguishes spans with the same number.
    fn span(&self, number: i64, discriminator: i64) -> [u8; 8] {
        let [number, discriminator] = [number, discriminator].map(i64::to_le_bytes);
        let parts = [&self.0, &number[..], &[0], &discriminator, &[0]].concat();
        xxh3_64(&parts).max(1).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, rank: i64) -> Run {
        Run {
            id: id.to_owned(),
            rank,
            ..Run::default()
        }
    }

    #[test]
    fn all_ranks_share_the_trace_of_a_step_and_none_shares_a_span() {
        let (zero, one) = (run("r", 0), run("r", 1));
        assert_eq!(step_trace(&zero, 400), step_trace(&one, 400));
        assert_ne!(step_span(&zero, 400), step_span(&one, 400));
    }

    #[test]
    fn cached_step_ids_equal_the_directly_computed_ids() {
        for id in ["r".to_owned(), "long".repeat(100)] {
            let run = run(&id, 3);
            let ids = StepIds::new(&run);
            for step in [0, 400, -1] {
                assert_eq!(ids.trace(step), step_trace(&run, step));
                assert_eq!(ids.span(step, run.rank), step_span(&run, step));
            }
        }
    }

    #[test]
    fn steps_runs_and_attempts_have_distinct_traces() {
        let first = run("r", 0);
        let restarted = Run {
            attempt: 1,
            ..first.clone()
        };
        let traces = [
            step_trace(&first, 1),
            step_trace(&first, 2),
            step_trace(&run("s", 0), 1),
            step_trace(&restarted, 1),
            lifecycle_trace(&first),
        ];
        let distinct: std::collections::BTreeSet<_> = traces.iter().collect();
        assert_eq!(distinct.len(), traces.len());
    }

    /// The expected value is the result of Python's `xxhash` for `pulsetrain 0 step 0 demo 0 <attempt> 0 <step> 0`, where 0 is
    /// a zero byte and the numbers are 64-bit little endian.
    #[test]
    fn ids_never_change_between_releases() {
        let trace = u128::from_be_bytes(step_trace(&run("demo", 0), 400));
        assert_eq!(format!("{trace:032x}"), "b9cb87b01a5b4122ad604b5ce22bbf90");
    }
}
