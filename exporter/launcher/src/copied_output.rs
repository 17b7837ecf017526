//! The copy of the output on the side of the exporter: chunks for the parser, and the end of the trainer.
//!
//! A thread for each stream reads its pipe at once, so that the pipe has room. Bytes that find no room in the channel to
//! the parser are counted and skipped.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, FromRawFd, OwnedFd, RawFd},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::Duration,
};

use rustix::fs::{FileType, fstat};

use crate::frames::{Frame, FrameReader};

/// The limits on the output that waits for the parser: in bytes for a trainer with a high volume, and in chunks for one
/// with many small writes.
const MAX_WAITING_BYTES: usize = 16 << 20;
const MAX_WAITING: usize = 64 << 10;

/// The stack of a thread that reads.
const STACK_BYTES: usize = 256 << 10;

/// Bytes of one stream, in order.
#[derive(Debug)]
pub struct Chunk {
    /// The index of the stream.
    pub stream: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The number of bytes of the stream that were skipped before this chunk.
    pub missed: u64,
}

/// The receiver of the chunks to parse; ends when the last stream has ended.
pub struct Chunks {
    queue: Receiver<Chunk>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl Chunks {
    /// Waits for the next chunk, but no longer than `within`.
    ///
    /// # Errors
    /// No chunk arrived in time, or all streams have ended.
    pub fn next(&self, within: Duration) -> Result<Chunk, RecvTimeoutError> {
        let chunk = self.queue.recv_timeout(within)?;
        self.waiting_bytes.fetch_sub(chunk.bytes.len(), Ordering::Relaxed);
        Ok(chunk)
    }
}

/// The copy of the output of a trainer.
pub struct CopiedOutput {
    /// The chunks to parse.
    pub chunks: Chunks,
    /// The number of bytes that were copied and not parsed.
    pub unparsed: Arc<AtomicU64>,
    /// The end of the trainer.
    pub end: TrainerEnd,
}

/// Waits for the end of a trainer.
pub struct TrainerEnd {
    control: File,
    /// The channel that is closed when the last stream has ended.
    streams: Receiver<()>,
}

impl CopiedOutput {
    /// Starts to read the pipes of a [`Handover`](crate::Handover). The standard input is the connection to the keeper.
    ///
    /// # Errors
    /// A descriptor is not a pipe of this process, or the limit on threads is reached.
    pub fn receive(handover: &str) -> io::Result<Self> {
        let (sender, chunks) = sender(MAX_WAITING);
        let (alive, streams) = mpsc::sync_channel(1);
        let unparsed = Arc::new(AtomicU64::new(0));
        let pipes: Result<Vec<File>, io::Error> = handover
            .split(',')
            .filter(|text| !text.is_empty())
            .map(pipe)
            .collect();
        for (place, pipe) in pipes?.into_iter().enumerate() {
            let mut sender = ChunkSender {
                stream: place,
                unparsed: Arc::clone(&unparsed),
                ..sender.clone()
            };
            let alive = alive.clone();
            let read = move || {
                let mut frames = FrameReader::new(pipe);
                while let Some(frame) = frames.next() {
                    sender.offer(frame);
                }
                drop(alive);
            };
            thread::Builder::new().stack_size(STACK_BYTES).spawn(read)?;
        }
        let control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self {
            chunks,
            unparsed,
            end: TrainerEnd { control, streams },
        })
    }
}

impl TrainerEnd {
    /// Waits until the trainer has ended, and returns its exit code. If the keeper was killed, waits for the end of the
    /// output instead, and returns `None`.
    pub fn wait(&mut self) -> Option<u8> {
        let code = self.next();
        if code.is_none() {
            while self.streams.recv().is_ok() {}
        }
        code
    }

    /// Waits until the keeper exits before the exporter; returns `false` if it was killed.
    pub fn wait_for_abort(&mut self) -> bool {
        self.next().is_some()
    }

    fn next(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.control.read_exact(&mut byte).ok().map(|()| byte[0])
    }
}

/// Takes the pipe with this descriptor.
fn pipe(descriptor: &str) -> io::Result<File> {
    let descriptor: RawFd = descriptor.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    if descriptor <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the keeper passed the descriptor to this process for this purpose, and each is named once. `fstat` rejects a
    // number that is not open.
    let pipe = unsafe { OwnedFd::from_raw_fd(descriptor) };
    match fstat(&pipe).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Fifo) => Ok(pipe.into()),
        _ => {
            // It may belong to another part of this process.
            std::mem::forget(pipe);
            Err(io::ErrorKind::InvalidInput.into())
        }
    }
}

/// Sends the chunks of one stream to the parser.
#[derive(Clone)]
struct ChunkSender {
    stream: usize,
    queue: SyncSender<Chunk>,
    waiting_bytes: Arc<AtomicUsize>,
    missed: u64,
    unparsed: Arc<AtomicU64>,
}

/// Returns a bounded channel for `max_waiting` chunks.
fn sender(max_waiting: usize) -> (ChunkSender, Chunks) {
    let (sender, queue) = mpsc::sync_channel(max_waiting);
    let waiting_bytes = Arc::<AtomicUsize>::default();
    let sender = ChunkSender {
        stream: 0,
        queue: sender,
        waiting_bytes: Arc::clone(&waiting_bytes),
        missed: 0,
        unparsed: Arc::default(),
    };
    (sender, Chunks { queue, waiting_bytes })
}

impl ChunkSender {
    fn offer(&mut self, frame: Frame) {
        let len = frame.bytes.len();
        self.missed += frame.dropped;
        self.unparsed.fetch_add(frame.dropped, Ordering::Relaxed);
        let chunk = Chunk {
            stream: self.stream,
            bytes: frame.bytes,
            missed: self.missed,
        };
        let waiting = self.waiting_bytes.fetch_add(len, Ordering::Relaxed);
        if waiting + len <= MAX_WAITING_BYTES && self.queue.try_send(chunk).is_ok() {
            self.missed = 0;
        } else {
            self.waiting_bytes.fetch_sub(len, Ordering::Relaxed);
            self.missed += len as u64;
            self.unparsed.fetch_add(len as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn frame(bytes: &[u8]) -> Frame {
        Frame {
            dropped: 0,
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn dropped_bytes_are_counted_in_the_next_chunk() {
        let (mut sender, chunks) = sender(1);
        for bytes in [b"one".as_slice(), b"three", b"four"] {
            sender.offer(frame(bytes));
        }
        assert_eq!(sender.unparsed.load(Ordering::Relaxed), 9);
        assert_eq!(chunks.next(SOON).unwrap().bytes, b"one");
        sender.offer(Frame {
            dropped: 5,
            ..frame(b"five")
        });
        let five = chunks.next(SOON).unwrap();
        assert_eq!((five.bytes.as_slice(), five.missed), (b"five".as_slice(), 14));
        assert_eq!(sender.unparsed.load(Ordering::Relaxed), 14);
    }

    #[test]
    fn many_short_chunks_are_queued_but_few_long_ones() {
        let (mut sender, chunks) = sender(MAX_WAITING);
        let long = vec![0; MAX_WAITING_BYTES / 4];
        (0..10_000).for_each(|_| sender.offer(frame(b"a line")));
        (0..5).for_each(|_| sender.offer(frame(&long)));
        assert_eq!(sender.unparsed.load(Ordering::Relaxed), 2 * long.len() as u64);
        while chunks.next(Duration::ZERO).is_ok() {}
        sender.offer(frame(&long));
        assert_eq!(chunks.next(SOON).unwrap().missed, 2 * long.len() as u64);
    }

    #[test]
    fn descriptor_that_is_no_pipe_is_refused() {
        for descriptor in ["", "x", "1", "-1", "99999"] {
            assert!(pipe(descriptor).is_err(), "{descriptor}");
        }
    }
}
