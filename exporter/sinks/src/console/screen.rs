//! Positions the lines of the runs on the terminal, if there is one.

use std::io::{self, IsTerminal, Write};

use super::frame_writer::{DrawOutcome, FrameWriter};

/// The layout of lines on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleStyle {
    /// One line per run, redrawn in place: no other program writes to the terminal.
    InPlace,
    /// One line per step, appended: the trainer writes to the terminal too.
    Scrolling,
}

/// The terminal.
pub(super) struct Screen {
    style: ConsoleStyle,
    pen: Option<FrameWriter>,
    /// The number of frames dropped since the last report.
    missed: u64,
    lines: Vec<(String, String)>,
    drawn: usize,
    pending: Vec<u8>,
}

impl Screen {
    /// Returns the screen of the standard error.
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
            pen: out.map(FrameWriter::new),
            missed: 0,
            lines: Vec::new(),
            drawn: 0,
            pending: Vec::new(),
        }
    }

    /// Returns whether the output is visible on a terminal.
    pub(super) fn is_seen(&self) -> bool {
        self.pen.is_some()
    }

    /// Returns the number of frames dropped since the last call.
    pub(super) fn take_missed(&mut self) -> u64 {
        std::mem::take(&mut self.missed)
    }

    /// Stops drawing and returns the writer.
    pub(super) fn put_down(&mut self) -> Option<FrameWriter> {
        self.pen.take()
    }

    /// Draws the line of a run.
    pub(super) fn draw(&mut self, run: &str, line: &str) {
        if self.style == ConsoleStyle::Scrolling {
            // The cursor may be inside an unfinished progress bar.
            self.pending
                .extend_from_slice(format!("\r{line}\x1b[K\r\n").as_bytes());
            return;
        }
        match self.lines.iter_mut().find(|(known, _)| known == run) {
            Some((_, old)) => line.clone_into(old),
            None => self.lines.push((run.to_owned(), line.to_owned())),
        }
    }

    /// Queues the drawn frame. After the terminal is gone, nothing is written.
    pub(super) fn flush(&mut self) {
        let mut drawing = std::mem::take(&mut self.pending);
        let lines = if self.style == ConsoleStyle::InPlace {
            self.lines.len()
        } else {
            0
        };
        if lines > 0 {
            if self.drawn > 0 {
                drawing.extend_from_slice(format!("\x1b[{}A", self.drawn).as_bytes());
            }
            for (_, line) in &self.lines {
                drawing.extend_from_slice(format!("\r{line}\x1b[K\r\n").as_bytes());
            }
        }
        let Some(pen) = self.pen.as_ref().filter(|_| !drawing.is_empty()) else {
            return;
        };
        match pen.write(drawing) {
            DrawOutcome::Soon => self.drawn = lines,
            DrawOutcome::Never => self.missed += 1,
            DrawOutcome::Gone => self.pen = None,
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
        screen.put_down().unwrap().finish();
        String::from_utf8(terminal.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn each_run_is_redrawn_on_its_own_line() {
        let lines = [("a", "a 1"), ("b", "b 1"), ("a", "a 2")];
        assert_eq!(
            drawn(ConsoleStyle::InPlace, &lines),
            "\ra 1\x1b[K\r\n\x1b[1A\ra 1\x1b[K\r\n\rb 1\x1b[K\r\n\x1b[2A\ra 2\x1b[K\r\n\rb 1\x1b[K\r\n"
        );
    }

    #[test]
    fn scrolling_style_appends_every_line() {
        let lines = [("a", "a 1"), ("a", "a 2")];
        assert_eq!(
            drawn(ConsoleStyle::Scrolling, &lines),
            "\ra 1\x1b[K\r\n\ra 2\x1b[K\r\n"
        );
    }

    #[test]
    fn console_writes_nothing_without_a_terminal() {
        let mut screen = Screen::new(ConsoleStyle::InPlace, None);
        assert!(!screen.is_seen());
        screen.draw("a", "a 1");
        screen.flush();
        assert!(screen.pending.is_empty());
    }

    /// A terminal that blocks until it is released.
    struct Stopped(std::sync::mpsc::Receiver<()>, Terminal);

    impl Write for Stopped {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // An error means that it is released permanently.
            let _ = self.0.recv();
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn stopped_terminal_blocks_nothing_and_dropped_frames_are_counted() {
        let (go_on, stopped) = std::sync::mpsc::sync_channel(0);
        let terminal = Terminal::default();
        let mut screen = Screen::new(
            ConsoleStyle::InPlace,
            Some(Box::new(Stopped(stopped, terminal.clone()))),
        );
        for step in 0..1000 {
            screen.draw("a", &format!("a {step}"));
            screen.flush();
        }
        let missed = screen.take_missed();
        assert!((900..1000).contains(&missed), "{missed}");
        assert_eq!(screen.take_missed(), 0);
        drop(go_on);
        screen.put_down().unwrap().finish();
        let written = terminal.0.lock().unwrap().clone();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written.matches("\ra ").count() as u64, 1000 - missed);
    }
}
