use std::{
    collections::BTreeSet,
    io::Read,
    os::unix::fs::PermissionsExt,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant as WallInstant},
};

use proptest::prelude::*;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Ack, Delivery, Sink};
use tempfile::TempDir;

use super::{
    super::{FileJournal, FilePermissions, FileRotation, FileSink},
    *,
};

/// An output in one folder and its journal in another.
struct World {
    folder: TempDir,
    state: TempDir,
    /// The first unacknowledged number.
    first_unacked: Arc<AtomicU64>,
    config: FileConfig,
}

/// Each record is the number of its batch in four bytes, after its length.
const RECORD: u64 = 8;

impl World {
    fn new(records: u64) -> Self {
        Self::with(FileRotation {
            max_bytes: records * RECORD,
            keep: 0,
            ..FileRotation::default()
        })
    }

    fn with(rotation: FileRotation) -> Self {
        let folder = || tempfile::tempdir().expect("a temporary folder can be made");
        Self {
            folder: folder(),
            state: folder(),
            first_unacked: Arc::default(),
            config: FileConfig {
                rotation: Some(rotation),
                permissions: None,
            },
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn journal(&self) -> FileJournal {
        let first_unacked = Arc::clone(&self.first_unacked);
        FileJournal::new(self.state.path().join("out.journal"), move || {
            first_unacked.load(Ordering::Relaxed)
        })
    }

    /// Starts the sink as after a kill.
    fn start(&self) -> FileSink {
        FileSink::recover(&self.path("out.binpb"), &self.journal(), &self.config).expect("it can be opened")
    }

    fn ack_before(&self, number: u32) {
        self.first_unacked.store(u64::from(number), Ordering::Relaxed);
    }

    /// Returns the names of the output's files, the oldest first.
    fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }

    fn state_names(&self) -> Vec<String> {
        names(self.state.path())
    }

    /// Returns the batches in each file, in order of the names. The last file is the current one.
    fn files(&self) -> Vec<Vec<u32>> {
        let mut names = self.names();
        names.retain(|name| !name.ends_with(".partial"));
        names.sort_by_key(|name| name == "out.binpb");
        names.iter().map(|name| records(&self.path(name))).collect()
    }

    fn all(&self) -> Vec<u32> {
        self.files().concat()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("it can be listed")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

fn records(path: &Path) -> Vec<u32> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).expect("it is there");
    let read = match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => flate2::read::GzDecoder::new(file).read_to_end(&mut bytes),
        Some("zst") => zstd::Decoder::new(file).and_then(|mut text| text.read_to_end(&mut bytes)),
        _ => file.read_to_end(&mut bytes),
    };
    read.expect("it can be read");
    assert_eq!(bytes.len() as u64 % RECORD, 0, "{bytes:?}");
    let record = |record: &[u8]| {
        assert_eq!(record[..4], [0, 0, 0, 4]);
        u32::from_be_bytes(record[4..].try_into().expect("four bytes"))
    };
    bytes.chunks(8).map(record).collect()
}

/// Returns the batch of a number. A batch of a log has an ack with this number.
fn batch(number: u32, is_of_log: bool) -> Batch {
    let batch = Batch::new(Signal::Metrics, 1, number.to_be_bytes().to_vec());
    match is_of_log {
        true => batch.with_ack(Arc::new(Ack::new(drop).numbered(number.into()))),
        false => batch,
    }
}

async fn deliver(sink: &mut FileSink, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        assert_eq!(sink.deliver(&batch(number, true)).await, Delivery::Delivered);
    }
}

/// Waits for a condition that the thread for rotated files makes true.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = wall_now() + Duration::from_secs(20);
    while !holds() {
        assert!(wall_now() < deadline, "{what} does not become true");
        std::thread::yield_now();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a deadline of a test whose clock may be paused"
)]
fn wall_now() -> WallInstant {
    WallInstant::now()
}

#[tokio::test]
async fn full_file_is_rotated_to_a_name_with_its_creation_time() {
    let world = World::new(2);
    deliver(&mut world.start(), 0..5).await;
    assert_eq!(world.files(), [vec![0, 1], vec![2, 3], vec![4]]);
    let names = world.names();
    assert!(
        names[..2]
            .iter()
            .all(|name| name.starts_with("out-20") && name.ends_with(".binpb")),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn file_over_the_maximum_age_is_rotated_before_the_next_record() {
    let world = World::with(FileRotation {
        max_age: Some(Duration::from_secs(60)),
        keep: 0,
        ..FileRotation::default()
    });
    let mut sink = world.start();
    for (number, seconds) in [(0, 30), (1, 40), (2, 59), (3, 60)] {
        deliver(&mut sink, [number]).await;
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }
    deliver(&mut sink, [4]).await;
    assert_eq!(world.files(), [vec![0, 1], vec![2, 3], vec![4]]);
}

#[tokio::test]
async fn oldest_rotated_files_are_removed_and_unrelated_files_are_kept() {
    let world = World::with(FileRotation {
        max_bytes: RECORD,
        keep: 2,
        ..FileRotation::default()
    });
    for name in [
        "out-notes.binpb",
        "out-20261122T215500Z.binpb.bak",
        "output-20261122T215500Z.binpb",
    ] {
        fs::write(world.path(name), "").unwrap();
    }
    let mut sink = world.start();
    deliver(&mut sink, 0..6).await;
    wait_for("only two rotated files are there", || {
        world.names().len() == 3 + 1 + 2
    });
    let mut left = world.all();
    left.sort_unstable();
    assert_eq!(left, [3, 4, 5]);
}

#[tokio::test]
async fn rotated_files_are_compressed_once_their_records_are_acknowledged() {
    for (compression, ending) in [
        (FileCompression::Gzip, ".binpb.gz"),
        (FileCompression::Zstd, ".binpb.zst"),
    ] {
        let mut world = World::with(FileRotation {
            max_bytes: 2 * RECORD,
            keep: 0,
            compression,
            ..FileRotation::default()
        });
        world.config.permissions = FilePermissions::parse("0640");
        let mut sink = world.start();
        deliver(&mut sink, 0..4).await;
        world.ack_before(2);
        // A kill interrupted the compression of a file.
        let rotated = world.names().swap_remove(0);
        fs::write(world.path(&format!("{rotated}{}.partial", &ending[6..])), "torn").unwrap();
        deliver(&mut sink, 4..6).await;
        let compressed = || world.names().iter().filter(|name| name.ends_with(ending)).count();
        wait_for("the settled file is compressed", || {
            compressed() == 1 && world.names().len() == 3
        });
        assert_eq!(world.all(), [0, 1, 2, 3, 4, 5]);
        world.ack_before(6);
        deliver(&mut sink, [6]).await;
        wait_for("all rotated files are compressed", || {
            compressed() == 3 && world.names().len() == 4
        });
        assert_eq!(world.all(), [0, 1, 2, 3, 4, 5, 6]);
        for name in world.names() {
            let mode = fs::metadata(world.path(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640, "{name}");
        }
        assert_eq!(
            world.state_names(),
            ["out.journal"],
            "journals of settled files are gone"
        );
    }
}

#[tokio::test]
async fn kill_after_a_rotation_truncates_replayed_records_of_rotated_files() {
    let world = World::new(2);
    deliver(&mut world.start(), 0..7).await;
    world.ack_before(3);
    let mut sink = world.start();
    assert!(sink.notice().is_none());
    assert_eq!(world.all(), [0, 1, 2]);
    assert_eq!(world.state_names(), ["out.journal"]);
    deliver(&mut sink, 3..7).await;
    drop(sink);
    world.ack_before(7);
    drop(world.start());
    let mut all = world.all();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
}

/// The steps of a rotation: rename, open, keep the journal, start the next one.
#[tokio::test]
async fn kill_during_a_rotation_neither_duplicates_nor_loses_records() {
    for steps in 0..4 {
        let world = World::new(100);
        let mut sink = world.start();
        deliver(&mut sink, 0..4).await;
        sink.deliver(&batch(100, false)).await;
        drop(sink);
        let journal = world.state.path().join("out.journal");
        if steps > 0 {
            fs::rename(world.path("out.binpb"), world.path("out-20261122T215500Z.binpb")).unwrap();
        }
        if steps > 1 {
            File::create(world.path("out.binpb")).unwrap();
        }
        if steps > 2 {
            fs::rename(&journal, journal.with_extension("1.journal")).unwrap();
        }
        world.ack_before(2);
        let mut sink = world.start();
        assert_eq!(world.all(), [0, 1, 100], "after {steps} steps");
        deliver(&mut sink, 2..4).await;
        drop(sink);
        world.ack_before(4);
        drop(world.start());
        assert_eq!(world.all(), [0, 1, 100, 2, 3], "after {steps} steps");
    }
}

#[tokio::test]
async fn externally_moved_file_is_written_until_it_is_reopened() {
    let world = World::new(100);
    let mut sink = world.start();
    let control = sink.control();
    deliver(&mut sink, 0..2).await;
    assert!(!control.reopen().unwrap(), "it is where it was");
    fs::rename(world.path("out.binpb"), world.path("out.binpb.1")).unwrap();
    deliver(&mut sink, 2..4).await;
    assert_eq!(records(&world.path("out.binpb.1")), [0, 1, 2, 3]);
    assert!(control.reopen().unwrap());
    assert_eq!(records(&world.path("out.binpb")), [0; 0], "it is there at once");
    deliver(&mut sink, 4..6).await;
    assert_eq!(records(&world.path("out.binpb")), [4, 5]);
    drop(sink);
    assert!(!control.reopen().unwrap(), "nobody writes it");
    world.ack_before(3);
    let sink = world.start();
    assert!(sink.notice().is_none());
    assert_eq!(
        records(&world.path("out.binpb.1")),
        [0, 1, 2],
        "it is found under its new name"
    );
    assert_eq!(records(&world.path("out.binpb")), [0; 0]);
}

/// logrotate with `create`: the next file exists already.
#[tokio::test]
async fn file_created_by_an_external_rotation_is_appended_to() {
    let world = World::new(100);
    let mut sink = world.start();
    deliver(&mut sink, 0..2).await;
    fs::rename(world.path("out.binpb"), world.path("out.binpb.1")).unwrap();
    fs::write(world.path("out.binpb"), b"\0\0\0\x04\0\0\0\x63torn").unwrap();
    assert!(sink.control().reopen().unwrap());
    deliver(&mut sink, 2..3).await;
    assert_eq!(records(&world.path("out.binpb")), [99, 2]);
    assert_eq!(fs::read(world.path("out.aside-1.binpb")).unwrap(), b"torn");
}

#[tokio::test]
async fn missing_moved_file_is_reported_with_possible_duplicates() {
    let world = World::new(100);
    let mut sink = world.start();
    deliver(&mut sink, 0..4).await;
    fs::rename(world.path("out.binpb"), world.path("out.binpb.1")).unwrap();
    sink.control().reopen().unwrap();
    deliver(&mut sink, 4..5).await;
    drop(sink);
    // A program that compresses at once leaves another file.
    fs::copy(world.path("out.binpb.1"), world.path("out.binpb.1.gz")).unwrap();
    fs::remove_file(world.path("out.binpb.1")).unwrap();
    world.ack_before(1);
    let sink = world.start();
    let notice = sink.notice().expect("the user learns it").to_string();
    assert!(notice.contains("writes 24 bytes again"), "{notice}");
    assert_eq!(world.state_names(), ["out.journal"]);
}

#[tokio::test]
async fn removed_file_is_recreated_before_the_next_record() {
    let world = World::new(100);
    let mut sink = world.start();
    deliver(&mut sink, 0..2).await;
    fs::remove_file(world.path("out.binpb")).unwrap();
    deliver(&mut sink, 2..4).await;
    assert_eq!(records(&world.path("out.binpb")), [2, 3]);
    drop(sink);
    world.ack_before(3);
    drop(world.start());
    assert_eq!(world.all(), [2]);
}

#[tokio::test]
async fn failed_rotation_changes_nothing_and_is_retried() {
    let world = World::new(2);
    let mut sink = world.start();
    deliver(&mut sink, 0..2).await;
    let journal = world.state.path().join("out.journal");
    let hidden = world.state.path().join("hidden");
    fs::rename(&journal, &hidden).unwrap();
    let Delivery::Retry { problem, .. } = sink.deliver(&batch(2, true)).await else {
        panic!("it cannot be rotated");
    };
    let message = problem.to_string();
    for words in ["out.binpb: cannot rotate it to", "out-20"] {
        assert!(message.contains(words), "{words} is not in: {message}");
    }
    assert_eq!(world.files(), [[0, 1]]);
    fs::rename(&hidden, &journal).unwrap();
    deliver(&mut sink, 2..4).await;
    assert_eq!(world.files(), [[0, 1], [2, 3]]);
    drop(sink);
    world.ack_before(1);
    drop(world.start());
    assert_eq!(world.all(), [0]);
}

#[tokio::test]
async fn sink_reopened_by_a_reload_still_recovers_earlier_files() {
    let world = World::new(2);
    deliver(&mut world.start(), 0..4).await;
    // Moved while no sink had it open.
    fs::rename(world.path("out.binpb"), world.path("out.binpb.1")).unwrap();
    let resumed = FileSink::resume(&world.path("out.binpb"), Some(&world.journal()), &world.config);
    deliver(&mut resumed.unwrap(), 4..5).await;
    world.ack_before(1);
    drop(world.start());
    assert_eq!(world.all(), [0]);
}

#[tokio::test]
async fn sync_covers_rotated_files_first_and_journals_after_outputs() {
    let world = World::new(2);
    let mut sink = world.start();
    let synced = |sink: &FileSink| {
        let writer = sink.writer.lock().unwrap();
        let unsynced = writer.destination.unsynced().unwrap();
        let name = |file: &Arc<File>| {
            use std::os::fd::AsRawFd;
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            let path = fs::read_link(link).unwrap();
            path.file_name().unwrap().to_string_lossy().into_owned()
        };
        unsynced.files().map(name).collect::<Vec<_>>()
    };
    let folder = |folder: &TempDir| folder.path().file_name().unwrap().to_string_lossy().into_owned();
    sink.control().sync().unwrap();
    deliver(&mut sink, 0..3).await;
    let rotated = world.names().swap_remove(0);
    let expected = [
        rotated,
        folder(&world.folder),
        "out.binpb".to_owned(),
        "out.1.journal".to_owned(),
        "out.journal".to_owned(),
        folder(&world.state),
    ];
    assert_eq!(synced(&sink), expected);
    sink.control().sync().unwrap();
    let again = [
        "out.binpb".to_owned(),
        "out.journal".to_owned(),
        folder(&world.state),
    ];
    assert_eq!(synced(&sink), again, "what is on the disk is not synced twice");
}

#[tokio::test]
async fn symbolic_link_is_kept_and_its_target_is_rotated() {
    let world = World::new(1);
    let other = tempfile::tempdir().unwrap();
    let target = other.path().join("data.binpb");
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, world.path("out.binpb")).unwrap();
    deliver(&mut world.start(), 0..2).await;
    assert!(world.path("out.binpb").is_symlink());
    assert_eq!(records(&target), [1]);
    assert_eq!(names(other.path()).len(), 2);
    drop(world.start());
    assert_eq!(names(other.path()).len(), 2);
    assert_eq!(records(&target), [0; 0], "it comes again");
}

/// An event of an output.
#[derive(Clone, Debug)]
enum Event {
    /// Delivers a number of batches, of logs or of other sources.
    Deliver(u32, bool),
    /// Stores checkpoints up to this number of batches before the newest.
    Ack(u32),
    Move,
    Reopen,
    Kill,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (1_u32..5, any::<bool>()).prop_map(|(count, is_of_log)| Event::Deliver(count, is_of_log)),
        2 => (0_u32..6).prop_map(Event::Ack),
        1 => Just(Event::Move),
        1 => Just(Event::Reopen),
        2 => Just(Event::Kill),
    ];
    prop::collection::vec(event, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever rotations, moves, reopens and kills happen, every record is stored once.
    #[test]
    fn every_record_is_written_exactly_once_across_kills_moves_and_rotations(events in events(), limit in 1_u64..4) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new(limit);
            let mut sink = Some(world.start());
            // Batches of logs are numbered from 0 in order, and those of other sources from 1000.
            let (mut next, mut first_unacked, mut other, mut moved) = (0_u32, 0_u32, 1000_u32, 0);
            for event in events {
                let writing = sink.as_mut().unwrap();
                match event {
                    Event::Deliver(count, true) => {
                        deliver(writing, next..next + count).await;
                        next += count;
                    }
                    Event::Deliver(count, false) => {
                        for _ in 0..count {
                            writing.deliver(&batch(other, false)).await;
                            other += 1;
                        }
                    }
                    Event::Ack(before) => {
                        first_unacked = first_unacked.max(next.saturating_sub(before));
                        world.ack_before(first_unacked);
                    }
                    Event::Move => {
                        moved += 1;
                        let _ = fs::rename(world.path("out.binpb"), world.path(&format!("moved.{moved}")));
                    }
                    Event::Reopen => drop(writing.control().reopen().unwrap()),
                    Event::Kill => {
                        drop(sink.take());
                        sink = Some(world.start());
                        next = first_unacked;
                    }
                }
            }
            let all = world.all();
            let distinct: BTreeSet<u32> = all.iter().copied().collect();
            assert_eq!(distinct.len(), all.len(), "{all:?}");
            assert_eq!(distinct, (0..next).chain(1000..other).collect());
        });
    }
}
