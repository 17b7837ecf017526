//! A Perfetto trace whose leading tracks can be inspected before it is converted.

use std::{collections::VecDeque, io::Read};

use pulsetrain_perfetto::{Item, ReadCounts, ReadError, TraceReader, Track};

/// The limit for items that are held while the leading tracks are inspected.
const LOOKAHEAD: usize = 1 << 14;

/// The items of a Perfetto trace, in the order of the file.
#[derive(Debug)]
pub struct PerfettoTrace<R: Read> {
    reader: TraceReader<R>,
    /// Items that were inspected and not yet returned.
    leading: VecDeque<Result<Item, ReadError>>,
}

impl<R: Read> PerfettoTrace<R> {
    /// Opens a trace.
    pub fn new(input: R) -> Self {
        Self {
            reader: TraceReader::new(input),
            leading: VecDeque::new(),
        }
    }

    /// Returns the first result of `find` for the tracks before the first event or log line, or `None`.
    ///
    /// The iterator still returns every item. At most 16,384 items are inspected.
    pub fn find_leading_track<T>(&mut self, mut find: impl FnMut(&Track) -> Option<T>) -> Option<T> {
        while self.leading.len() < LOOKAHEAD {
            let item = self.reader.next()?;
            let found = match &item {
                Ok(Item::Track(track)) => find(track),
                _ => None,
            };
            let is_content = matches!(item, Ok(Item::Event(_) | Item::Log(_)));
            self.leading.push_back(item);
            if found.is_some() || is_content {
                return found;
            }
        }
        None
    }

    /// Returns the counts of packets that were read and skipped so far.
    pub fn counts(&self) -> ReadCounts {
        self.reader.counts()
    }
}

impl<R: Read> Iterator for PerfettoTrace<R> {
    type Item = Result<Item, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.leading.pop_front().or_else(|| self.reader.next())
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_perfetto::{Process, TraceWriter};

    use super::*;

    #[test]
    fn inspected_items_are_returned_again_and_inspection_ends_at_the_first_event() {
        let mut writer = TraceWriter::new(Vec::new());
        let mut track = |pid, name| {
            let process = Process {
                pid,
                name,
                labels: &[],
                rank: 0,
            };
            let process = writer.process(&process).expect("memory takes it");
            let lane = writer.lane(process, name, 0).expect("memory takes it");
            writer.begin(lane, 5, b"slice", |_| {}).expect("memory takes it");
        };
        track(1, "early");
        track(2, "late");
        let bytes = writer.finish().expect("memory takes it");
        let names = |trace: &mut PerfettoTrace<&[u8]>| {
            let mut names = Vec::new();
            let found = trace.find_leading_track(|track| {
                names.push(track.name.clone());
                None::<()>
            });
            assert_eq!(found, None);
            names
        };
        let all = PerfettoTrace::new(&bytes[..]).count();
        let mut trace = PerfettoTrace::new(&bytes[..]);
        let inspected = names(&mut trace);
        assert!(inspected.contains(&"early".to_owned()), "{inspected:?}");
        assert!(!inspected.contains(&"late".to_owned()), "{inspected:?}");
        assert_eq!(trace.count(), all);
    }
}
