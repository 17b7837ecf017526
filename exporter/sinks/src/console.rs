//! The console sink: one status line per run on the terminal, in the style of Surogate's console.
//!
//! `steps` extracts steps from a batch, `run` keeps the values of a run and formats its line, `columns` is
//! the table of columns. `verdicts` tracks open verdicts. `screen` positions the lines, or discards them
//! without a terminal. `frame_writer` writes on its own thread, so that a stopped terminal (Ctrl-S) blocks nothing.

mod columns;
mod frame_writer;
mod run;
mod screen;
mod steps;
mod verdicts;

use std::collections::BTreeMap;

use pulsetrain_otlp::{Signal, WireError};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};

pub use self::screen::ConsoleStyle;
use self::{
    frame_writer::FrameWriter,
    run::RunLine,
    screen::Screen,
    steps::{Step, steps},
    verdicts::Verdicts,
};

/// The maximum number of runs with a line. Later runs are not shown.
const MAX_RUNS: usize = 64;

/// Shows one line per run.
pub struct ConsoleSink {
    runs: BTreeMap<String, RunDisplay>,
    verdicts: Verdicts,
    screen: Screen,
}

/// A run and its line.
struct RunDisplay {
    /// The lowest rank that has reported. The line shows this rank and the values of the run.
    rank: Option<i64>,
    line: RunLine,
}

impl RunDisplay {
    /// Returns whether the line shows a step of this rank. A lower rank than the current one resets the line.
    fn follows(&mut self, step: &Step) -> bool {
        match (self.rank, step.rank) {
            (_, None) => true,
            (Some(present), Some(rank)) if present < rank => false,
            (present, rank) => {
                if present.is_some() && present != rank {
                    self.line = RunLine::new(step);
                }
                self.rank = rank;
                true
            }
        }
    }
}

impl ConsoleSink {
    /// Returns a sink that writes to the standard error if that is a terminal.
    pub fn stderr(style: ConsoleStyle) -> Self {
        Self {
            runs: BTreeMap::new(),
            verdicts: Verdicts::default(),
            screen: Screen::stderr(style),
        }
    }

    fn show(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for (run, line) in self.lines(bytes)? {
            self.screen.draw(&run, &line);
        }
        self.screen.flush();
        Ok(())
    }

    /// Returns the runs that a batch advances, with their lines.
    fn lines(&mut self, bytes: &[u8]) -> Result<Vec<(String, String)>, WireError> {
        let mut lines = Vec::new();
        for step in steps(bytes)? {
            if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&step.run) {
                continue;
            }
            let run = self.runs.entry(step.run.clone()).or_insert_with(|| RunDisplay {
                rank: None,
                line: RunLine::new(&step),
            });
            if !run.follows(&step) {
                continue;
            }
            if let Some(line) = run.line.advance(&step) {
                let verdict = self.verdicts.text(&step.run);
                lines.push((step.run, format!("{line}{verdict}")));
            }
        }
        Ok(lines)
    }
}

impl Sink for ConsoleSink {
    fn name(&self) -> &'static str {
        "console"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let shown = match batch.signal() {
            _ if !self.screen.is_seen() => Ok(()),
            Signal::Metrics => self.show(batch.bytes()),
            Signal::Logs => self.verdicts.add(batch.bytes()),
            Signal::Traces => Ok(()),
        };
        Box::pin(std::future::ready(match (shown, self.screen.take_missed()) {
            (Ok(()), 0) => Delivery::Delivered,
            // The display is incomplete, but no other sink loses data, so this is a warning.
            (Ok(()), missed) => Delivery::Partial {
                rejected: 0,
                problem: Problem::new(format!(
                    "the terminal is blocked: {missed} updates of its lines were dropped"
                ))
                .with_remedy("press Ctrl-Q to resume it"),
            },
            (Err(error), _) => Delivery::Refused(Problem::new(format!("cannot be shown: {error}"))),
        }))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        let pen = self.screen.put_down();
        Box::pin(async {
            // A stopped terminal does not delay shutdown.
            let _ = tokio::task::spawn_blocking(move || pen.map(FrameWriter::finish)).await;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
