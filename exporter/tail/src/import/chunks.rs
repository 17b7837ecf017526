//! Reads an input on a separate thread, so that a silent pipe does not block the end of an import.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use pulsetrain_formats::{HEAD_BYTES, HEADER_TIMEOUT, ReadTime, detect, without_byte_order_mark};
use pulsetrain_otlp::{UnixNanos, frames::inflated};
use pulsetrain_pipeline::{CancellationToken, clock};

use super::utf16::Utf8Reader;
use crate::{RunOptions, TailError};

/// The chunks of an input.
pub(crate) struct ChunkReader {
    name: String,
    stop: CancellationToken,
    received: mpsc::Receiver<io::Result<Vec<u8>>>,
    pub(crate) offset: u64,
    pub(crate) error: Option<TailError>,
    /// The time near which the input was written, or `None` for now.
    known_time: Option<UnixNanos>,
}

/// Counts the bytes that are read, before decompression, for a progress bar.
pub(crate) struct CountingReader {
    pub(crate) opened: Box<dyn Read + Send>,
    pub(crate) bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.opened.read(buffer)?;
        self.bytes_read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

/// The result of a read.
pub(crate) enum Next {
    /// More bytes.
    Bytes(Vec<u8>),
    /// No bytes at the moment.
    Idle,
    /// The end of the input, an error or cancellation.
    End,
}

const CHUNK_BYTES: usize = 1 << 20;

/// The time without bytes after which an input is idle, and recorded data is flushed.
const IDLE_AFTER: Duration = Duration::from_millis(50);

impl ChunkReader {
    pub(crate) fn new(
        name: String,
        input: CountingReader,
        known_time: Option<UnixNanos>,
        stop: CancellationToken,
    ) -> Self {
        let (sender, received) = mpsc::sync_channel(2);
        thread::spawn(move || {
            let mut input = Utf8Reader::new(inflated(input));
            loop {
                let chunk = read_chunk(&mut input).transpose();
                let is_over = !matches!(chunk, Some(Ok(_)));
                if chunk.is_some_and(|chunk| sender.send(chunk).is_err()) || is_over {
                    return;
                }
            }
        });
        Self {
            name,
            stop,
            received,
            offset: 0,
            error: None,
            known_time,
        }
    }

    /// Reads the first [`HEAD_BYTES`]. The head is shorter if the input ends, or pauses after it has identified the run.
    pub(crate) fn head(&mut self, options: &RunOptions) -> Vec<u8> {
        let mut head = Vec::new();
        let mut last_read = clock::now();
        while head.len() < HEAD_BYTES {
            match self.next() {
                Next::Bytes(chunk) => {
                    head.extend(chunk);
                    last_read = clock::now();
                }
                Next::Idle if identifies_run(options, &head, last_read.elapsed()) => break,
                Next::Idle => {}
                Next::End => break,
            }
        }
        head
    }

    pub(crate) fn read_time(&self) -> ReadTime {
        ReadTime {
            unix_nanos: self.known_time.unwrap_or_else(clock::unix_nanos),
            is_live: self.known_time.is_none(),
        }
    }

    pub(crate) fn next(&mut self) -> Next {
        if self.stop.is_cancelled() {
            return Next::End;
        }
        match self.received.recv_timeout(IDLE_AFTER) {
            Ok(Ok(chunk)) => {
                self.offset += chunk.len() as u64;
                Next::Bytes(chunk)
            }
            Ok(Err(source)) => {
                self.error = Some(TailError::Read {
                    name: self.name.clone(),
                    offset: self.offset,
                    source,
                });
                Next::End
            }
            Err(RecvTimeoutError::Timeout) => Next::Idle,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }
}

/// Returns whether a head that is followed by silence identifies the run.
fn identifies_run(options: &RunOptions, head: &[u8], silent_for: Duration) -> bool {
    let recognised = || detect("", head).ok().map(|(format, _)| format);
    let format = options.format.or_else(recognised);
    let identity = format.map(|format| format.run_header(without_byte_order_mark(head), &options.mapping));
    identity.is_some_and(|identity| {
        identity.is_complete() || (!identity.first_record.is_empty() && silent_for >= HEADER_TIMEOUT)
    })
}

/// Reads one chunk. Returns `None` at the end.
fn read_chunk(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(len) => {
                chunk.truncate(len);
                return Ok(Some(chunk));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
