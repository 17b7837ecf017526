//! An external merge sort in bounded memory: records that exceed the memory go to a temporary file in sorted runs, which
//! are merged when all records have been added.

use std::{cmp::Reverse, collections::BinaryHeap, io};

use super::file::{Extent, ExtentReader, MemoryBudget, SpillFile};

/// The sort key of a record; records with equal keys keep their order.
pub type Key = (u64, u64);

/// The overhead of a record in memory, in addition to its bytes.
const ENTRY_BYTES: usize = size_of::<Entry>();
/// The minimum and the maximum size of one read of a run.
const CHUNK: (usize, usize) = (4 << 10, 256 << 10);

/// Collects records in any order.
///
/// ```
/// # use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};
/// let mut sorter = Sorter::new(MemoryBudget { bytes: 1 << 20, folder: None });
/// sorter.push((2, 0), |out| out.extend_from_slice(b"second"))?;
/// sorter.push((1, 0), |out| out.extend_from_slice(b"first"))?;
/// let mut sorted = sorter.sorted()?;
/// assert_eq!(sorted.next_record()?, Some(&b"first"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Sorter {
    room: MemoryBudget,
    held: Held,
    spilled: Option<(SpillFile, Vec<Extent>)>,
    /// The smallest first component of a key that is not 0.
    earliest: Option<u64>,
}

/// Records in memory.
#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    start: usize,
    length: usize,
}

impl Sorter {
    /// Creates a sorter with this memory budget.
    pub fn new(room: MemoryBudget) -> Self {
        Self {
            room,
            ..Self::default()
        }
    }

    /// Adds a record, whose bytes `write` appends.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub fn push(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let Held { entries, bytes } = &mut self.held;
        let start = bytes.len();
        write(bytes);
        let length = bytes.len() - start;
        entries.push(Entry { key, start, length });
        if key.0 != 0 {
            self.earliest = Some(self.earliest.map_or(key.0, |earliest| earliest.min(key.0)));
        }
        if bytes.len() + entries.len() * ENTRY_BYTES >= self.room.bytes {
            self.spill()?;
        }
        Ok(())
    }

    /// Returns the smallest first component of a key that is not 0.
    pub fn earliest(&self) -> Option<u64> {
        self.earliest
    }

    /// Writes the records in memory as one sorted run.
    fn spill(&mut self) -> io::Result<()> {
        let (file, runs) = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert((self.room.spill()?, Vec::new())),
        };
        let start = file.len();
        self.held.sort();
        for entry in &self.held.entries {
            file.append(&entry.key.0.to_le_bytes())?;
            file.append(&entry.key.1.to_le_bytes())?;
            file.append(&(entry.length as u64).to_le_bytes())?;
            file.append(self.held.bytes_of(entry))?;
        }
        runs.push(Extent {
            start,
            end: file.len(),
        });
        self.held.entries.clear();
        self.held.bytes.clear();
        Ok(())
    }

    /// Returns all records in their order.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub fn sorted(mut self) -> io::Result<Sorted> {
        if self.spilled.is_some() {
            self.spill()?;
            self.held = Held::default();
        }
        match self.spilled {
            Some((file, runs)) => Ok(Sorted(Source::Merged(Merge::new(file, runs, self.room.bytes)?))),
            None => {
                self.held.sort();
                Ok(Sorted(Source::Held(self.held, 0)))
            }
        }
    }
}

impl Held {
    fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.key);
    }

    fn bytes_of(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.length]
    }
}

/// The sorted records, which are read one by one.
#[derive(Debug)]
pub struct Sorted(Source);

#[derive(Debug)]
enum Source {
    Held(Held, usize),
    Merged(Merge),
}

impl Sorted {
    /// Returns the key of the next record.
    pub fn next_key(&self) -> Option<Key> {
        match &self.0 {
            Source::Held(held, next) => held.entries.get(*next).map(|entry| entry.key),
            Source::Merged(merge) => merge.waiting.peek().map(|Reverse((key, _, _))| *key),
        }
    }

    /// Returns the number of bytes that were written to a file.
    pub fn spilled_bytes(&self) -> u64 {
        match &self.0 {
            Source::Held(..) => 0,
            Source::Merged(merge) => merge.file.len(),
        }
    }

    /// Returns the next record.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub fn next_record(&mut self) -> io::Result<Option<&[u8]>> {
        match &mut self.0 {
            Source::Held(held, next) => {
                let entry = held.entries.get(*next);
                *next += 1;
                Ok(entry.map(|entry| held.bytes_of(entry)))
            }
            Source::Merged(merge) => merge.next_record(),
        }
    }
}

/// The merge of the runs of a file.
#[derive(Debug)]
struct Merge {
    file: SpillFile,
    runs: Vec<ExtentReader>,
    /// The next record of each run: its key, its run, and its length.
    waiting: BinaryHeap<Reverse<(Key, usize, u64)>>,
    record: Vec<u8>,
}

impl Merge {
    fn new(mut file: SpillFile, runs: Vec<Extent>, room: usize) -> io::Result<Self> {
        file.flush()?;
        let chunk = (room / runs.len().max(1)).clamp(CHUNK.0, CHUNK.1);
        let mut merge = Self {
            file,
            runs: runs
                .into_iter()
                .map(|extent| ExtentReader::new(extent, chunk))
                .collect(),
            waiting: BinaryHeap::new(),
            record: Vec::new(),
        };
        (0..merge.runs.len()).try_for_each(|run| merge.read_head(run))?;
        Ok(merge)
    }

    fn read_head(&mut self, run: usize) -> io::Result<()> {
        let reader = &mut self.runs[run];
        if reader.is_at_end() {
            return Ok(());
        }
        let mut number = || reader.array(&self.file).map(u64::from_le_bytes);
        let head = ((number()?, number()?), run, number()?);
        self.waiting.push(Reverse(head));
        Ok(())
    }

    fn next_record(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(Reverse((_, run, length))) = self.waiting.pop() else {
            return Ok(None);
        };
        self.record.clear();
        self.runs[run].take(&self.file, length as usize, &mut self.record)?;
        self.read_head(run)?;
        Ok(Some(&self.record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(room: usize, keys: &[Key]) -> (Vec<(Key, u64)>, bool) {
        let mut sorter = Sorter::new(MemoryBudget {
            bytes: room,
            folder: None,
        });
        for (place, key) in keys.iter().enumerate() {
            let record = vec![place as u8; place];
            sorter.push(*key, |out| out.extend(&record)).unwrap();
        }
        let spilled = sorter.spilled.is_some();
        let mut sorted = sorter.sorted().unwrap();
        let mut all = Vec::new();
        while let Some(key) = sorted.next_key() {
            let record = sorted.next_record().unwrap().unwrap();
            assert!(record.iter().all(|byte| usize::from(*byte) == record.len()));
            all.push((key, record.len() as u64));
        }
        assert!(sorted.next_record().unwrap().is_none());
        (all, spilled)
    }

    #[test]
    fn sort_order_is_equal_in_memory_and_from_files() {
        let keys: Vec<Key> = (0..200).map(|n: u64| (n * 7 % 23, n * 5 % 3)).collect();
        let (held, spilled) = sorted(1 << 20, &keys);
        assert!(!spilled && held.is_sorted() && held.len() == keys.len());
        for room in [1, 100, 3000] {
            assert_eq!(sorted(room, &keys), (held.clone(), true), "{room}");
        }
    }

    #[test]
    fn empty_sorter_yields_no_records() {
        assert_eq!(sorted(10, &[]), (Vec::new(), false));
    }
}
