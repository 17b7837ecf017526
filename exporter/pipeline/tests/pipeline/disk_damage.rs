//! The losses of a damaged disk queue: what is missing is counted, by signal and once, and nothing else is.
//!
//! `PULSETRAIN_DAMAGE=exporter/DELIVERY.md` (a path from the root of the workspace) writes the table of more runs.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fmt::Write as _,
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    time::Duration,
};

use fastrand::Rng;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Batch, DropReason, Pipeline, Requirement, Sink,
    disk::{DiskQueueConfig, SyncPolicy},
};
use tokio::runtime::Builder;

use crate::{
    disk::{builder, open, push, task, until},
    fake_sink::{Answer, FakeSink, Witness},
};

const BATCHES: u32 = 200;
const NAME: &str = "damage";

type Damage = fn(&Files, &mut Rng);

/// The damages of a queue whose process has ended.
const DAMAGES: [(&str, Damage); 18] = [
    ("none", |_, _| {}),
    ("oldest segment deleted", |files, _| files.delete(0)),
    ("middle segment deleted", |files, random| {
        files.delete(files.middle(random));
    }),
    ("newest segment deleted", |files, _| files.delete(files.last())),
    ("all segments deleted", |files, _| {
        (0..=files.last()).for_each(|at| files.delete(at));
    }),
    ("middle segment of 0 bytes", |files, random| {
        files.cut(files.middle(random), |_| 0);
    }),
    ("middle segment cut in half", |files, random| {
        files.cut(files.middle(random), |length| length / 2);
    }),
    ("newest segment of 0 bytes", |files, _| {
        files.cut(files.last(), |_| 0);
    }),
    ("newest segment short by 10,000 bytes", |files, _| {
        files.cut(files.last(), |length| length.saturating_sub(10_000));
    }),
    ("every segment short by up to 3,000 bytes", |files, random| {
        for at in 0..=files.last() {
            files.cut(at, |length| length.saturating_sub(random.u64(0..3000)));
        }
    }),
    ("two segments swapped", |files, _| {
        let aside = files.folder.join("aside");
        for (from, to) in [
            (files.path(1), &aside),
            (files.path(2), &files.paths[1]),
            (&aside, &files.paths[2]),
        ] {
            fs::rename(from, to).expect("the files can be used");
        }
    }),
    ("copy of a segment in the place of the next one", |files, _| {
        fs::copy(files.path(1), files.path(2)).expect("the files can be used");
    }),
    ("copy of a segment under the next free number", |files, random| {
        let newest = files.path(files.last()).file_stem().and_then(OsStr::to_str);
        let newest: u64 = newest
            .and_then(|number| number.parse().ok())
            .expect("its name is a number");
        files.copy(files.middle(random), newest + 1);
    }),
    ("copy of a segment under the largest number", |files, random| {
        files.copy(files.middle(random), u64::MAX);
    }),
    ("8 KiB of zeros", |files, random| {
        files.change(files.any(random), |bytes| {
            let start = random.usize(..bytes.len());
            let end = (start + 8192).min(bytes.len());
            bytes[start..end].fill(0);
        });
    }),
    ("1 bit flip", |files, random| files.flip(1, random)),
    ("20 bit flips", |files, random| files.flip(20, random)),
    (
        "a segment deleted, 20 bit flips, newest segment short",
        |files, random| {
            files.flip(20, random);
            files.cut(files.last(), |length| length.saturating_sub(random.u64(1..5000)));
            files.delete(files.middle(random));
        },
    ),
];

/// The segments of a folder, in order.
struct Files {
    folder: PathBuf,
    paths: Vec<PathBuf>,
}

/// The items of the runs with one damage.
#[derive(Default)]
struct Row {
    acknowledged: u64,
    missing: u64,
    counted: u64,
}

#[test]
fn missing_items_of_a_damaged_queue_are_counted_exactly() {
    let document = env::var_os("PULSETRAIN_DAMAGE");
    let runs = if document.is_some() { 50 } else { 4 };
    let mut table =
        "| damage | acknowledged items | missing | counted as lost |\n|---|---|---|---|\n".to_owned();
    for (name, damage) in DAMAGES {
        let mut row = Row::default();
        for seed in 0..runs {
            let runtime = Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime");
            runtime.block_on(run(name, damage, seed, &mut row));
        }
        assert_eq!(row.missing, row.counted, "{name}");
        let Row {
            acknowledged,
            missing,
            counted,
        } = row;
        writeln!(table, "| {name} | {acknowledged} | {missing} | {counted} |")
            .expect("the files can be used");
    }
    if let Some(document) = document {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
        let text = fs::read_to_string(&path).expect("the files can be used");
        let (begin, end) = (format!("<!-- {NAME} -->\n"), format!("<!-- end of {NAME} -->"));
        let (before, rest) = text.split_once(&begin).expect("the document has the marks");
        let (_, after) = rest.split_once(&end).expect("the document has the marks");
        fs::write(path, format!("{before}{begin}{table}{end}{after}")).expect("the files can be used");
    }
}

/// Stores batches, delivers the first ones, damages the files, restarts once or twice, and delivers the rest.
async fn run(name: &str, damage: Damage, seed: u64, row: &mut Row) {
    let mut random = Rng::with_seed(seed);
    let folder = tempfile::tempdir().expect("the files can be used");
    let config = DiskQueueConfig {
        max_bytes: 1 << 19,
        sync: SyncPolicy::Interval(Duration::from_millis(5)),
        ..DiskQueueConfig::new(folder.path().join("queue"))
    };
    let mut script = vec![Answer::Take.at_once(); random.usize(0..30)];
    script.push(Answer::Retry(None).at_once());
    let (pipeline, ingress, first) = start(&config, script).await;
    let mut items = BTreeMap::new();
    for id in 0..BATCHES {
        let (signal, count) = (Signal::ALL[random.usize(..3)], random.u32(1..20));
        let mut payload = id.to_be_bytes().to_vec();
        payload.resize(random.usize(500..2500), random.u8(..));
        push(&ingress, Batch::new(signal, count, payload))
            .await
            .expect("the files can be used");
        items.insert(id, (signal, u64::from(count)));
    }
    pipeline.drain(Duration::ZERO).await;
    damage(&Files::new(&config.folder), &mut random);

    let mut counted = [0; Signal::ALL.len()];
    if random.bool() {
        // A loss that this process counts is not counted by the next one.
        let (pipeline, _ingress, _) = start(&config, vec![Answer::Retry(None).at_once()]).await;
        add_lost(&pipeline, &mut counted);
        pipeline.drain(Duration::ZERO).await;
    }
    let (pipeline, _ingress, second) = start(&config, vec![Answer::Take.at_once()]).await;
    until("nothing is left on the disk", || {
        let counts = pipeline.ledger().snapshot().remove(0);
        counts.on_disk_items() == 0 && counts.queued == 0
    })
    .await;
    add_lost(&pipeline, &mut counted);
    pipeline.drain(Duration::from_secs(20)).await;

    row.acknowledged += items.values().map(|(_, count)| count).sum::<u64>();
    for id in first.received_ids().into_iter().chain(second.received_ids()) {
        items.remove(&id);
    }
    let mut missing = [0; Signal::ALL.len()];
    for (signal, count) in items.into_values() {
        missing[signal as usize] += count;
    }
    assert_eq!(missing, counted, "{name}, seed {seed}: missing, counted");
    row.missing += missing.iter().sum::<u64>();
    row.counted += counted.iter().sum::<u64>();
}

async fn start(
    config: &DiskQueueConfig,
    script: Vec<crate::fake_sink::Move>,
) -> (Pipeline, pulsetrain_pipeline::Ingress, Witness) {
    let (sink, witness): (Box<dyn Sink>, _) = FakeSink::scripted("sink", script);
    let task = task(open(config).await);
    let (pipeline, ingress) = builder().sink_with(sink, Requirement::Required, task).start();
    (pipeline, ingress, witness)
}

/// Adds the items that the ledger counts as lost, by signal.
fn add_lost(pipeline: &Pipeline, counted: &mut [u64; Signal::ALL.len()]) {
    for dropped in pipeline.ledger().snapshot().remove(0).dropped {
        assert_eq!(dropped.reason, DropReason::Unreadable);
        counted[dropped.signal as usize] += dropped.items;
    }
}

impl Files {
    fn new(folder: &Path) -> Self {
        let entries = fs::read_dir(folder)
            .expect("the files can be used")
            .map(|entry| entry.expect("the files can be used").path());
        let mut paths: Vec<_> = entries
            .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
            .collect();
        paths.sort();
        assert!(paths.len() >= 4, "{paths:?}");
        Self {
            folder: folder.to_owned(),
            paths,
        }
    }

    fn path(&self, at: usize) -> &PathBuf {
        &self.paths[at]
    }

    fn last(&self) -> usize {
        self.paths.len() - 1
    }

    fn middle(&self, random: &mut Rng) -> usize {
        random.usize(1..self.last())
    }

    fn any(&self, random: &mut Rng) -> usize {
        random.usize(..self.paths.len())
    }

    fn delete(&self, at: usize) {
        fs::remove_file(self.path(at)).expect("the files can be used");
    }

    fn copy(&self, at: usize, number: u64) {
        fs::copy(self.path(at), self.folder.join(format!("{number:020}.segment")))
            .expect("the files can be used");
    }

    fn cut(&self, at: usize, length: impl FnOnce(u64) -> u64) {
        let file = OpenOptions::new()
            .write(true)
            .open(self.path(at))
            .expect("the files can be used");
        file.set_len(length(file.metadata().expect("the files can be used").len()))
            .expect("the files can be used");
    }

    fn change(&self, at: usize, change: impl FnOnce(&mut [u8])) {
        let mut bytes = fs::read(self.path(at)).expect("the files can be used");
        change(&mut bytes);
        fs::write(self.path(at), bytes).expect("the files can be used");
    }

    fn flip(&self, bits: usize, random: &mut Rng) {
        for _ in 0..bits {
            self.change(self.any(random), |bytes| {
                bytes[random.usize(..bytes.len())] ^= 1 << random.u8(..8);
            });
        }
    }
}
