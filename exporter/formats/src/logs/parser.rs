//! What a parser of a log is: given the bytes of one input in windows, it records what they say.
//!
//! Most of them need no more than [`LogParser::parse`]: a follower that is killed goes on where their records end. The rest is for
//! those whose files do not simply grow.

use serde_json::Value as Json;

use super::{KeyUse, Pace};
use pulsetrain_record::{Place, Recorder};

/// What a parser is given: unread bytes, and where they stand in the input.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The place of the first of them.
    pub start: Place,
    /// Whether no byte will follow them.
    pub is_last: bool,
    /// The time of what says no time of its own.
    pub time: ReadTime,
}

/// When bytes were read, for what says no time of its own and for dates without a year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTime {
    /// Nanoseconds since 1970: the moment of reading; of a file that was finished before, `--start-time` or its last change.
    pub unix_nanos: u64,
    /// Whether the bytes were read as they were written, so that the time is that of the line and not only near it.
    pub is_live: bool,
}

impl Window<'_> {
    /// The place of the byte at `offset` of the window.
    pub fn place(&self, offset: usize) -> Place {
        self.start.advanced_by(&self.bytes[..offset])
    }
}

/// Parses the bytes of one input, in windows.
pub trait LogParser: Send {
    /// Records what is complete in the window, and says how many of its bytes are done with. The next window begins there.
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize;

    /// How many records of a finished input have a time that was invented, because the input has none.
    fn invented_times(&self) -> u64 {
        0
    }

    /// Gives the records without a time those of `pace`. It is asked before it reads anything.
    fn set_pace(&mut self, _pace: Pace) {}

    /// Returns what became of the keys so far, for formats that read unknown logs.
    fn key_uses(&mut self) -> Vec<KeyUse> {
        Vec::new()
    }

    /// The bytes up to the next window are lost, so it may begin within a record, which was counted already.
    fn lose_sync(&mut self);

    /// Whether the input is of lines. Those of one that is not are not counted: it would take a part of the time that reading
    /// takes.
    fn has_lines(&self) -> bool {
        true
    }

    /// Where the oldest record stands that is read but not recorded, because what follows may come before it in time. After a
    /// restart it is read again.
    fn held_from(&self) -> Option<Place> {
        None
    }

    /// Records what is held: the input has said nothing for long, or what was read of it was recorded before.
    fn release(&mut self, _recorder: &mut Recorder<'_>) {}

    /// Whether each new record is written over the end of the file, from the end of the last one on.
    fn rewrites_end(&self) -> bool {
        false
    }

    /// Whether the file is written anew as a whole, with all that it said before: whenever it has changed it is read from its
    /// beginning, and the parser tells what is new.
    fn is_written_anew(&self) -> bool {
        false
    }

    /// Whether a file that begins so is still of the run that was read; nothing where too little of it is there. Asked where it is
    /// written anew.
    fn is_of_run(&self, _head: &[u8]) -> Option<bool> {
        Some(true)
    }

    /// What was told, for a parser that reads on after a restart, where the file is written anew.
    fn told(&self) -> Option<Json> {
        None
    }

    /// Whether several files of a run say the same of it, as checkpoints do: what one has told no other tells.
    fn shares_told(&self) -> bool {
        false
    }

    /// Takes over what was told before a restart, or of another file of the run, and says whether that makes sense. It is asked
    /// before it reads anything.
    fn remember(&mut self, _told: &Json) -> bool {
        false
    }
}
