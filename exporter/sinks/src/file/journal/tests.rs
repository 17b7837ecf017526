use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Ack, Delivery, Sink};
use tempfile::TempDir;

use super::{
    super::{FileConfig, FileFormat, FileSink},
    *,
};

/// A file, its journal, and the first unacknowledged number.
struct World {
    folder: TempDir,
    first_unacked: Arc<AtomicU64>,
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            first_unacked: Arc::default(),
        }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out.binpb")
    }

    fn journal(&self) -> FileJournal {
        let first_unacked = Arc::clone(&self.first_unacked);
        FileJournal::new(self.folder.path().join("out.journal"), move || {
            first_unacked.load(Ordering::Relaxed)
        })
    }

    fn recover(&self) -> FileSink {
        FileSink::recover(&self.out(), &self.journal(), &FileConfig::default())
            .expect("the file can be opened")
    }

    /// Acknowledges the numbers before that of this letter.
    fn ack_before(&self, letter: char) {
        self.first_unacked.store(letter.into(), Ordering::Relaxed);
    }

    fn recorded(&self) -> String {
        fs::read_to_string(self.folder.path().join("out.journal")).expect("the journal is there")
    }

    /// Returns the bytes that were moved to another file.
    fn aside(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("out.aside-1.binpb")).expect("bytes were moved")
    }

    /// Returns the bodies of the records, each one byte.
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

/// The reports of a journal: for each, whether it was an error.
#[derive(Clone, Default)]
struct JournalErrors(Arc<Mutex<Vec<bool>>>);

impl JournalErrors {
    fn reporter(&self) -> impl Fn(Option<io::Error>) + use<> {
        let errors = self.clone();
        move |trouble| {
            errors
                .0
                .lock()
                .expect("nothing panics here")
                .push(trouble.is_some());
        }
    }

    fn all(&self) -> Vec<bool> {
        self.0.lock().expect("nothing panics here").clone()
    }
}

fn batch(body: char) -> Batch {
    Batch::new(Signal::Metrics, 1, body.to_string().into_bytes())
}

/// Delivers one record a letter. Capital letters are replayed after a kill, each with the ack of its letter.
async fn deliver(sink: &mut FileSink, bodies: &str) {
    for body in bodies.chars() {
        let mut batch = batch(body);
        if body.is_uppercase() {
            batch = batch.with_ack(ack(body));
        }
        assert_eq!(sink.deliver(&batch).await, Delivery::Delivered);
    }
}

#[tokio::test]
async fn recovery_truncates_replayed_records_and_keeps_the_others() {
    let world = World::new();
    let mut sink = world.recover();
    deliver(&mut sink, "AxByCDzE").await;
    drop(sink);
    world.ack_before('C');
    let mut sink = world.recover();
    assert_eq!(world.records(), "AxByz");
    deliver(&mut sink, "CDE").await;
    drop(sink);
    drop(world.recover());
    assert_eq!(world.records(), "AxByz", "nothing was settled meanwhile");
}

#[tokio::test]
async fn late_record_does_not_preserve_unacknowledged_earlier_records() {
    let world = World::new();
    deliver(&mut world.recover(), "BCADx").await;
    world.ack_before('B');
    let mut sink = world.recover();
    assert_eq!(world.records(), "Ax");
    deliver(&mut sink, "CBD").await;
    drop(sink);
    world.ack_before('C');
    drop(world.recover());
    assert_eq!(world.records(), "AxB");
}

#[tokio::test]
async fn recovery_without_acks_keeps_only_records_that_are_not_replayed() {
    let world = World::new();
    deliver(&mut world.recover(), "AxB").await;
    drop(world.recover());
    assert_eq!(world.records(), "x");
}

#[tokio::test]
async fn records_missing_from_the_journal_are_moved_aside() {
    let world = World::new();
    deliver(&mut world.recover(), "Ax").await;
    world.ack_before('Z');
    let mut file = File::options().append(true).open(world.out()).unwrap();
    file.write_all(b"\0\0\0\x01B\0\0").unwrap();
    drop(world.recover());
    assert_eq!(world.records(), "Ax");
    assert_eq!(world.aside(), b"\0\0\0\x01B\0\0", "it may not be delivered again");
}

#[tokio::test]
async fn interrupted_recovery_is_repeated_at_the_next_start() {
    let world = World::new();
    deliver(&mut world.recover(), "AxBy").await;
    let format = FileFormat::LengthPrefixed;
    let mut file = File::options().read(true).write(true).open(world.out()).unwrap();
    let (journal, out) = (world.journal(), world.out());
    let plan = journal.plan(&mut file, format).unwrap().unwrap();
    journal.put_aside(&mut file, &out, &plan).unwrap();
    file.set_len(3).unwrap();
    assert_eq!(journal.recover(&mut file, &out, format).unwrap().end, 10);
    assert_eq!(world.records(), "xy");
    drop(world.recover());
    assert_eq!(world.records(), "xy");
}

#[tokio::test]
async fn unknown_file_of_the_same_name_is_kept_up_to_its_last_complete_record() {
    let world = World::new();
    deliver(&mut world.recover(), "AAxB").await;
    fs::write(world.out(), b"\0\0\0\x0bsomebody elses").unwrap();
    let sink = world.recover();
    assert_eq!(fs::read(world.out()).unwrap(), b"\0\0\0\x0bsomebody el");
    assert_eq!(world.aside(), b"ses");
    let notice = sink.notice().expect("the user learns it").to_string();
    for words in ["out.binpb: keeps 15 bytes", "moved 3 bytes", "out.aside-1.binpb"] {
        assert!(notice.contains(words), "{words} is not in: {notice}");
    }
}

#[tokio::test]
async fn file_without_a_journal_is_appended_to_and_only_new_records_are_recovered() {
    let world = World::new();
    deliver(&mut world.recover(), "AxB").await;
    fs::remove_file(world.folder.path().join("out.journal")).unwrap();
    let mut sink = world.recover();
    assert!(sink.notice().is_some());
    deliver(&mut sink, "Cy").await;
    assert_eq!(world.records(), "AxBCy");
    drop(sink);
    assert!(world.recover().notice().is_none());
    assert_eq!(
        world.records(),
        "AxBy",
        "what this journal knows is cut off as ever"
    );
}

#[tokio::test]
async fn bytes_appended_by_another_program_are_moved_aside() {
    let world = World::new();
    deliver(&mut world.recover(), "Ax").await;
    let foreign = b"\0\0\0\x02hi";
    let mut file = File::options().append(true).open(world.out()).unwrap();
    file.write_all(foreign).unwrap();
    let sink = world.recover();
    assert_eq!(world.records(), "x");
    assert_eq!(world.aside(), foreign);
    assert!(sink.notice().is_some());
}

#[tokio::test]
async fn file_truncated_while_open_is_recovered_from_its_new_start() {
    let world = World::new();
    let mut sink = world.recover();
    deliver(&mut sink, "AxBy").await;
    File::options()
        .write(true)
        .open(world.out())
        .unwrap()
        .set_len(0)
        .unwrap();
    deliver(&mut sink, "zCuD").await;
    assert_eq!(world.records(), "zCuD");
    drop(sink);
    world.ack_before('D');
    let mut sink = world.recover();
    assert_eq!(world.records(), "zCu");
    deliver(&mut sink, "Dv").await;
    assert_eq!(world.records(), "zCuDv");
}

#[tokio::test]
async fn file_truncated_between_runs_keeps_later_records() {
    let world = World::new();
    deliver(&mut world.recover(), "AxByz").await;
    world.ack_before('Z');
    drop(world.recover());
    fs::write(world.out(), b"").unwrap();
    let mut sink = world.recover();
    assert!(sink.notice().is_none(), "an empty file is no news");
    deliver(&mut sink, "u").await;
    drop(sink);
    drop(world.recover());
    assert_eq!(world.records(), "u");
}

#[tokio::test]
async fn missing_file_is_created() {
    let world = World::new();
    deliver(&mut world.recover(), "AAx").await;
    world.ack_before('Z');
    drop(world.recover());
    fs::remove_file(world.out()).unwrap();
    deliver(&mut world.recover(), "By").await;
    drop(world.recover());
    assert_eq!(world.records(), "By");
}

#[tokio::test]
async fn sink_reopened_in_the_same_process_truncates_nothing() {
    let world = World::new();
    deliver(&mut world.recover(), "AxB").await;
    deliver(
        &mut FileSink::resume(&world.out(), Some(&world.journal()), &FileConfig::default()).unwrap(),
        "Cy",
    )
    .await;
    assert_eq!(world.records(), "AxBCy");
    drop(world.recover());
    assert_eq!(world.records(), "xy");
}

#[test]
fn journal_drops_entries_of_acknowledged_records() {
    let world = World::new();
    let mut journal = world.journal().open().unwrap();
    let (acked, late) = (batch('A').with_ack(ack('A')), batch('B').with_ack(ack('B')));
    let mut end = 0;
    while journal.bytes <= TRIMMED_BYTES {
        journal.record(&acked, end, end + 5);
        end += 5;
    }
    world.ack_before('B');
    journal.record(&late, end, end + 5);
    assert_eq!(world.recorded(), format!("{end}\n{end} {} 66\n", end + 5));
}

#[test]
fn journal_without_acks_is_not_rewritten_for_every_line() {
    let world = World::new();
    let mut journal = world.journal().open().unwrap();
    let waits = batch('A').with_ack(ack('A'));
    let mut renewed = 0;
    for place in 0..20_000 {
        let before = journal.trim_at;
        journal.record(&waits, place * 5, place * 5 + 5);
        renewed += usize::from(journal.trim_at != before);
    }
    assert!((1..=4).contains(&renewed), "{renewed} times");
}

#[tokio::test]
async fn kill_between_journal_entry_and_record_changes_no_record() {
    let world = World::new();
    deliver(&mut world.recover(), "x").await;
    let mut journal = world.journal().open().unwrap();
    journal.record(&batch('y'), 5, 10);
    drop(journal);
    let mut sink = world.recover();
    assert_eq!(world.records(), "x");
    deliver(&mut sink, "z").await;
    drop(sink);
    drop(world.recover());
    assert_eq!(world.records(), "xz");
}

#[test]
fn journal_entry_of_a_failed_write_is_removed() {
    let world = World::new();
    let errors = JournalErrors::default();
    let mut journal = world.journal().on_error(errors.reporter()).open().unwrap();
    journal.record(&batch('x'), 0, 5);
    journal.record(&batch('y'), 5, 10);
    journal.undo_last();
    assert_eq!(world.recorded(), "0 5\n");
    let writable = std::mem::replace(&mut journal.file, File::open(world.journal().path()).unwrap());
    journal.record(&batch('y'), 5, 10);
    journal.undo_last();
    assert_eq!(errors.all(), [true, false]);
    journal.file = writable;
    journal.record(&batch('z'), 5, 15);
    assert_eq!(world.recorded(), "0 5\n5 15\n");
}

#[test]
fn failed_entries_are_reported_and_written_later() {
    let world = World::new();
    let errors = JournalErrors::default();
    let mut journal = world.journal().on_error(errors.reporter()).open().unwrap();
    // A file that is open for reading only cannot be written.
    let writable = std::mem::replace(&mut journal.file, File::open(world.journal().path()).unwrap());
    journal.record(&batch('A').with_ack(ack('A')), 0, 5);
    journal.record(&batch('x'), 5, 10);
    assert_eq!((errors.all(), world.recorded().as_str()), (vec![true], ""));
    journal.file = writable;
    journal.record(&batch('y'), 10, 15);
    assert_eq!(errors.all(), [true, false]);
    assert_eq!(world.recorded(), "0 5 65\n5 10\n10 15\n");
}

#[test]
fn torn_line_is_not_parsed() {
    let notes = JournalContent::parse("7\n7 12 3\nnonsense\n5 1\n12 1");
    let span = Span {
        start: 7,
        end: 12,
        ack: Some(3),
    };
    let spans = vec![span];
    let expected = JournalContent {
        file: None,
        floor: 7,
        spans,
    };
    assert_eq!(notes, expected);
}

fn ack(letter: char) -> Arc<Ack> {
    Arc::new(Ack::new(drop).numbered(letter.into()))
}
