use std::sync::atomic::{AtomicU64, Ordering};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Receipt, Sink};
use tempfile::TempDir;

use super::{super::FileSink, *};

/// A file, its journal, and how far sources are sure of it.
struct World {
    folder: TempDir,
    committed: Arc<AtomicU64>,
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            committed: Arc::default(),
        }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out.binpb")
    }

    fn journal(&self) -> FileJournal {
        let committed = Arc::clone(&self.committed);
        FileJournal::new(self.folder.path().join("out.journal"), move || {
            committed.load(Ordering::Relaxed)
        })
    }

    fn recover(&self) -> FileSink {
        FileSink::recover(&self.out(), &self.journal()).expect("the file can be opened")
    }

    fn commit(&self) {
        let end = fs::metadata(self.out()).expect("the file is there").len();
        self.committed.store(end, Ordering::Relaxed);
    }

    /// The bodies of the records, each of which is one byte.
    fn records(&self) -> String {
        let bytes = fs::read(self.out()).expect("the file is there");
        assert_eq!(bytes.len() % 5, 0, "{bytes:?}");
        let records = bytes.chunks(5).map(|record| {
            assert_eq!(record[..4], [0, 0, 0, 1]);
            char::from(record[4])
        });
        records.collect()
    }
}

fn batch(body: char) -> Batch {
    Batch::new(Signal::Metrics, 1, body.to_string().into_bytes())
}

/// Delivers a record a letter; those of capital letters come again after a kill.
async fn deliver(sink: &mut FileSink, bodies: &str) {
    for body in bodies.chars() {
        let mut batch = batch(body);
        if body.is_uppercase() {
            batch = batch.with_receipt(Arc::new(Receipt::new(drop)));
        }
        assert_eq!(sink.deliver(&batch).await, Delivery::Delivered);
    }
}

#[tokio::test]
async fn what_comes_again_is_cut_off_and_what_comes_once_is_kept() {
    let world = World::new();
    let mut sink = world.recover();
    deliver(&mut sink, "AxB").await;
    world.commit();
    deliver(&mut sink, "yCDzE").await;
    drop(sink);
    let mut sink = world.recover();
    assert_eq!(world.records(), "AxByz");
    deliver(&mut sink, "CDE").await;
    drop(sink);
    drop(world.recover());
    assert_eq!(world.records(), "AxByz", "nothing was committed meanwhile");
}

#[tokio::test]
async fn without_a_committed_end_only_what_comes_once_stays() {
    let world = World::new();
    deliver(&mut world.recover(), "AxB").await;
    drop(world.recover());
    assert_eq!(world.records(), "x");
}

#[tokio::test]
async fn a_recovery_that_is_killed_anywhere_is_done_again() {
    let world = World::new();
    deliver(&mut world.recover(), "AxBy").await;
    let format = FileFormat::LengthPrefixed;
    let mut file = File::options().read(true).write(true).open(world.out()).unwrap();
    world.journal().put_aside(&mut file, format).unwrap();
    file.set_len(3).unwrap();
    assert_eq!(world.journal().recover(&mut file, format).unwrap(), 10);
    assert_eq!(world.records(), "xy");
    drop(world.recover());
    assert_eq!(world.records(), "xy");
}

#[tokio::test]
async fn another_file_of_the_same_name_keeps_nothing_of_the_old_one() {
    let world = World::new();
    deliver(&mut world.recover(), "AAxB").await;
    fs::write(world.out(), b"\0\0\0\x0bsomebody elses").unwrap();
    drop(world.recover());
    assert_eq!(fs::read(world.out()).unwrap(), b"");
}

#[tokio::test]
async fn a_sink_that_is_opened_again_in_the_same_program_cuts_nothing_off() {
    let world = World::new();
    deliver(&mut world.recover(), "AxB").await;
    deliver(
        &mut FileSink::go_on(&world.out(), Some(&world.journal())).unwrap(),
        "Cy",
    )
    .await;
    assert_eq!(world.records(), "AxBCy");
    drop(world.recover());
    assert_eq!(world.records(), "xy");
}

#[test]
fn a_journal_forgets_what_is_committed() {
    let world = World::new();
    let mut journal = world.journal().open().unwrap();
    let mut end = 0;
    while journal.bytes <= TRIMMED_BYTES {
        journal.note(end, end + 5).unwrap();
        end += 5;
    }
    world.committed.store(end - 5, Ordering::Relaxed);
    journal.note(end, end + 5).unwrap();
    let text = fs::read_to_string(world.folder.path().join("out.journal")).unwrap();
    assert_eq!(text, format!("{} {end}\n{end} {}\n", end - 5, end + 5));
}

#[test]
fn a_torn_line_is_none() {
    let world = World::new();
    fs::write(world.folder.path().join("out.journal"), "0 5\nnonsense\n5 1").unwrap();
    assert_eq!(world.journal().read().unwrap(), [Span { start: 0, end: 5 }]);
}
