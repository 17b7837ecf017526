//! Parses wandb's offline files, `run-<id>.wandb`, which hold everything that the library would have sent to its server.
//!
//! [`blocks`] finds and checks the records, [`record`] decodes them and [`item`] reads keys and values. [`content`] records
//! logged values and [`about`] the metadata of the run. [`tags`] maps keys to metrics.

mod about;
mod blocks;
mod content;
mod item;
mod record;

use crate::{
    logs::{LogFormat, LogParser, ParserFactory, RunHeader, Window},
    tags::{self, Scalars},
};
use blocks::{BlockRead, Blocks};
use content::{Key, SummaryEntry};
use pulsetrain_mapping::{RecordTable, TagEvidence, Trainer};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{LoggedTime, Recorder, SkipReason, key_cache::KeyCache};
use record::Record;

/// The row of wandb in the table of formats.
pub const FORMAT: LogFormat = LogFormat {
    name: "wandb",
    brief: "offline files of wandb (run-*.wandb)",
    framework: "wandb",
    continues_after_truncate: false,
    splits: true,
    detect,
    identify,
    parser: ParserFactory::Builtin(|| Box::new(WandbParser::default())),
    coverage: || {
        tags::coverage()
            .into_iter()
            .chain(MACHINE.coverage())
            .chain(about::coverage())
            .collect()
    },
};

/// The keys of wandb's own measurements of the machine (`core/pkg/monitor` of wandb). Keys without a metric keep their names.
static MACHINE: RecordTable = RecordTable::new("wandb-system", "system");

fn detect(head: &[u8]) -> Option<&'static str> {
    head.starts_with(&blocks::MAGIC)
        .then(|| trainer_of(head).map_or("the first bytes of a wandb file", Trainer::sign))
}

fn identify(head: &[u8]) -> RunHeader {
    let mut identity = RunHeader {
        framework: trainer_of(head).and_then(|trainer| trainer.mapping().framework()),
        ..RunHeader::default()
    };
    for record in records(head) {
        if let Ok(Record::Run(run)) = record::parse(&record)
            && let Ok(run) = record::run(run)
        {
            identity.run_name = run.name;
            identity.project = run.project;
            identity.start = run.start_unix_nanos.map(LoggedTime::Utc);
            identity.first_record = run.id;
        }
    }
    identity
}

/// Returns the trainer whose keys are in the first history.
fn trainer_of(head: &[u8]) -> Option<&'static Trainer> {
    let mut evidence = TagEvidence::default();
    records(head)
        .iter()
        .find_map(|record| match record::parse(record) {
            Ok(Record::History(items)) => item::all(items)
                .ok()?
                .iter()
                .find_map(|item| evidence.observe(&item.key())),
            _ => None,
        })
}

/// Returns the complete records at the beginning of a file.
fn records(head: &[u8]) -> Vec<Vec<u8>> {
    let (mut blocks, mut records) = (Blocks::default(), Vec::new());
    let mut rest = head;
    while let BlockRead::Record { len, record } = blocks.next(rest, (head.len() - rest.len()) as u64) {
        records.push(record.to_vec());
        rest = &rest[len..];
    }
    records
}

/// Parses the records of one file.
#[derive(Debug)]
struct WandbParser {
    blocks: Blocks,
    history: Scalars,
    machine: Scalars,
    /// The keys of all histories so far.
    keys: KeyCache<Key>,
    /// The newest summary value of every key.
    summary: KeyCache<SummaryEntry>,
    /// The time of the newest record that has one.
    time_unix_nanos: UnixNanos,
}

impl Default for WandbParser {
    fn default() -> Self {
        Self {
            blocks: Blocks::default(),
            history: Scalars::unordered(),
            machine: Scalars::of_writer(&MACHINE),
            keys: KeyCache::default(),
            summary: KeyCache::default(),
            time_unix_nanos: UnixNanos::UNKNOWN,
        }
    }
}

impl LogParser for WandbParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        loop {
            let place = window.at(done);
            let mut blocks = std::mem::take(&mut self.blocks);
            let found = blocks.next(&window.bytes[done..], place.offset);
            let mut is_partial = false;
            match found {
                BlockRead::Record { len, record } => {
                    self.record(record, place, recorder);
                    done += len;
                }
                BlockRead::Broken { len, problem } => {
                    recorder.report(SkipReason::MalformedRecord, place, || problem.to_owned());
                    done += len;
                }
                BlockRead::Partial { len } => {
                    done += len;
                    is_partial = true;
                }
            }
            self.blocks = blocks;
            if is_partial {
                return self.end_of_window(window, done, recorder);
            }
        }
    }

    fn resync(&mut self) {
        self.blocks.resync();
    }

    fn has_lines(&self) -> bool {
        false
    }
}

impl WandbParser {
    /// Handles the end of a window, whose remaining bytes hold no complete chunk.
    fn end_of_window(&mut self, window: Window<'_>, done: usize, recorder: &mut Recorder<'_>) -> usize {
        if !window.is_last {
            return done;
        }
        if done < window.bytes.len() || self.blocks.is_inside_record() {
            let place = window.at(done);
            let message =
                || "the file ends inside a record: its writer is still writing, or was stopped".to_owned();
            recorder.report(SkipReason::IncompleteRecord, place, message);
        }
        self.end_of_summary(recorder);
        window.bytes.len()
    }
}

#[cfg(test)]
mod tests;
