//! Copies the output of the trainer to its original destination, byte for byte and without delay, and passes a second
//! copy to the parser.
//!
//! The forwarding never waits for the parser: bytes that find no room in the channel are counted and skipped.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

use super::{job::Job, terminal::is_in_foreground, trainer::Stream};

/// The limits on the output that waits for the parser: in bytes for a trainer with a high volume, and in chunks for one
/// with many small writes.
const MAX_WAITING_BYTES: usize = 16 << 20;
const MAX_WAITING: usize = 64 << 10;
const CHUNK_BYTES: usize = 64 << 10;

/// The interval at which a background process checks whether it is in the foreground again.
const IN_BACKGROUND: Duration = Duration::from_millis(200);

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

/// The handle of the running copies.
pub struct RunningCopies {
    /// The chunks to parse.
    pub chunks: Chunks,
    /// The number of bytes that were copied and not parsed.
    pub unparsed: Arc<AtomicU64>,
    /// The channel that is closed when the last stream has ended.
    pub ended: Receiver<()>,
}

/// Copies each stream on its own thread.
pub(crate) fn copy(streams: Vec<Stream>) -> RunningCopies {
    let (sender, chunks) = sender(MAX_WAITING);
    let (alive, ended) = mpsc::sync_channel(1);
    let unparsed = Arc::new(AtomicU64::new(0));
    for (place, stream) in streams.into_iter().enumerate() {
        let sender = ChunkSender {
            stream: place,
            unparsed: Arc::clone(&unparsed),
            ..sender.clone()
        };
        let alive = alive.clone();
        thread::spawn(move || {
            copy_stream(stream, sender);
            drop(alive);
        });
    }
    RunningCopies {
        chunks,
        unparsed,
        ended,
    }
}

/// Forwards typed keys for the life of the program; the suspend key is also passed to `job`.
pub(crate) fn pass_keys(terminal: OwnedFd, job: Job) -> io::Result<()> {
    let mut keys = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut terminal = File::from(terminal);
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Some(typed) = next_keys(&mut keys, &mut buffer) {
            if write_all(&mut terminal, typed).is_err() {
                return;
            }
            job.notice(typed);
        }
    });
    Ok(())
}

/// Returns the next typed keys, or `None` if the terminal is gone. Does not read in the background: the keys belong to
/// other jobs, and a read would stop the process.
fn next_keys<'a>(keys: &mut File, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    loop {
        let ready = poll(&mut [PollFd::new(keys, PollFlags::IN)], None);
        if ready == Err(Errno::INTR) {
            continue;
        }
        if !is_in_foreground() {
            thread::sleep(IN_BACKGROUND);
            continue;
        }
        match keys.read(buffer) {
            Ok(0) => return None,
            Ok(len) => return Some(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Copies until the stream ends, or the destination is closed. The trainer then notices the closed output as it would
/// without `run`.
fn copy_stream(Stream { mut from, mut to }: Stream, mut sender: ChunkSender) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => &buffer[..len],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A terminal returns an error when its last program has ended.
            Err(_) => return,
        };
        if write_all(&mut to, bytes).is_err() {
            return;
        }
        sender.offer(bytes);
    }
}

/// Writes all bytes, even if another program has made the output non-blocking.
fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = &bytes[len..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(to, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
    fn offer(&mut self, bytes: &[u8]) {
        let chunk = Chunk {
            stream: self.stream,
            bytes: bytes.to_vec(),
            missed: self.missed,
        };
        let waiting = self.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        if waiting + bytes.len() <= MAX_WAITING_BYTES && self.queue.try_send(chunk).is_ok() {
            self.missed = 0;
        } else {
            self.waiting_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.missed += bytes.len() as u64;
            self.unparsed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn dropped_bytes_are_counted_in_the_next_chunk() {
        let (mut sender, chunks) = sender(1);
        for bytes in [b"one".as_slice(), b"three", b"four"] {
            sender.offer(bytes);
        }
        assert_eq!(sender.unparsed.load(Ordering::Relaxed), 9);
        assert_eq!(chunks.next(SOON).unwrap().bytes, b"one");
        sender.offer(b"five");
        let five = chunks.next(SOON).unwrap();
        assert_eq!((five.bytes.as_slice(), five.missed), (b"five".as_slice(), 9));
    }

    #[test]
    fn many_short_chunks_are_queued_but_few_long_ones() {
        let (mut sender, chunks) = sender(MAX_WAITING);
        let long = vec![0; MAX_WAITING_BYTES / 4];
        (0..10_000).for_each(|_| sender.offer(b"a line"));
        (0..5).for_each(|_| sender.offer(&long));
        assert_eq!(sender.unparsed.load(Ordering::Relaxed), 2 * long.len() as u64);
        while chunks.next(Duration::ZERO).is_ok() {}
        sender.offer(&long);
        assert_eq!(chunks.next(SOON).unwrap().missed, 2 * long.len() as u64);
    }
}
