use pulsetrain_pipeline::CancellationToken;
use tempfile::TempDir;

use super::*;
use crate::live::one_span::batch;

struct World {
    folder: TempDir,
    sink: PerfettoFilesSink,
    files: PerfettoFiles,
}

impl World {
    fn new(bytes: usize, keep: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (sink, files) = PerfettoFilesSink::open(PerfettoFilesConfig {
            path: folder.path().join("traces/run.pftrace"),
            bytes,
            age: Duration::from_secs(3600),
            keep,
            flush_every: Duration::from_secs(5),
            perfetto: PerfettoConfig::default(),
        })
        .expect("the folder can be written");
        Self { folder, sink, files }
    }

    /// Returns the contents of the files, the oldest first.
    fn contents(&self) -> Vec<String> {
        let files = self
            .files
            .shared
            .lock()
            .series
            .oldest_first()
            .expect("the folder is there");
        let read = |path: &PathBuf| fs::read(path).expect("a trace can be read");
        files
            .iter()
            .map(|path| String::from_utf8_lossy(&read(path)).into_owned())
            .collect()
    }

    /// Returns the number of entries in the folder.
    fn entries(&self) -> usize {
        fs::read_dir(self.folder.path().join("traces"))
            .expect("the folder is there")
            .count()
    }
}

#[tokio::test]
async fn file_grows_and_is_complete_after_every_write() {
    let mut world = World::new(1 << 20, 3);
    for (index, name) in ["first", "second", "third"].into_iter().enumerate() {
        assert_eq!(world.sink.deliver(&batch(name)).await, Delivery::Delivered);
        world.files.shared.flush().await;
        let contents = world.contents();
        assert_eq!((contents.len(), world.entries()), (1, 1));
        assert!(
            contents[0].contains(name) && contents[0].contains("first"),
            "{index}"
        );
    }
    world.sink.finish().await.expect("all is written");
}

#[tokio::test]
async fn full_trace_file_is_rotated_and_the_oldest_is_removed() {
    let one = BatchRing::size_of(&batch("batch 0"));
    let mut world = World::new(2 * one, 2);
    for number in 0..7 {
        let delivered = world.sink.deliver(&batch(&format!("batch {number}"))).await;
        assert_eq!(delivered, Delivery::Delivered);
        assert!(world.files.shared.lock().ring.bytes() <= 2 * one);
    }
    world.sink.finish().await.expect("all is written");
    let contents = world.contents();
    assert_eq!((contents.len(), world.entries()), (2, 2));
    assert!(contents[0].contains("batch 4") && contents[0].contains("batch 5"));
    assert!(contents[1].contains("batch 6") && !contents[1].contains("batch 5"));
}

#[tokio::test]
async fn trace_file_over_the_maximum_age_is_rotated() {
    let mut world = World::new(1 << 20, 5);
    world.sink.deliver(&batch("early")).await;
    world.files.shared.flush().await;
    {
        let mut state = world.files.shared.lock();
        let file = state.file.as_mut().expect("a file was begun");
        file.1 = file
            .1
            .checked_sub(Duration::from_secs(3600))
            .expect("the clock runs long enough");
    }
    world.sink.deliver(&batch("late")).await;
    world.sink.finish().await.expect("all is written");
    let contents = world.contents();
    assert_eq!(contents.len(), 2);
    assert!(contents[0].contains("early") && contents[1].contains("late"));
}

#[tokio::test]
async fn disk_error_is_reported_and_no_batch_is_lost_after_it() {
    let one = BatchRing::size_of(&batch("batch 0"));
    let mut world = World::new(2 * one, 2);
    let folder = world.folder.path().join("traces");
    world.sink.deliver(&batch("batch 0")).await;
    fs::remove_dir_all(&folder).expect("the folder can be removed");
    world.files.shared.flush().await;
    let Delivery::Partial { rejected: 0, problem } = world.sink.deliver(&batch("batch 1")).await else {
        panic!("the fault is not reported");
    };
    let message = problem.to_string();
    assert!(message.contains("run.pftrace"), "{message}");
    let third = world.sink.deliver(&batch("batch 2")).await;
    assert!(matches!(third, Delivery::Retry { .. }), "{third:?}");
    fs::create_dir(&folder).expect("the folder can be made");
    assert_eq!(world.sink.deliver(&batch("batch 2")).await, Delivery::Delivered);
    world.sink.finish().await.expect("all is written");
    let contents = world.contents();
    assert!(contents[0].contains("batch 0") && contents[0].contains("batch 1"));
    assert!(contents[1].contains("batch 2"));
}

#[tokio::test(start_paused = true)]
async fn trace_file_is_written_at_the_flush_interval() {
    let World {
        folder,
        mut sink,
        files,
    } = World::new(1 << 20, 2);
    let shared = Arc::clone(&files.shared);
    let stop = CancellationToken::new();
    let running = tokio::spawn(files.run(stop.clone()));
    sink.deliver(&batch("first")).await;
    let mut seconds = 0;
    while shared.lock().is_behind
        || shared
            .lock()
            .series
            .existing()
            .expect("the folder is there")
            .is_empty()
    {
        time::sleep(Duration::from_secs(1)).await;
        seconds += 1;
        assert!(seconds < 60, "the disk does not catch up");
    }
    stop.cancel();
    running.await.expect("the task ends");
    drop(folder);
}

#[test]
fn path_without_the_pftrace_extension_is_rejected() {
    let config = PerfettoFilesConfig {
        path: "run.json".into(),
        bytes: 1,
        age: Duration::from_secs(1),
        keep: 1,
        flush_every: Duration::from_secs(1),
        perfetto: PerfettoConfig::default(),
    };
    let refused = PerfettoFilesSink::open(config).expect_err("the extension is wrong");
    assert!(refused.to_string().contains(".pftrace"), "{refused}");
}

/// Files of a host with a wrong clock, or from before the clock stepped back, are older than new ones.
#[tokio::test]
async fn files_of_later_dates_do_not_evict_current_files() {
    let one = BatchRing::size_of(&batch("batch 0"));
    let mut world = World::new(one, 3);
    for year in 2036..2039 {
        let name = format!("traces/run-{year}1121T074001Z.pftrace");
        fs::write(world.folder.path().join(name), "of later").expect("the folder can be written");
    }
    for number in 0..5 {
        let delivered = world.sink.deliver(&batch(&format!("batch {number}"))).await;
        assert_eq!(delivered, Delivery::Delivered);
        world.files.shared.flush().await;
        let contents = world.contents();
        assert_eq!(contents.len(), 3);
        assert!(
            contents[2].contains(&format!("batch {number}")),
            "it is on the disk"
        );
    }
    let contents = world.contents();
    for number in 2..5 {
        assert!(
            contents[number - 2].contains(&format!("batch {number}")),
            "the newest are kept"
        );
    }
}
