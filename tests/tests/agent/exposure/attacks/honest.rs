//! A client that sends a span ten times a second, and retries if the receiver asks for it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use pulsetrain_tests::http::request;

pub(super) const SPAN: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001","name":"honest"}]}]}]}"#;

const PAUSE: Duration = Duration::from_millis(100);

/// A running client.
pub(super) struct Honest {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<Duration>>>,
}

#[derive(Default)]
struct Shared {
    served: AtomicUsize,
    ends: AtomicBool,
}

impl Honest {
    pub(super) fn start(port: u16) -> Self {
        let shared = Arc::new(Shared::default());
        let sharing = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !sharing.ends.load(Ordering::Relaxed) {
                longest = longest.max(post(port, "/v1/traces", SPAN.as_bytes()));
                sharing.served.fetch_add(1, Ordering::Relaxed);
                thread::sleep(PAUSE);
            }
            longest
        });
        Self {
            shared,
            thread: Mutex::new(Some(thread)),
        }
    }

    /// Returns the number of its accepted spans.
    pub(super) fn served(&self) -> usize {
        self.shared.served.load(Ordering::Relaxed)
    }

    /// Stops the client. Returns the longest time from the first attempt to the acceptance of a span.
    pub(super) fn end(&self) -> Duration {
        self.shared.ends.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().expect("nobody panics with it").take();
        let ended = thread.expect("it is ended once").join();
        ended.expect("an honest client does not panic")
    }
}

/// Posts OTLP/JSON until it is accepted. Returns the elapsed time.
#[expect(clippy::disallowed_methods, reason = "a client measures real time")]
pub(super) fn post(port: u16, path: &str, body: &[u8]) -> Duration {
    let begun = Instant::now();
    loop {
        match request(port, "POST", path, "Content-Type: application/json\r\n", body) {
            Some((200, _)) => return begun.elapsed(),
            Some((503, _)) | None => thread::sleep(PAUSE),
            Some((status, body)) => panic!("{status}: {}", String::from_utf8_lossy(&body)),
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "not served for a minute"
        );
    }
}
