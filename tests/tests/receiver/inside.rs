//! A receiver in this process: the pipeline behind it ends in a sink that takes what it is let, and keeps it.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pulsetrain_pipeline::{
    Batch, BoxFuture, CancellationToken, Delivery, Pipeline, QueueConfig, Sink, SinkTaskConfig, SourceReport,
    run_sources,
};
use pulsetrain_receiver::{ReceiverConfig, ReceiverSource};
use tokio::{runtime::Runtime, sync::Notify, task::JoinHandle};

/// A receiver that runs until it is dropped.
pub(crate) struct Inside {
    pub(crate) address: SocketAddr,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
    kept: Kept,
    stop: CancellationToken,
    running: Option<JoinHandle<Vec<SourceReport>>>,
    // The last: what is above lives in it.
    runtime: Runtime,
    _pipeline: Pipeline,
}

/// A sink that takes nothing until it is let.
#[derive(Clone, Default)]
struct Kept {
    is_open: Arc<AtomicBool>,
    opened: Arc<Notify>,
    batches: Arc<Mutex<Vec<Batch>>>,
}

impl Sink for Kept {
    fn name(&self) -> &str {
        "kept"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(async move {
            while !self.is_open.load(Ordering::SeqCst) {
                self.opened.notified().await;
            }
            self.batches
                .lock()
                .expect("nobody panics with it")
                .push(batch.clone());
            Delivery::Delivered
        })
    }
}

impl Inside {
    /// A receiver whose sink takes everything.
    pub(crate) fn open(config: ReceiverConfig) -> Self {
        let inside = Self::closed(config, 1000);
        inside.let_in();
        inside
    }

    /// A receiver whose sink takes nothing yet, behind a queue of so many batches.
    pub(crate) fn closed(mut config: ReceiverConfig, max_batches: usize) -> Self {
        config.listen = vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()];
        let runtime = Runtime::new().expect("a runtime can be made");
        let _inside = runtime.enter();
        let kept = Kept::default();
        let queue = QueueConfig {
            max_batches,
            ..QueueConfig::default()
        };
        let config_of_pipeline = SinkTaskConfig {
            queue,
            ..SinkTaskConfig::default()
        };
        let (pipeline, ingress) = Pipeline::builder()
            .config(config_of_pipeline)
            .sink(Box::new(kept.clone()))
            .start();
        let said = Arc::new(Mutex::new(Vec::new()));
        let saying = Arc::clone(&said);
        let source = ReceiverSource::bind(config, move |what| {
            saying
                .lock()
                .expect("nobody panics with it")
                .push(what.to_string());
        })
        .expect("a free port can be listened on");
        let (address, stop) = (source.addresses()[0], CancellationToken::new());
        let stopped = stop.clone();
        let running =
            tokio::spawn(async move { run_sources(vec![Box::new(source)], &ingress, &stopped).await });
        drop(_inside);
        Self {
            address,
            said,
            kept,
            stop,
            running: Some(running),
            runtime,
            _pipeline: pipeline,
        }
    }

    /// Lets the sink take what waits.
    pub(crate) fn let_in(&self) {
        self.kept.is_open.store(true, Ordering::SeqCst);
        self.kept.opened.notify_one();
    }

    /// What the sink has.
    pub(crate) fn batches(&self) -> Vec<Batch> {
        self.kept.batches.lock().expect("nobody panics with it").clone()
    }

    /// Does something in its runtime.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Stops it, and says how it ended.
    pub(crate) fn stop(mut self) -> Vec<SourceReport> {
        self.stop.cancel();
        let running = self.running.take().expect("it is stopped once");
        let ended = self
            .runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(20), running).await });
        ended.expect("it ends in time").expect("it does not panic")
    }

    /// The answer to a POST, head and body.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &[u8]) -> String {
        request(self.address, &format!("POST {path}"), headers, body)
    }
}

/// The answer to a request over a connection of its own.
pub(crate) fn request(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("the receiver listens");
    let head = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    let whole = [head.as_bytes(), body].concat();
    // Who is refused for the length that it says may be cut off before it has sent it.
    let _ = stream.write_all(&whole);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
