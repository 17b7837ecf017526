//! Copies what the trainer prints to where it would have gone, byte for byte and at once; what is to be parsed goes aside.
//!
//! The copy never waits for the parsing: what finds no room aside is counted and left out.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use rustix::event::{PollFd, PollFlags, poll};

use super::trainer::Stream;

/// The most chunks that wait to be parsed: 16 MiB of a trainer that prints in torrents.
const MAX_WAITING: usize = 256;
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes of one stream, in order.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The place of the stream among the streams.
    pub(super) stream: usize,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// How many bytes of the stream were left out before these.
    pub(super) missed: u64,
}

/// The copies that go on.
pub(super) struct Copies {
    /// What is to be parsed; ends when the last stream has ended.
    pub(super) chunks: Receiver<Chunk>,
    /// How many bytes were copied and not parsed.
    pub(super) unparsed: Arc<AtomicU64>,
    /// Is closed when the last stream has ended.
    pub(super) ended: Receiver<()>,
}

/// Copies each stream on a thread of its own.
pub(super) fn copy(streams: Vec<Stream>) -> Copies {
    let (aside, chunks) = mpsc::sync_channel(MAX_WAITING);
    let (alive, ended) = mpsc::sync_channel(1);
    let unparsed = Arc::new(AtomicU64::new(0));
    for (place, stream) in streams.into_iter().enumerate() {
        let (alive, aside) = (alive.clone(), Aside::new(place, aside.clone(), &unparsed));
        thread::spawn(move || {
            copy_stream(stream, aside);
            drop(alive);
        });
    }
    Copies {
        chunks,
        unparsed,
        ended,
    }
}

/// Passes on what is typed, for as long as the program lives.
pub(super) fn pass_keys(terminal: OwnedFd) -> io::Result<()> {
    let mut keys = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut terminal = File::from(terminal);
    thread::spawn(move || io::copy(&mut keys, &mut terminal));
    Ok(())
}

/// Until the stream ends, or nobody reads any more: then the trainer learns it as it would without us.
fn copy_stream(Stream { mut from, mut to }: Stream, mut aside: Aside) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => &buffer[..len],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A terminal ends with an error when the last program on it has ended.
            Err(_) => return,
        };
        if write_all(&mut to, bytes).is_err() {
            return;
        }
        aside.offer(bytes);
    }
}

/// Writes everything, also where another program has made the output one that does not wait.
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

/// The way aside of one stream.
struct Aside {
    stream: usize,
    queue: SyncSender<Chunk>,
    missed: u64,
    unparsed: Arc<AtomicU64>,
}

impl Aside {
    fn new(stream: usize, queue: SyncSender<Chunk>, unparsed: &Arc<AtomicU64>) -> Self {
        Self {
            stream,
            queue,
            missed: 0,
            unparsed: Arc::clone(unparsed),
        }
    }

    fn offer(&mut self, bytes: &[u8]) {
        let chunk = Chunk {
            stream: self.stream,
            bytes: bytes.to_vec(),
            missed: self.missed,
        };
        if self.queue.try_send(chunk).is_ok() {
            self.missed = 0;
        } else {
            self.missed += bytes.len() as u64;
            self.unparsed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_the_next_chunk_says_so() {
        let (queue, chunks) = mpsc::sync_channel(1);
        let unparsed = Arc::default();
        let mut aside = Aside::new(0, queue, &unparsed);
        for bytes in [b"one".as_slice(), b"three", b"four"] {
            aside.offer(bytes);
        }
        assert_eq!(unparsed.load(Ordering::Relaxed), 9);
        assert_eq!(chunks.recv().unwrap().bytes, b"one");
        aside.offer(b"five");
        let five = chunks.recv().unwrap();
        assert_eq!((five.bytes.as_slice(), five.missed), (b"five".as_slice(), 9));
    }
}
