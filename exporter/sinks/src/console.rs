//! The step line: what a run is at, on the terminal, in the manner of Surogate's console.
//!
//! `columns` is the one table of what the line shows; `steps` takes the points of a batch apart into steps; `verdicts` remembers which verdicts are open; `run` remembers
//! what a run has reported and draws its line; `screen` puts the lines in their places, and nothing where there is no terminal;
//! `pen` writes them on a thread of its own, so that a terminal that is stopped (Ctrl-S) holds up nobody.

mod columns;
mod pen;
mod run;
mod screen;
mod steps;
mod verdicts;

use std::collections::BTreeMap;

use pulsetrain_otlp::{Signal, view};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Sink};

pub use self::screen::ConsoleStyle;
use self::{
    pen::Pen,
    run::RunLine,
    screen::Screen,
    steps::{Step, steps},
    verdicts::Verdicts,
};

/// The most runs that have a line; further ones are not shown.
const MAX_RUNS: usize = 64;

/// Shows one line a run.
pub struct ConsoleSink {
    runs: BTreeMap<String, Shown>,
    verdicts: Verdicts,
    screen: Screen,
}

/// A run with its line.
struct Shown {
    /// The lowest rank that reports: the line is that of this rank, and of what is known of the run.
    rank: Option<i64>,
    line: RunLine,
}

impl Shown {
    /// Whether the line shows a step of this rank. A lower rank than the present one begins the line again.
    fn follows(&mut self, step: &Step) -> bool {
        match (self.rank, step.rank) {
            (_, None) => true,
            (Some(present), Some(rank)) if present < rank => false,
            (present, rank) => {
                if present.is_some() && present != rank {
                    self.line = RunLine::of(step);
                }
                self.rank = rank;
                true
            }
        }
    }
}

impl ConsoleSink {
    /// Shows lines on the standard error, where that is a terminal.
    pub fn stderr(style: ConsoleStyle) -> Self {
        Self {
            runs: BTreeMap::new(),
            verdicts: Verdicts::default(),
            screen: Screen::stderr(style),
        }
    }

    fn show(&mut self, bytes: &[u8]) -> Result<(), String> {
        let data = view::Message::decode(bytes).map_err(|error| format!("cannot be shown: {error}"))?;
        for step in steps(&data) {
            if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&step.run) {
                continue;
            }
            let run = self.runs.entry(step.run.clone()).or_insert_with(|| Shown {
                rank: None,
                line: RunLine::of(&step),
            });
            if !run.follows(&step) {
                continue;
            }
            if let Some(line) = run.line.advance(&step) {
                let verdict = self.verdicts.of(&step.run);
                self.screen.draw(&step.run, &format!("{line}{verdict}"));
            }
        }
        self.screen.flush();
        Ok(())
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
            // Nothing of the batch is lost to anybody else: it is a remark and no loss.
            (Ok(()), missed) => Delivery::Partial {
                rejected: 0,
                message: format!("the terminal takes nothing: {missed} times its lines were not written"),
            },
            (Err(message), _) => Delivery::Refused { message },
        }))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), String>> {
        let pen = self.screen.put_down();
        Box::pin(async {
            // A terminal that is stopped does not hold up the end either.
            let _ = tokio::task::spawn_blocking(move || pen.map(Pen::finish)).await;
            Ok(())
        })
    }
}
