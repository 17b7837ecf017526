//! Appends records to segments, and syncs them.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
};

use super::{
    super::{
        Position, Record,
        counts::StoredCounts,
        segment::{self, Segment},
    },
    SegmentLog,
};
use crate::private_files;

impl SegmentLog {
    /// Appends a record and returns its position. After the call, the operating system has the record; after the next
    /// [`sync`](Self::sync), the disk has it.
    ///
    /// # Errors
    /// Returns an error if the file system rejects the record, for example because it is full; the log is unchanged.
    pub fn append(&mut self, record: &Record) -> io::Result<Position> {
        #[cfg(test)]
        self.panic_on_demand();
        let bytes = Record::stored_bytes(record.bytes.len());
        let position = self.place_for(bytes)?;
        let header = (record.header(position, self.end_totals))
            .filter(|_| segment::HEADER_BYTES + bytes <= segment::MAX_BYTES)
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "a record is longer than a segment"))?;
        let Some(file) = &mut self.writer else {
            return Err(ErrorKind::NotFound.into());
        };
        if let Err(error) = write_record(file, &header, &record.bytes) {
            // The next record must not follow an incomplete one.
            if file.set_len(position.offset).is_err() {
                self.seal();
            }
            return Err(error);
        }
        let records = record.counts();
        let counts = StoredCounts { records, bytes };
        if let Some(segment) = self.segments.back_mut() {
            segment.end += bytes;
            segment.unread += counts;
        }
        if self.unread.bytes == 0 {
            self.head_accepted = Some(record.accepted);
        }
        self.unread += counts;
        self.end_totals += records;
        self.is_dirty = true;
        Ok(position)
    }

    /// Makes the appended records survive a failure of the machine.
    ///
    /// # Errors
    /// Returns an error if the disk may not have all of the records. Later records go to another file.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.is_dirty {
            return Ok(());
        }
        let sealed = self.unsynced.iter().map(|(_, file)| file);
        let synced = (sealed.chain(&self.writer).try_for_each(File::sync_data))
            .and_then(|()| self.folder_file.sync_all());
        if synced.is_err() {
            // The operating system may have dropped the bytes that it could not write, and does not retry them.
            self.seal();
        }
        self.unsynced.clear();
        self.is_dirty = false;
        synced
    }

    /// Leaves the time of the write to the disk to the operating system.
    pub fn skip_sync(&mut self) {
        self.unsynced.clear();
        self.is_dirty = false;
    }

    /// Returns the position for a record of this size, in a new segment if the last one is full.
    fn place_for(&mut self, bytes: u64) -> io::Result<Position> {
        let is_full = |segment: &Segment| {
            segment.end > segment::HEADER_BYTES && segment.end.saturating_add(bytes) > self.segment_bytes
        };
        if self.segments.back().is_some_and(is_full) {
            self.seal();
        }
        if self.writer.is_none() {
            self.begin_segment()?;
        }
        let segment = self.segments.back().ok_or(ErrorKind::NotFound)?;
        Ok(Position {
            segment: segment.number,
            offset: segment.end,
        })
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        let number = self.next_number;
        let path = segment::path(&self.folder, number);
        // If a foreign file has this name, the next attempt uses another one.
        self.next_number = number.saturating_add(1);
        let mut file = private_files::file_options()
            .append(true)
            .create_new(true)
            .open(&path)?;
        if let Err(error) = file.write_all(&segment::file_header()) {
            // If the removal fails, a restart removes the file.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        self.writer = Some(file);
        self.segments.push_back(Segment::new(number));
        Ok(())
    }

    /// Seals the segment that records are appended to.
    pub(in crate::disk) fn seal(&mut self) {
        let last = self.segments.back().map(|segment| segment.number);
        self.unsynced
            .extend(last.zip(self.writer.take()).filter(|_| self.is_dirty));
    }
}

/// Writes both parts, in one system call if it accepts both.
fn write_record(file: &mut File, header: &[u8], payload: &[u8]) -> io::Result<()> {
    let parts = [io::IoSlice::new(header), io::IoSlice::new(payload)];
    let written = loop {
        match file.write_vectored(&parts) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            written => break written?,
        }
    };
    match written.checked_sub(header.len()) {
        Some(of_payload) => file.write_all(&payload[of_payload..]),
        None => {
            file.write_all(&header[written..])?;
            file.write_all(payload)
        }
    }
}
