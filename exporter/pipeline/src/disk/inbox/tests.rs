//! Tests of the work that wakes the thread of a disk queue, and of the work that waits for the next pass.

use std::thread::{self, JoinHandle, yield_now};

use super::*;
use crate::clock;

const POSITION: Position = Position {
    segment: 1,
    offset: 0,
};

/// Starts a thread that waits for work, and returns as soon as the thread sleeps.
fn sleeping(inbox: &Arc<Inbox>, io_state: IoState) -> JoinHandle<Work> {
    let of_thread = Arc::clone(inbox);
    let thread = thread::spawn(move || of_thread.wait(None, io_state));
    let deadline = clock::later(clock::now(), Duration::from_secs(20));
    while !inbox.work().is_asleep {
        assert!(clock::now() < deadline, "the thread never sleeps");
        yield_now();
    }
    thread
}

fn request(is_closed: bool) -> (Request, oneshot::Receiver<Read>) {
    let (answer, answered) = oneshot::channel();
    let request = Request {
        answer,
        is_closed: Arc::new(AtomicBool::new(is_closed)),
        account: Account::new("sink"),
    };
    (request, answered)
}

#[test]
fn request_on_an_empty_log_waits_for_the_next_pass() {
    let inbox = Arc::<Inbox>::default();
    let thread = sleeping(&inbox, IoState::default());
    inbox.request(request(false).0);
    assert!(inbox.work().is_asleep);
    inbox.wake();
    assert!(thread.join().unwrap().request.is_some());
}

#[test]
fn request_wakes_the_thread_when_there_is_a_record_or_the_queue_is_closed() {
    let has_unread = IoState {
        has_unread: true,
        ..IoState::default()
    };
    for (io_state, is_closed) in [(has_unread, false), (IoState::default(), true)] {
        let inbox = Arc::<Inbox>::default();
        let thread = sleeping(&inbox, io_state);
        inbox.request(request(is_closed).0);
        assert!(thread.join().unwrap().request.is_some());
    }
}

#[test]
fn request_that_arrives_during_a_pass_is_checked_against_the_state_after_it() {
    let inbox = Inbox::default();
    inbox.request(request(false).0);
    let left = IoState {
        has_unread: true,
        ..IoState::default()
    };
    assert!(inbox.wait(None, left).request.is_some());
}

#[test]
fn finished_records_wait_while_the_cursor_will_be_saved() {
    let inbox = Arc::<Inbox>::default();
    let will_save_cursor = IoState {
        will_save_cursor: true,
        ..IoState::default()
    };
    let thread = sleeping(&inbox, will_save_cursor);
    inbox.finish(POSITION);
    inbox.finish(POSITION);
    assert!(inbox.work().is_asleep);
    inbox.wake();
    assert_eq!(thread.join().unwrap().finished.len(), 2);

    inbox.finish(POSITION);
    let finished = inbox.wait(None, IoState::default()).finished;
    assert_eq!(finished.len(), 1, "the cursor is not going to be saved");
    let thread = sleeping(&inbox, IoState::default());
    inbox.finish(POSITION);
    assert_eq!(thread.join().unwrap().finished.len(), 1);
}
