//! The flight recorder: keeps the last minutes in memory and writes them as a trace on request.

use std::{
    fs,
    future::ready,
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, MemoryUse, Sink, clock};
use pulsetrain_to_perfetto::{PerfettoConfig, PerfettoError, PerfettoSummary};

use super::{
    batch_ring::{BatchRing, before},
    replace::replace,
    trace_series,
};
use crate::{SinkError, file_series::FileSeries};

/// The limits of a recorder.
#[derive(Clone, Debug, PartialEq)]
pub struct FlightRecorderConfig {
    /// The maximum age since arrival.
    pub last: Duration,
    /// The maximum size in bytes. Beyond it the oldest batches are evicted.
    pub bytes: usize,
    /// The path of saved traces, which ends in `.pftrace`. Each file has its creation time before the
    /// extension.
    pub path: PathBuf,
    /// The settings of the conversion.
    pub perfetto: PerfettoConfig,
}

/// A recorder. Clones share its buffer.
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    config: Arc<FlightRecorderConfig>,
    series: FileSeries,
    ring: Arc<Mutex<BatchRing>>,
    memory: MemoryUse,
    /// Limits conversions to one at a time, so that their memory does not add up.
    drawing: Arc<Mutex<()>>,
}

/// A trace of the buffered batches.
#[derive(Debug)]
pub struct TraceSnapshot {
    /// The Perfetto trace.
    pub trace: Vec<u8>,
    /// The contents of the trace.
    pub summary: PerfettoSummary,
}

/// The sink that fills a recorder.
#[derive(Debug)]
pub struct FlightRecorderSink(FlightRecorder);

impl FlightRecorder {
    /// Returns an empty recorder.
    ///
    /// # Errors
    ///
    /// A path that does not end in `.pftrace`.
    pub fn new(config: FlightRecorderConfig) -> Result<Self, SinkError> {
        Ok(Self {
            series: trace_series(&config.path)?,
            config: Arc::new(config),
            ring: Arc::default(),
            memory: MemoryUse::default(),
            drawing: Arc::default(),
        })
    }

    /// Returns the sink that fills it.
    pub fn sink(&self) -> FlightRecorderSink {
        FlightRecorderSink(self.clone())
    }

    /// Converts the batches of the `last` duration, or all, on this thread, which it blocks. Concurrent calls wait for each other.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn record(&self, last: Option<Duration>) -> Result<TraceSnapshot, PerfettoError> {
        let _one_at_a_time = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let last = last.map_or(self.config.last, |last| last.min(self.config.last));
        let snapshot = self.lock().since(before(now, last));
        let (trace, summary) = snapshot.draw(self.config.perfetto.clone(), Vec::new())?;
        Ok(TraceSnapshot { trace, summary })
    }

    /// Converts all batches into a new file and returns its path.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub async fn save(&self) -> Result<PathBuf, PerfettoError> {
        let recorder = self.clone();
        let saved = tokio::task::spawn_blocking(move || {
            let recording = recorder.record(None)?;
            fs::create_dir_all(recorder.series.folder())?;
            let path = recorder.series.next(clock::unix_now());
            replace(&path, |file| file.write_all(&recording.trace))?;
            Ok(path)
        });
        saved.await.map_err(io::Error::other)?
    }

    /// Returns the limits of the recorder.
    pub fn config(&self) -> &FlightRecorderConfig {
        &self.config
    }

    /// Returns the memory that the batches use.
    pub fn memory(&self) -> MemoryUse {
        self.memory.clone()
    }

    fn push(&self, batch: &Batch) {
        let now = clock::now();
        let mut ring = self.lock();
        ring.push(batch, now);
        let evicted = ring.forget(self.config.bytes, before(now, self.config.last));
        self.memory.record(ring.bytes(), self.memory.evicted() + evicted);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BatchRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for FlightRecorderSink {
    fn name(&self) -> &str {
        "flight recorder"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        self.0.push(batch);
        Box::pin(ready(Delivery::Delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::one_span::batch;
    use pulsetrain_otlp::Signal;

    fn recorder(bytes: usize) -> FlightRecorder {
        FlightRecorder::new(FlightRecorderConfig {
            last: Duration::from_secs(60),
            bytes,
            path: "recorded.pftrace".into(),
            perfetto: PerfettoConfig::default(),
        })
        .expect("the path is one of a trace")
    }

    async fn shown(recorder: &FlightRecorder, last: Option<Duration>) -> String {
        let recording = recorder.record(last).expect("memory can be written");
        String::from_utf8_lossy(&recording.trace).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn snapshot_has_the_batches_of_the_last_duration() {
        let recorder = recorder(1 << 20);
        let mut sink = recorder.sink();
        for name in ["first", "second", "third"] {
            assert_eq!(sink.deliver(&batch(name)).await, Delivery::Delivered);
            tokio::time::advance(Duration::from_secs(25)).await;
        }
        let all = shown(&recorder, None).await;
        assert!(!all.contains("first") && all.contains("second") && all.contains("third"));
        let last = shown(&recorder, Some(Duration::from_secs(30))).await;
        assert!(!last.contains("second") && last.contains("third"));
    }

    #[tokio::test]
    async fn recorder_stays_within_its_byte_limit() {
        let one = BatchRing::size_of(&batch("batch 00"));
        let recorder = recorder(3 * one);
        let mut sink = recorder.sink();
        for number in 0..50 {
            sink.deliver(&batch(&format!("batch {number:02}"))).await;
            assert!(recorder.lock().bytes() <= 3 * one);
        }
        let all = shown(&recorder, None).await;
        assert!(all.contains("batch 49") && all.contains("batch 47") && !all.contains("batch 46"));
    }

    #[tokio::test]
    async fn malformed_batch_does_not_break_the_trace() {
        let recorder = recorder(1 << 20);
        let mut sink = recorder.sink();
        sink.deliver(&Batch::new(Signal::Traces, 1, b"\xff\xff\xff".to_vec()))
            .await;
        sink.deliver(&batch("good")).await;
        assert!(shown(&recorder, None).await.contains("good"));
    }
}
