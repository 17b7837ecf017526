//! The standard streams of a command, without characters of logs, file names and servers that control a terminal.
//!
//! Everything that a command prints passes here, but for the colors of `show --text` and the lines of the console, which are made
//! of printable parts, and for telemetry that a file sink writes to the standard output.

use std::{
    env,
    fmt::Write as _,
    io::{self, Write},
    process,
};

use pulsetrain_pipeline::{is_printable, printable};
use serde::Serialize;

use crate::failure::Failure;

/// A stream that replaces the characters of [`printable`] in what is written, except for line feeds. Each write must be text.
pub(crate) struct Printer<W>(W);

/// Returns the standard error.
pub(crate) fn stderr() -> Printer<io::StderrLock<'static>> {
    Printer(io::stderr().lock())
}

/// Returns the standard output.
pub(crate) fn stdout() -> Printer<io::StdoutLock<'static>> {
    Printer(io::stdout().lock())
}

/// Prints to the standard output. A closed pipe (`| head`) is not a failure.
///
/// # Errors
/// Returns an error if the standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_to(&mut stdout(), text)
}

/// Like [`print()`], for a text of printable parts with colors of its own.
///
/// # Errors
/// Returns an error if the standard output cannot be written.
pub(crate) fn print_colored(text: &str) -> Result<(), Failure> {
    print_to(&mut io::stdout(), text)
}

/// Ends the program with an error of the command line, or with the help. It is not colored if an argument controls a terminal:
/// the error repeats arguments.
pub(crate) fn exit_with(error: &clap::Error) -> ! {
    let mut arguments = env::args_os();
    if arguments.all(|argument| argument.to_string_lossy().chars().all(is_printable)) {
        error.exit();
    }
    // An error of the standard error cannot be reported.
    let _ = stderr().write_all(error.render().to_string().as_bytes());
    process::exit(error.exit_code());
}

fn print_to(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Returns a value as one line of JSON, in which the characters of [`printable`] are escaped.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("invariant: the keys are texts");
    let mut line = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if is_printable(character) {
            line.push(character);
        } else {
            // Writing to a string cannot fail. All of these characters have four hexadecimal digits at most.
            let _ = write!(line, "\\u{:04x}", u32::from(character));
        }
    }
    line + "\n"
}

impl<W: Write> Write for Printer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<_> = text.split('\n').map(printable).collect();
        self.0.write_all(lines.join("\n").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_text_keeps_its_lines_and_controls_no_terminal() {
        let mut printer = Printer(Vec::new());
        let hostile = "c\r\nd\u{9b}2J";
        writeln!(printer, "a\x1b]0;b\x07 {hostile}").unwrap();
        assert_eq!(printer.0, b"a ]0;b  c \nd 2J\n");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let line = json_line(&["a\x1b\u{9b}31m\u{202e}\n"]);
        assert_eq!(line, "[\"a\\u001b\\u009b31m\\u202e\\n\"]\n");
        assert_eq!(
            serde_json::from_str::<[String; 1]>(&line).unwrap(),
            ["a\x1b\u{9b}31m\u{202e}\n"]
        );
    }
}
