//! The update stream: server-sent events for browsers.
//!
//! Twice a second each update is encoded once and sent to all browsers that subscribe to it. A slow browser
//! loses its stream and opens another one, which starts with a complete snapshot. It delays no other browser.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use pulsetrain_pipeline::{CancellationToken, clock};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::{PageStore, snapshot};

/// The interval of updates.
const TICK: Duration = Duration::from_millis(500);

/// The maximum number of runs that one browser watches.
pub(super) const MAX_WATCHED: usize = 16;

/// The capacity of a browser's queue: the updates of four ticks, each with the news and the changes of every
/// watched run.
const WAITING: usize = 4 * (1 + MAX_WATCHED);

/// The subscribed browsers.
#[derive(Debug)]
pub(super) struct Feed {
    limit: usize,
    clients: Mutex<Vec<Client>>,
}

/// One stream.
#[derive(Debug)]
struct Client {
    runs: Vec<String>,
    updates: Sender<Bytes>,
}

impl Feed {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            clients: Mutex::default(),
        }
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageStore {
    /// Opens a stream of updates with the changes of these runs. Returns `None` at the limit of streams.
    pub(super) fn subscribe(&self, runs: Vec<String>) -> Option<Receiver<Bytes>> {
        let (updates, receiver) = mpsc::channel(WAITING);
        // The browser requests a snapshot after this event. From then on it receives every update.
        let hello = format!(
            "retry: 1000\nevent: hello\ndata: {{\"instance\":\"{:x}\"}}\n\n",
            self.instance()
        );
        let _ = updates.try_send(hello.into());
        let mut history = self.history();
        let mut clients = self.feed().clients();
        clients.retain(|client| !client.updates.is_closed());
        if clients.len() >= self.feed().limit {
            return None;
        }
        for id in &runs {
            let is_watched = clients.iter().any(|client| client.runs.contains(id));
            if let Some(run) = history.runs.get_mut(id.as_str()).filter(|_| !is_watched) {
                snapshot::skip_to_now(run);
            }
        }
        clients.push(Client { runs, updates });
        Some(receiver)
    }

    /// Sends updates until `stop` is cancelled, then closes the streams.
    pub(super) async fn stream(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(TICK) => self.update(),
                () = stop.cancelled() => break,
            }
        }
        self.feed().clients().clear();
    }

    /// Sends the changes to all subscribers.
    pub(super) fn update(&self) {
        let watched: BTreeSet<String> = {
            let mut clients = self.feed().clients();
            clients.retain(|client| !client.updates.is_closed());
            if clients.is_empty() {
                return;
            }
            clients
                .iter()
                .flat_map(|client| client.runs.iter().cloned())
                .collect()
        };
        let sinks = self.sinks();
        let now_millis = clock::unix_now().as_millis() as i64;
        let (news, deltas) = {
            let history = &mut *self.history();
            let news = event("news", &snapshot::news(history, &sinks, now_millis));
            let mut deltas = BTreeMap::new();
            for id in watched {
                if let Some(run) = history.runs.get_mut(id.as_str()) {
                    let delta = snapshot::delta(run, &history.catalogue);
                    deltas.insert(id, event("delta", &delta));
                }
            }
            (news, deltas)
        };
        // A subscriber with a full queue loses its stream, because a gap would not be visible.
        self.feed().clients().retain(|client| {
            let deltas = client.runs.iter().filter_map(|id| deltas.get(id));
            let mut updates = std::iter::once(&news).chain(deltas);
            updates.all(|update| client.updates.try_send(update.clone()).is_ok())
        });
    }
}

/// Encodes a server-sent event.
fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}
