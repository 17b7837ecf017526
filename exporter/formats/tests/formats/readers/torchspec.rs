//! TorchSpec's standard error: a progress bar that is redrawn, with log lines appended to it.

use crate::expected::{ExpectedLog, clock, lines, number};

/// Bars and log lines.
pub(crate) fn torchspec(bytes: &[u8]) -> ExpectedLog {
    let (mut expected, mut seen) = (ExpectedLog::default(), Seen::default());
    for line in lines(bytes) {
        let (bar, logged) = line.split_at(line.find("[2026-11-21 ").unwrap_or(line.len()));
        if let Some((_, bar)) = bar.rsplit_once("| ") {
            expected.time = None;
            self::bar(bar, &mut seen, &mut expected);
        }
        if let Some(text) = logged.strip_prefix("[2026-11-21 ") {
            expected.time = Some(clock(&text[..12].replace(',', ".")));
            self::logged(text, &mut seen, &mut expected);
        }
    }
    expected
}

/// The steps that the last lines of each kind were about.
#[derive(Default)]
struct Seen {
    bar: String,
    timed: String,
    passes: String,
    /// Whether weights are on their way.
    syncs: bool,
}

/// `20/40 [00:03<00:03,  5.99step/s, loss=1.053, ..., epoch=1/2]`.
fn bar(bar: &str, seen: &mut Seen, expected: &mut ExpectedLog) {
    let (count, rest) = bar.split_once(" [").expect("times follow the count");
    let (step, total) = count.split_once('/').expect("a step and the number of steps");
    if seen.bar == step {
        return expected.leave_out("bar_drawn_again");
    }
    step.clone_into(&mut seen.bar);
    if step != "0" {
        expected.steps.push(number(step));
    }
    expected.number("n/total", number(step) / number(total));
    // Output of a Ray worker may follow on the same line.
    let (rest, _) = rest.rsplit_once(']').expect("a bar ends");
    let mut parts = rest.split(',').map(str::trim);
    let (elapsed, remaining) = parts
        .next()
        .and_then(|times| times.split_once('<'))
        .expect("two times");
    let minutes = |text: &str| {
        let (minutes, secs) = text.split_once(':').expect("minutes and seconds");
        number(minutes) * 60.0 + number(secs)
    };
    expected.number("elapsed", minutes(elapsed));
    if !remaining.starts_with('?') {
        expected.number("remaining", minutes(remaining));
    }
    for part in parts {
        match part.split_once('=') {
            Some(("wait", _)) if seen.timed == step => expected.leave_out("wait_told_by_timing"),
            Some(("I" | "T", "0.0")) => expected.leave_out("not_measured"),
            Some((key, value)) => expected.number(key, number(value)),
            None if part.starts_with('?') => {}
            None if part.ends_with("s/step") => expected.number("step/s", 1.0 / number(part)),
            None => expected.number("step/s", number(part)),
        }
    }
}

fn logged(text: &str, seen: &mut Seen, expected: &mut ExpectedLog) {
    let (_, message) = ["INFO ", "WARNING ", "ERROR "]
        .iter()
        .find_map(|level| text.split_once(level))
        .expect("a line has a level");
    if let Some(rest) = message.strip_prefix("TIMING step=") {
        timing(rest, seen, expected);
    } else if let Some(rest) = message.strip_prefix("COMPUTE_BREAKDOWN step=") {
        passes(rest, seen, expected);
    } else if let Some(options) = message.strip_prefix("Starting: ") {
        expected.events += options.matches('=').count();
        let mut options = options.split(", ").filter_map(|option| option.split_once('='));
        if let Some((_, size)) = options.find(|(name, _)| *name == "global_batch_size") {
            expected.number("global batch size", number(size));
        }
    } else if let Some((_, values)) = message.split_once("eval: ") {
        for (key, value) in values.split(", ").filter_map(|part| part.split_once('=')) {
            match message.starts_with("Step ") {
                true => expected.number(format!("eval {key}"), number(value)),
                false => expected.leave_out("eval_told_with_its_step"),
            }
        }
    } else if message.contains("ool") && message.contains("apacity")
        || message.starts_with("Sample pool full")
    {
        pool(message, expected);
    } else if let Some(limit) = message.strip_prefix("Flow control enabled: max_pool_size=") {
        expected.number("pool limit", number(limit));
    } else if let Some((_, secs)) = message.split_once("(shutdown requested) after ") {
        expected.number("pool wait", number(secs));
    } else if is_lifecycle(message) {
        expected.events += 1;
        seen.syncs |= message.contains(": saving draft model to ");
        seen.syncs &= !message.contains(": weight sync failed");
        if message.starts_with("Cleaned up temp dir ") && std::mem::take(&mut seen.syncs) {
            expected.spans += 1;
        }
    }
}

fn timing(text: &str, seen: &mut Seen, expected: &mut ExpectedLog) {
    let (step, times) = text.split_once(": ").expect("times follow the step");
    step.clone_into(&mut seen.timed);
    expected.steps.push(number(step));
    expected.spans += 1;
    for (key, secs) in times.split(' ').filter_map(|part| part.split_once('=')) {
        let key = key.trim_start_matches('[');
        let is_pass = ["fwd", "bwd"].contains(&key);
        if is_pass && seen.passes == step {
            expected.leave_out("passes_told_by_another_line");
        } else if is_pass && number(secs) == 0.0 {
            expected.leave_out("not_measured");
        } else {
            expected.number(format!("TIMING {key}"), number(secs));
        }
    }
}

/// Steps count from zero here, and from one in the lines with "TIMING".
fn passes(text: &str, seen: &mut Seen, expected: &mut ExpectedLog) {
    let (step, times) = text.split_once(": ").expect("times follow the step");
    let step = (number(step) + 1.0).to_string();
    for (key, ms) in times.split(' ').filter_map(|part| part.split_once('=')) {
        match seen.timed == step {
            true => expected.leave_out("passes_told_by_another_line"),
            false => expected.number(format!("BREAKDOWN {key}"), number(ms) / 1e3),
        }
    }
    seen.passes = step;
}

fn pool(message: &str, expected: &mut ExpectedLog) {
    if message.starts_with("Still waiting ") {
        expected.leave_out("wait_not_over");
    }
    if let Some((_, secs)) = message.split_once("available after ") {
        expected.number("pool wait", number(secs));
    }
    if let Some((size, limit)) = message
        .split_once("pool_size=")
        .and_then(|(_, sizes)| sizes.split_once('/'))
    {
        expected.number("pool", number(size));
        expected.number("pool limit", number(limit));
    }
}

/// Returns whether a message is a lifecycle event of the run.
fn is_lifecycle(message: &str) -> bool {
    [
        "Training completed: ",
        "Epoch ",
        "Max steps reached",
        "Dataset exhausted, reloading ",
        "Flow control disabled: ",
        "Resum",
        "Sav",
        "New best checkpoint: ",
        "Removing old checkpoint: ",
        "Step ",
        "Engine ",
        "Cleaned up ",
    ]
    .iter()
    .any(|begin| message.starts_with(begin))
}
