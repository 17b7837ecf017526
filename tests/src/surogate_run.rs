//! An endless run of Surogate: the records of a real log, followed by steps without end.

use std::{path::Path, thread};

use fastrand::Rng;

use crate::{SurogateWriter, corpus, record_at, surogate_records, surogate_time, unix_nanos};

/// A run that writes its log.
#[derive(Debug)]
pub struct SurogateRun {
    writer: SurogateWriter,
    /// The records at the start of the run, in reverse order.
    opening: Vec<String>,
    clock: Clock,
    step: usize,
}

/// The times of the records.
#[derive(Debug)]
enum Clock {
    /// Times in one hour of a fixed day, one second per step.
    Hour(usize),
    /// Real time, with the time of the last step in Unix nanoseconds.
    Real(Option<u64>),
}

impl SurogateRun {
    /// Starts a run that writes to `log`, which is truncated.
    pub fn begin(log: &Path, hour: usize) -> Self {
        let mut opening: Vec<String> = surogate_records(&corpus("surogate/training_dense.json"))
            .iter()
            .map(|record| record.replace("2026-11-21 00:", &format!("2026-11-21 {hour:02}:")))
            .collect();
        opening.reverse();
        Self {
            writer: SurogateWriter::create(log),
            opening,
            clock: Clock::Hour(hour),
            step: 0,
        }
    }

    /// Starts a run with real times that writes to `log`; each step begins at the end of the previous one. The records before
    /// the first step are written at once.
    pub fn begin_now(log: &Path) -> Self {
        let now = unix_nanos();
        let records = surogate_records(&corpus("surogate/training_dense.json"));
        let opening = records
            .iter()
            .take_while(|record| !record.contains(r#""log": "step""#));
        let mut writer = SurogateWriter::create(log);
        for record in opening {
            writer.append(&record_at(record, now));
        }
        Self {
            writer,
            opening: Vec::new(),
            clock: Clock::Real(None),
            step: 0,
        }
    }

    /// Writes this number of records, on average one in four in pieces.
    pub fn write(&mut self, random: &mut Rng, records: usize) {
        for _ in 0..records {
            let record = self.next_record();
            let cuts = [random.usize(1..20), random.usize(20..record.len())];
            let cuts: &[usize] = if random.u8(0..4) == 0 { &cuts } else { &[] };
            self.writer.append_torn(&record, cuts, thread::yield_now);
        }
    }

    /// Writes one record up to a random offset, calls `between`, and writes the rest.
    pub fn write_torn(&mut self, random: &mut Rng, between: impl FnMut()) {
        let record = self.next_record();
        let cut = random.usize(1..record.len() + 4);
        self.writer.append_torn(&record, &[cut], between);
    }

    fn next_record(&mut self) -> String {
        self.opening.pop().unwrap_or_else(|| {
            self.step += 1;
            let (time, duration_ms) = self.clock.tick(self.step);
            let (step, loss) = (self.step, 1000.0 / self.step as f64);
            format!(
                r#"{{"log": "step", "time": "{time}", "step": {step}, "epoch": 0.5, "step_tokens": 16384, "duration_ms": {duration_ms}, "norm": 1.5, "loss": {loss}, "lr": 2e-05, "phase": "converging"}}"#
            )
        })
    }
}

impl Clock {
    /// Returns the end time of a step as text, and the duration of the step in milliseconds.
    fn tick(&mut self, step: usize) -> (String, f64) {
        match self {
            Self::Hour(hour) => {
                let (minute, second) = (30 + step / 60 % 30, step % 60);
                (
                    format!("2026-11-21 {hour:02}:{minute:02}:{second:02}.{step:09}"),
                    123.0,
                )
            }
            Self::Real(last) => {
                let began = last.unwrap_or_else(|| unix_nanos() - 1_000_000);
                let ended = unix_nanos().max(began + 1);
                *last = Some(ended);
                (surogate_time(ended), (ended - began) as f64 / 1e6)
            }
        }
    }
}
