//! A trainer that prints the lines of a file on its standard error at a fixed rate, and exits with a given code.
//!
//! `fake-trainer FILE LINES_PER_SECOND EXIT_CODE`

use std::{
    env, fs,
    io::{self, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use tokio::time::Instant;

/// The number of lines between two checks of the clock.
const AT_ONCE: u32 = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let [_, file, pace, code] = arguments.as_slice() else {
        panic!("fake-trainer FILE LINES_PER_SECOND EXIT_CODE");
    };
    let text = fs::read_to_string(file).expect("the file can be read");
    print(&text, pace.parse().expect("the pace is a number")).expect("the lines can be printed");
    ExitCode::from(code.parse::<u8>().expect("the exit code is a number"))
}

fn print(text: &str, lines_per_second: u32) -> io::Result<()> {
    let mut out = io::stderr().lock();
    let start = Instant::now();
    for (number, line) in (0_u32..).zip(text.split_inclusive('\n')) {
        if number % AT_ONCE == 0 {
            let due = Duration::from_secs(1) * number / lines_per_second;
            thread::sleep(due.saturating_sub(start.elapsed()));
        }
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}
