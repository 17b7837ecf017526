//! A run of Surogate that goes on for ever: the records of a real log, and then steps without end.

use std::{path::Path, thread};

use fastrand::Rng;

use crate::{SurogateWriter, corpus, surogate_records};

/// A run that is being written, whose times are in an hour of their own.
#[derive(Debug)]
pub struct SurogateRun {
    writer: SurogateWriter,
    /// The records that are written first.
    opening: Vec<String>,
    hour: usize,
    step: usize,
}

impl SurogateRun {
    /// Begins to write to `log`, which is emptied.
    pub fn begin(log: &Path, hour: usize) -> Self {
        let mut opening: Vec<String> = surogate_records(&corpus("surogate/training_dense.json"))
            .iter()
            .map(|record| record.replace("2026-11-21 00:", &format!("2026-11-21 {hour:02}:")))
            .collect();
        opening.reverse();
        Self {
            writer: SurogateWriter::create(log),
            opening,
            hour,
            step: 0,
        }
    }

    /// Writes some records, one in four in pieces.
    pub fn write(&mut self, random: &mut Rng, records: usize) {
        for _ in 0..records {
            let record = self.next_record();
            let cuts = [random.usize(1..20), random.usize(20..record.len())];
            let cuts: &[usize] = if random.u8(0..4) == 0 { &cuts } else { &[] };
            self.writer.append_torn(&record, cuts, thread::yield_now);
        }
    }

    /// Writes one record, and lets something happen when it is written up to a place that chance gives.
    pub fn write_torn(&mut self, random: &mut Rng, between: impl FnMut()) {
        let record = self.next_record();
        let cut = random.usize(1..record.len() + 4);
        self.writer.append_torn(&record, &[cut], between);
    }

    fn next_record(&mut self) -> String {
        self.opening.pop().unwrap_or_else(|| {
            self.step += 1;
            let (hour, step) = (self.hour, self.step);
            let (minute, second, loss) = (30 + step / 60 % 30, step % 60, 1000.0 / step as f64);
            format!(
                r#"{{"log": "step", "time": "2026-11-21 {hour:02}:{minute:02}:{second:02}.{step:09}", "step": {step}, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": {loss}, "lr": 2e-05, "phase": "converging"}}"#
            )
        })
    }
}
