//! An open file to which only complete records are appended.

use std::{
    fs::File,
    io::{self, IoSlice, Seek, SeekFrom, Write},
    os::{fd::AsFd, unix::fs::MetadataExt},
};

/// An output and the number of its complete records.
pub(super) struct Output<F = File> {
    file: F,
    /// Whether it was opened here and can be truncated. A redirected stdout belongs to another program.
    own: bool,
    length: u64,
    records: u64,
    /// The error that left an incomplete record. After it, nothing more may be written.
    torn: Option<io::ErrorKind>,
}

/// The complete records and their bytes.
pub(super) struct WrittenCounts {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// The operations of an output's file beyond `Write`.
pub(super) trait Truncate: Write {
    /// Removes the last `written` bytes, which were written here.
    fn truncate_by(&mut self, written: u64) -> io::Result<()>;

    /// Returns the current length, or `None` for a pipe or a device.
    fn length(&self) -> io::Result<Option<u64>>;

    /// Returns whether the file no longer has a name, so that no reader can open it.
    fn is_removed(&self) -> io::Result<bool>;
}

impl Truncate for File {
    fn truncate_by(&mut self, written: u64) -> io::Result<()> {
        // The position is that of the last byte, even if another program truncated the file before.
        let end = self.stream_position()?;
        let length = end
            .checked_sub(written)
            .ok_or_else(|| io::Error::other("another program truncated the file within a record"))?;
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }

    fn length(&self) -> io::Result<Option<u64>> {
        let metadata = self.metadata()?;
        Ok(metadata.is_file().then_some(metadata.len()))
    }

    fn is_removed(&self) -> io::Result<bool> {
        let metadata = self.metadata()?;
        Ok(metadata.is_file() && metadata.nlink() == 0)
    }
}

impl Output {
    /// Returns stdout without the line buffer of `std`, which would keep the beginning of a failed record.
    pub(super) fn stdout() -> io::Result<Self> {
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            own: false,
            ..Self::file(stdout.into())
        })
    }

    /// Returns another handle of the file, or `None` for a pipe or a device, which cannot be synced.
    pub(super) fn handle(&self) -> io::Result<Option<File>> {
        match self.file.metadata()?.is_file() {
            true => self.file.try_clone().map(Some),
            false => Ok(None),
        }
    }

    /// Returns the file.
    pub(super) fn into_file(self) -> File {
        self.file
    }
}

impl<F: Truncate> Output<F> {
    /// Returns an empty file of this process.
    pub(super) fn file(file: F) -> Self {
        Self::file_from(file, 0)
    }

    /// Returns a file of this process with complete records up to `length`, where writing continues.
    pub(super) fn file_from(file: F, length: u64) -> Self {
        Self {
            file,
            own: true,
            length,
            records: 0,
            torn: None,
        }
    }

    /// Returns the number of records written here, and the size of the file.
    pub(super) fn written(&self) -> WrittenCounts {
        WrittenCounts {
            records: self.records,
            bytes: self.length,
        }
    }

    /// Returns the new length if another program changed it, such as a rotation that copies and truncates.
    pub(super) fn notice_change(&mut self) -> io::Result<Option<u64>> {
        let length = self.file.length()?.filter(|_| self.own);
        let changed = length.filter(|length| *length != self.length);
        self.length = changed.unwrap_or(self.length);
        Ok(changed)
    }

    /// Returns whether the file has been removed.
    pub(super) fn is_removed(&self) -> io::Result<bool> {
        Ok(self.own && self.file.is_removed()?)
    }

    /// Returns whether an incomplete record could not be removed, so that nothing more can be written.
    pub(super) fn is_torn(&self) -> bool {
        self.torn.is_some()
    }

    /// Writes one record in two parts, or removes its written bytes after an error.
    pub(super) fn append(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        if let Some(kind) = self.torn {
            return Err(kind.into());
        }
        let mut written = 0;
        let result = write_all(&mut self.file, head, body, &mut written);
        match &result {
            Ok(()) => {
                self.length += written;
                self.records += 1;
            }
            Err(error) if written > 0 && !self.undo_last(written) => self.torn = Some(error.kind()),
            Err(_) => {}
        }
        result
    }

    fn undo_last(&mut self, written: u64) -> bool {
        self.own && self.file.truncate_by(written).is_ok()
    }
}

/// `write_all` for two slices, which also returns the number of bytes written.
fn write_all(file: &mut impl Write, mut head: &[u8], mut body: &[u8], written: &mut u64) -> io::Result<()> {
    while !head.is_empty() || !body.is_empty() {
        let count = match file.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        *written += count as u64;
        let of_head = count.min(head.len());
        head = &head[of_head..];
        body = &body[count - of_head..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with limited space that accepts a few bytes at a time.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        seekable: bool,
    }

    impl Write for Disk {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            let count = buffer.len().min(3).min(self.room - self.bytes.len());
            if count == 0 && !buffer.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&buffer[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Truncate for Disk {
        fn truncate_by(&mut self, written: u64) -> io::Result<()> {
            match self.seekable {
                true => self
                    .bytes
                    .truncate(self.bytes.len() - usize::try_from(written).unwrap()),
                false => return Err(io::ErrorKind::NotSeekable.into()),
            }
            Ok(())
        }

        fn length(&self) -> io::Result<Option<u64>> {
            Ok(self.seekable.then_some(self.bytes.len() as u64))
        }

        fn is_removed(&self) -> io::Result<bool> {
            Ok(false)
        }
    }

    fn output(room: usize, seekable: bool) -> Output<Disk> {
        Output::file(Disk {
            bytes: Vec::new(),
            room,
            seekable,
        })
    }

    #[test]
    fn partial_record_is_truncated_and_a_smaller_one_can_follow() {
        let mut output = output(20, true);
        output.append(b"head", b"-first\n").unwrap();
        let error = output.append(b"head", b"-too-long\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(output.file.bytes, b"head-first\n");
        output.append(b"", b"next\n").unwrap();
        assert_eq!(output.file.bytes, b"head-first\nnext\n");
        assert_eq!(output.written().records, 2);
    }

    #[test]
    fn no_record_is_appended_after_a_partial_one_that_cannot_be_removed() {
        let mut output = output(8, false);
        output.append(b"", b"one\n").unwrap();
        output.append(b"", b"too-long\n").unwrap_err();
        output.file.room = 100;
        let error = output.append(b"", b"two\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(output.file.bytes, b"one\ntoo-");
        assert_eq!(output.written().records, 1);
    }

    #[test]
    fn pipe_stays_usable_after_a_failure_before_the_first_byte() {
        let mut output = output(0, false);
        output.append(b"", b"one\n").unwrap_err();
        output.file.room = 100;
        output.append(b"", b"two\n").unwrap();
        assert_eq!(output.file.bytes, b"two\n");
    }

    #[test]
    fn next_record_overwrites_the_truncated_bytes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"complete, torn").unwrap();
        file.truncate_by(6).unwrap();
        file.write_all(b"!").unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "complete!");
    }
}
