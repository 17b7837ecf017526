//! Measures the overhead of `pulsetrain run`: the wall time of a trainer alone and under `run`, alternating, with a file
//! and with a dead endpoint.
//!
//! `cargo bench -p pulsetrain-agent --bench run` prints one table. The trainer is this program itself: it prints the lines of
//! a MaxText log, either 20,000 a second for three seconds or as fast as it can. Each row is the median of its rounds.

#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::{
    env,
    error::Error,
    fs,
    io::{self, Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const ROUNDS: usize = 5;
const LINES_PER_SECOND: u32 = 20_000;
const PACED_LINES: usize = 60_000;
const UNPACED_LINES: usize = 2_000_000;
const SAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/corpus/maxtext/demo.stderr"
);

fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(pace) = env::var("BENCH_TRAINER") {
        return train(pace == "paced");
    }
    let mut out = io::stdout().lock();
    writeln!(out, "$ cargo bench -p pulsetrain-agent --bench run\n")?;
    writeln!(
        out,
        "{:<38} {:<16} {:>10} {:>10}",
        "trainer", "how", "wall s", "to bare"
    )?;
    for (pace, what) in [
        ("paced", "20,000 lines/s for 3 s"),
        ("unpaced", "2 million lines, unpaced"),
    ] {
        let walls = rounds(pace)?;
        for (how, wall) in HOW.iter().zip(&walls) {
            let ratio = wall.as_secs_f64() / walls[0].as_secs_f64();
            writeln!(
                out,
                "{what:<38} {:<16} {:>10.3} {ratio:>10.4}",
                how.0,
                wall.as_secs_f64()
            )?;
        }
    }
    Ok(())
}

/// The variants, with the arguments of `run` if the trainer runs under it.
const HOW: [(&str, &[&str]); 3] = [
    ("bare", &[]),
    ("run, to a file", &["--to", "/dev/shm/pulsetrain-bench.jsonl"]),
    (
        "run, endpoint dead",
        &["--to", "http://127.0.0.1:1", "--drain", "0"],
    ),
];

/// Returns the median wall time of each variant. The variants alternate, so that other load affects all of them.
fn rounds(pace: &str) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut walls = vec![Vec::new(); HOW.len()];
    for _ in 0..ROUNDS {
        for (walls, (_, arguments)) in walls.iter_mut().zip(HOW) {
            walls.push(wall(pace, arguments)?);
        }
    }
    let median = |mut walls: Vec<Duration>| {
        walls.sort();
        walls[walls.len() / 2]
    };
    Ok(walls.into_iter().map(median).collect())
}

/// Returns the time from the start to the end of the output, which is read without delay.
fn wall(pace: &str, arguments: &[&str]) -> Result<Duration, Box<dyn Error>> {
    let trainer = env::current_exe()?;
    let mut command = if arguments.is_empty() {
        Command::new(&trainer)
    } else {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pulsetrain"));
        command
            .args(["run", "--format", "maxtext"])
            .args(arguments)
            .arg("--")
            .arg(&trainer);
        command
    };
    command
        .env("BENCH_TRAINER", pace)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut buffer = vec![0; 1 << 20];
    let mut printed = child.stdout.take().ok_or("no output")?;
    while printed.read(&mut buffer)? > 0 {}
    let status = child.wait()?;
    let wall = start.elapsed();
    if status.success() {
        Ok(wall)
    } else {
        Err(format!("{command:?} ended with {status}").into())
    }
}

/// Prints the lines of the sample repeatedly.
fn train(is_paced: bool) -> Result<(), Box<dyn Error>> {
    let sample = fs::read_to_string(Path::new(SAMPLE))?;
    let lines = if is_paced { PACED_LINES } else { UNPACED_LINES };
    let mut out = io::stdout().lock();
    let start = Instant::now();
    for (number, line) in (0_u32..).zip(sample.lines().cycle().take(lines)) {
        writeln!(out, "{line}")?;
        if is_paced && number % 20 == 0 {
            let due = Duration::from_secs(1) * number / LINES_PER_SECOND;
            thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    Ok(())
}
