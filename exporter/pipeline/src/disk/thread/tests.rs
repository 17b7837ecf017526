//! Panics of the thread. The effects of other disk failures are tested in `tests/pipeline/disk.rs`.

use std::{
    sync::{Mutex, atomic::Ordering},
    thread::yield_now,
};

use pulsetrain_otlp::Signal;
use tokio::time::timeout;

use super::*;
use crate::{
    Batch, SinkCounts, SinkRoute, SinkTaskConfig,
    disk::{DiskQueue, queue::RecoveredQueue},
    queue::queue,
};

const TIMEOUT: Duration = Duration::from_secs(20);

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = clock::later(clock::now(), TIMEOUT);
    while !is_so() {
        assert!(clock::now() < deadline, "never: {what}");
        yield_now();
    }
}

#[tokio::test]
async fn panic_of_the_disk_thread_is_a_disk_failure_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = DiskQueueConfig::new(folder.path().join("queue"));
    let (log, _) = SegmentLog::open(&config.folder, config.segment_bytes()).unwrap();
    let panics = Arc::clone(&log.panics);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&notices);
    let report = move |notice: &Notice| seen.lock().unwrap().push(notice.to_string());
    let count = |words: &str| {
        let notices = notices.lock().unwrap();
        notices.iter().filter(|notice| notice.contains(words)).count()
    };
    let disk = DiskQueue::start(log, RecoveredQueue::default(), config, Box::new(report)).unwrap();
    let account = Account::new("sink");
    let config = SinkTaskConfig {
        disk: Some(disk.clone()),
        ..SinkTaskConfig::default()
    };
    let (sender, mut receiver) = queue(&config, SinkRoute::ALL, Arc::clone(&account));
    let failure = |counts: SinkCounts| counts.any_failure().cloned();

    until("the thread has begun", || account.counts().on_disk.is_some());
    panics.store(true, Ordering::Relaxed);
    let held = sender.send_reserved(Batch::new(Signal::Logs, 3, vec![0x0a, 0]), None);
    until("the panic is reported", || {
        count("panicked: as the test demands") == 1
    });
    until("the counts show it", || {
        failure(account.counts()).is_some_and(|failure| failure.problem.what.contains("panicked"))
    });
    assert!(sender.try_reserve(1, 10).is_none(), "it has no room");
    let counts = account.counts();
    assert_eq!(
        (counts.queued, counts.dropped_items()),
        (3, 0),
        "it is kept in memory"
    );
    panics.store(false, Ordering::Relaxed);
    let deadline = clock::later(clock::now(), TIMEOUT);
    let held = timeout(TIMEOUT, held.expect("it is confirmed").wait(deadline)).await;
    held.expect("it works again").expect("it is on the disk");
    until("the end is reported", || count("works again") == 1);
    assert_eq!(failure(account.counts()), None);

    panics.store(true, Ordering::Relaxed);
    let mut read = Box::pin(receiver.next());
    assert!(timeout(Duration::ZERO, &mut read).await.is_err());
    until("the panic of the read is reported", || {
        count("panicked: as the test demands") == 2
    });
    panics.store(false, Ordering::Relaxed);
    let read = timeout(TIMEOUT, read).await.expect("it works again");
    read.expect("it is the batch").delivered_except(0, "");
    let counts = account.counts();
    assert_eq!(
        (counts.accepted, counts.delivered, counts.dropped_items()),
        (3, 3, 0)
    );
}

#[tokio::test]
async fn queue_without_its_disk_thread_drops_batches_and_counts_them() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = DiskQueueConfig::new(folder.path().join("queue"));
    let disk = DiskQueue::open(config, |_| {}).unwrap();
    let account = Account::new("sink");
    let config = SinkTaskConfig {
        disk: Some(disk.clone()),
        ..SinkTaskConfig::default()
    };
    let (sender, mut receiver) = queue(&config, SinkRoute::ALL, Arc::clone(&account));
    assert!(disk.release(&account));
    assert!(disk.ended(clock::later(clock::now(), TIMEOUT)).await);
    sender.try_send_or_drop(Batch::new(Signal::Logs, 3, vec![0x0a, 0]));
    assert_eq!(account.counts().dropped_for(DropReason::Closed), 3);
    assert!(
        timeout(TIMEOUT, receiver.next())
            .await
            .expect("it ends")
            .is_none()
    );
}
