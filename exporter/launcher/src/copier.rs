//! Copies a stream of the trainer to its original destination, byte for byte and without delay, and offers a second copy
//! to the exporter. Each stream has a process of its own.
//!
//! The trainer does not notice a destination that fails: the copier continues to read, keeps a limited number of bytes,
//! and retries them. Only a destination without a reader ends the stream, as it would without `run`.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
    process::{Pid, setpgid},
};

use crate::{frames::FrameWriter, process::fork};

const CHUNK_BYTES: usize = 64 << 10;

/// The limit on the bytes that wait for a destination that fails.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// The interval between two attempts to write to a destination that failed.
const RETRY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The size of the pipe to the exporter: the limit for processes without privileges.
const EXPORTER_PIPE_BYTES: usize = 1 << 20;

/// An output stream of the trainer.
pub(crate) struct Stream {
    /// The end to read from.
    pub(crate) from: File,
    /// The destination.
    pub(crate) to: File,
}

/// The bytes that a destination did not accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLoss {
    /// Their number.
    pub bytes: u64,
    /// The last error of the destination (`errno`).
    pub error: i32,
}

/// The keeper's side of a copier.
pub(crate) struct Copier {
    pid: Pid,
    stream: Stream,
    /// The end of the exporter's pipe that the copier writes.
    to_exporter: Option<OwnedFd>,
    loss: File,
}

impl Copier {
    /// Starts the copier of a stream, with the end that it writes of the pipe to the exporter.
    ///
    /// # Errors
    /// The limit on processes or descriptors is reached.
    pub(crate) fn start(stream: Stream, to_exporter: Option<OwnedFd>) -> io::Result<Self> {
        let (loss, loss_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut copier = Self {
            pid: Pid::INIT,
            stream,
            to_exporter,
            loss: loss.into(),
        };
        copier.pid = copier.fork(&loss_end)?;
        Ok(copier)
    }

    /// Starts another process in the place of one that was killed. The bytes that it had read and not written are lost.
    ///
    /// # Errors
    /// The limit on processes or descriptors is reached.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        let (loss, loss_end) = pipe_with(PipeFlags::CLOEXEC)?;
        self.loss = loss.into();
        self.pid = self.fork(&loss_end)?;
        Ok(())
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the loss that the copier reported at its end.
    pub(crate) fn loss(&self) -> OutputLoss {
        let mut report = [0; 12];
        if (&self.loss).read_exact(&mut report).is_err() {
            return OutputLoss::default();
        }
        let [a, b, c, d, bytes @ ..] = report;
        OutputLoss {
            bytes: u64::from_ne_bytes(bytes),
            error: i32::from_ne_bytes([a, b, c, d]),
        }
    }

    fn fork(&self, loss: &OwnedFd) -> io::Result<Pid> {
        let (from, to) = (&self.stream.from, &self.stream.to);
        let mut kept = vec![from.as_fd(), to.as_fd(), loss.as_fd()];
        kept.extend(self.to_exporter.as_ref().map(AsFd::as_fd));
        fork(&kept, || {
            // Not a session: Linux schedules each session apart (`sched_autogroup`), so that under load every line would wait
            // for other programs. It fails only after an `exec`.
            let _ = setpgid(None, None);
            let exporter = self.to_exporter.as_ref().and_then(|end| end.try_clone().ok());
            let lost = copy(from, to, FrameWriter::new(exporter.map(File::from)));
            let report = [&lost.error.to_ne_bytes()[..], &lost.bytes.to_ne_bytes()].concat();
            // Without a keeper, nobody reads the report.
            let _ = rustix::io::write(loss, &report);
        })
    }
}

/// Returns a pipe to the exporter, whose second end is written without waiting.
///
/// # Errors
/// The limit on descriptors is reached.
pub(crate) fn exporter_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // A smaller pipe is full sooner.
    let _ = fcntl_setpipe_size(&write, EXPORTER_PIPE_BYTES);
    fcntl_setfl(&write, fcntl_getfl(&write)? | OFlags::NONBLOCK)?;
    Ok((read, write))
}

/// Copies until the stream ends, or the destination has no reader.
fn copy<W: Write>(mut from: &File, to: &File, mut exporter: FrameWriter<W>) -> OutputLoss {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut destination = Destination::new(to);
    loop {
        if destination.is_waiting() && !is_ready(from) {
            if destination.retry().is_err() {
                break;
            }
            continue;
        }
        let bytes = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => &buffer[..len],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(from, PollFlags::IN)], None);
                continue;
            }
            // A terminal returns an error when its last program has ended.
            Err(_) => break,
        };
        let written = destination.write(bytes);
        exporter.offer(bytes);
        if written.is_err() {
            break;
        }
    }
    exporter.finish();
    destination.finish()
}

/// Waits for input, but no longer than until the next attempt to write.
fn is_ready(from: &File) -> bool {
    poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&RETRY)).is_ok_and(|ready| ready > 0)
}

/// The destination of a stream, with the bytes that it has not accepted yet.
struct Destination<'a> {
    to: &'a File,
    waiting: Vec<u8>,
    loss: OutputLoss,
}

/// The destination has no reader.
struct Closed;

impl<'a> Destination<'a> {
    fn new(to: &'a File) -> Self {
        Self {
            to,
            waiting: Vec::new(),
            loss: OutputLoss::default(),
        }
    }

    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes the bytes after those that wait; keeps what the destination does not accept, and counts what finds no room.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.retry()?;
        let written = if self.is_waiting() {
            0
        } else {
            self.write_now(bytes)?
        };
        let rest = &bytes[written..];
        let kept = rest.len().min(MAX_WAITING_BYTES - self.waiting.len());
        self.waiting.extend_from_slice(&rest[..kept]);
        self.loss.bytes += (rest.len() - kept) as u64;
        Ok(())
    }

    /// Writes the bytes that wait.
    fn retry(&mut self) -> Result<(), Closed> {
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.write_now(&waiting)?;
        self.waiting = waiting;
        self.waiting.drain(..written);
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
        Ok(())
    }

    /// Writes until an error, and returns the number of bytes that were written. Waits if another program has made the
    /// destination non-blocking.
    fn write_now(&mut self, bytes: &[u8]) -> Result<usize, Closed> {
        let mut written = 0;
        while written < bytes.len() {
            match self.to.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(len) => written += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(self.to, PollFlags::OUT)], None);
                }
                Err(error) => {
                    self.loss.error = error.raw_os_error().unwrap_or_default();
                    if [Errno::PIPE, Errno::CONNRESET, Errno::BADF]
                        .map(Errno::raw_os_error)
                        .contains(&self.loss.error)
                    {
                        return Err(Closed);
                    }
                    break;
                }
            }
        }
        Ok(written)
    }

    /// Tries once more, and returns the loss.
    fn finish(mut self) -> OutputLoss {
        let is_open = self.retry().is_ok();
        if is_open {
            self.loss.bytes += self.waiting.len() as u64;
        }
        self.loss
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn failing_destination_is_read_on_and_its_loss_counted() {
        let (from, mut input) = io::pipe().unwrap();
        let from = File::from(OwnedFd::from(from));
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let copied = std::thread::spawn(move || copy(&from, &full, FrameWriter::new(None::<File>)));
        // More than the pipe and the waiting bytes together.
        input.write_all(&vec![b'x'; 3 * MAX_WAITING_BYTES]).unwrap();
        drop(input);
        let expected = OutputLoss {
            bytes: 3 * MAX_WAITING_BYTES as u64,
            error: Errno::NOSPC.raw_os_error(),
        };
        assert_eq!(copied.join().unwrap(), expected);
    }

    #[test]
    fn destination_without_a_reader_ends_the_stream() {
        let (from, mut input) = io::pipe().unwrap();
        let (reader, to) = io::pipe().unwrap();
        drop(reader);
        let (from, to) = (File::from(OwnedFd::from(from)), File::from(OwnedFd::from(to)));
        input.write_all(b"a line").unwrap();
        let lost = copy(&from, &to, FrameWriter::new(None::<File>));
        assert_eq!(lost.bytes, 0);
    }
}
