//! Writes the lines of the runs on the terminal; where there is none, nothing.

use std::io::{self, IsTerminal, Write};

/// How lines stand on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleStyle {
    /// One line a run, written anew in its place: the terminal is ours alone.
    InPlace,
    /// One line a step, below one another: the terminal belongs to the trainer.
    Scrolling,
}

/// The terminal.
pub(super) struct Screen {
    style: ConsoleStyle,
    out: Option<Box<dyn Write + Send>>,
    lines: Vec<(String, String)>,
    drawn: usize,
    pending: Vec<u8>,
}

impl Screen {
    /// The terminal behind the standard error.
    pub(super) fn stderr(style: ConsoleStyle) -> Self {
        let stderr = io::stderr();
        let out = stderr
            .is_terminal()
            .then(|| Box::new(stderr) as Box<dyn Write + Send>);
        Self::new(style, out)
    }

    fn new(style: ConsoleStyle, out: Option<Box<dyn Write + Send>>) -> Self {
        Self {
            style,
            out,
            lines: Vec::new(),
            drawn: 0,
            pending: Vec::new(),
        }
    }

    /// Whether anybody sees what is drawn.
    pub(super) fn is_seen(&self) -> bool {
        self.out.is_some()
    }

    /// Draws the line of a run.
    pub(super) fn draw(&mut self, run: &str, line: &str) {
        if self.style == ConsoleStyle::Scrolling {
            // The cursor may stand behind a progress bar that is not at its end.
            self.pending
                .extend_from_slice(format!("\r{line}\x1b[K\r\n").as_bytes());
            return;
        }
        match self.lines.iter_mut().find(|(known, _)| known == run) {
            Some((_, old)) => line.clone_into(old),
            None => self.lines.push((run.to_owned(), line.to_owned())),
        }
    }

    /// Writes what was drawn, at once; a terminal that is gone is not written to again.
    pub(super) fn flush(&mut self) {
        if self.style == ConsoleStyle::InPlace && !self.lines.is_empty() {
            if self.drawn > 0 {
                self.pending
                    .extend_from_slice(format!("\x1b[{}A", self.drawn).as_bytes());
            }
            for (_, line) in &self.lines {
                self.pending
                    .extend_from_slice(format!("\r{line}\x1b[K\r\n").as_bytes());
            }
            self.drawn = self.lines.len();
        }
        let pending = std::mem::take(&mut self.pending);
        let Some(out) = self.out.as_mut().filter(|_| !pending.is_empty()) else {
            return;
        };
        if out.write_all(&pending).and_then(|()| out.flush()).is_err() {
            self.out = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<u8>>>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn drawn(style: ConsoleStyle, lines: &[(&str, &str)]) -> String {
        let terminal = Terminal::default();
        let mut screen = Screen::new(style, Some(Box::new(terminal.clone())));
        for (run, line) in lines {
            screen.draw(run, line);
            screen.flush();
        }
        String::from_utf8(terminal.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn every_run_keeps_one_line() {
        let lines = [("a", "a 1"), ("b", "b 1"), ("a", "a 2")];
        assert_eq!(
            drawn(ConsoleStyle::InPlace, &lines),
            "\ra 1\x1b[K\r\n\x1b[1A\ra 1\x1b[K\r\n\rb 1\x1b[K\r\n\x1b[2A\ra 2\x1b[K\r\n\rb 1\x1b[K\r\n"
        );
    }

    #[test]
    fn on_a_terminal_of_others_lines_only_follow_one_another() {
        let lines = [("a", "a 1"), ("a", "a 2")];
        assert_eq!(
            drawn(ConsoleStyle::Scrolling, &lines),
            "\ra 1\x1b[K\r\n\ra 2\x1b[K\r\n"
        );
    }

    #[test]
    fn without_a_terminal_nothing_is_written() {
        let mut screen = Screen::new(ConsoleStyle::InPlace, None);
        assert!(!screen.is_seen());
        screen.draw("a", "a 1");
        screen.flush();
        assert!(screen.pending.is_empty());
    }
}
