//! The messages of a log of no known logger.

use super::{Line, LineFormat, LineParser, Unwrapper, Wrapping};
use crate::logs::{LogParser, ReadTime, Window};
use pulsetrain_record::{Recorder, Run, SourcePosition};

/// Calls `take` with the message of each line of a log of no known logger.
pub(in crate::logs) fn each_message(log: &[u8], take: impl FnMut(&str) + Send) {
    let mut parser = LineParser {
        unwrapper: Unwrapper::new(Wrapping::All),
        ..LineParser::new(Messages(take))
    };
    let window = Window {
        bytes: log,
        start: SourcePosition::default(),
        is_last: true,
        time: ReadTime::default(),
    };
    parser.parse(window, &mut Recorder::new(Run::default(), |_| {}));
}

/// Passes on the messages of lines.
struct Messages<T>(T);

impl<T: FnMut(&str) + Send> LineFormat for Messages<T> {
    fn is_complete(_: &str) -> bool {
        true
    }

    fn line(&mut self, line: &Line<'_>, _: &mut Recorder<'_>) -> bool {
        self.0(line.text);
        false
    }
}
