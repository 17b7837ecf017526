//! A receiver in this process: the sink of its pipeline accepts and keeps as much as the test permits.

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

/// A running receiver, which stops when it is dropped.
pub(crate) struct Inside {
    pub(crate) address: SocketAddr,
    pub(crate) response: Arc<Mutex<Vec<String>>>,
    kept: Kept,
    stop: CancellationToken,
    running: Option<JoinHandle<Vec<SourceReport>>>,
    // The last field: the fields above live in this runtime.
    runtime: Runtime,
    _pipeline: Pipeline,
}

/// A sink that accepts nothing until it is opened.
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
    /// Creates a receiver whose sink accepts everything.
    pub(crate) fn open(config: ReceiverConfig) -> Self {
        let inside = Self::closed(config, 1000);
        inside.let_in();
        inside
    }

    /// Creates a receiver whose sink accepts nothing yet, with a queue for this number of batches.
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
        let response = Arc::new(Mutex::new(Vec::new()));
        let saying = Arc::clone(&response);
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
            response,
            kept,
            stop,
            running: Some(running),
            runtime,
            _pipeline: pipeline,
        }
    }

    /// Opens the sink, which then accepts the waiting batches.
    pub(crate) fn let_in(&self) {
        self.kept.is_open.store(true, Ordering::SeqCst);
        self.kept.opened.notify_one();
    }

    /// Returns the batches that the sink has.
    pub(crate) fn batches(&self) -> Vec<Batch> {
        self.kept.batches.lock().expect("nobody panics with it").clone()
    }

    /// Runs a future in its runtime.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Stops the receiver, and returns its result.
    pub(crate) fn stop(mut self) -> Vec<SourceReport> {
        self.stop.cancel();
        let running = self.running.take().expect("it is stopped once");
        let ended = self
            .runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(20), running).await });
        ended.expect("it ends in time").expect("it does not panic")
    }

    /// Returns the head and the body of the response to a POST.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &[u8]) -> String {
        request(self.address, &format!("POST {path}"), headers, body)
    }
}

/// Returns the response to a request over a new connection.
pub(crate) fn request(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("the receiver listens");
    let head = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    let complete = [head.as_bytes(), body].concat();
    // A client that is rejected for its Content-Length may be disconnected before it has sent the body.
    let _ = stream.write_all(&complete);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
