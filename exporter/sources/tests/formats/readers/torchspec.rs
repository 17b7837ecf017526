//! TorchSpec's standard error: a bar that is drawn again and again, with log lines glued to it.

use crate::said::{Told, clock, lines, number};

/// Bars and log lines.
pub(crate) fn torchspec(bytes: &[u8]) -> Told {
    let (mut told, mut last_bar, mut timed) = (Told::default(), String::new(), String::new());
    for line in lines(bytes) {
        let (bar, logged) = line.split_at(line.find("[2026-11-21 ").unwrap_or(line.len()));
        if let Some((_, bar)) = bar.rsplit_once("| ") {
            told.time = None;
            self::bar(bar, &mut last_bar, &timed, &mut told);
        }
        if let Some(text) = logged.strip_prefix("[2026-11-21 ") {
            told.time = Some(clock(&text[..12].replace(',', ".")));
            self::logged(text, &mut timed, &mut told);
        }
    }
    told
}

/// `20/40 [00:03<00:03,  5.99step/s, loss=1.053, ..., epoch=1/2]`.
fn bar(bar: &str, last: &mut String, timed: &str, told: &mut Told) {
    let (count, rest) = bar.split_once(" [").expect("times follow the count");
    let (step, total) = count.split_once('/').expect("so many of so many");
    if *last == step {
        return told.leave_out("bar_drawn_again");
    }
    step.clone_into(last);
    if step != "0" {
        told.steps.push(number(step));
    }
    told.number("n/total", number(step) / number(total));
    let mut parts = rest.trim_end_matches(']').split(',').map(str::trim);
    let (elapsed, remaining) = parts
        .next()
        .and_then(|times| times.split_once('<'))
        .expect("two times");
    let minutes = |text: &str| {
        let (minutes, secs) = text.split_once(':').expect("minutes and seconds");
        number(minutes) * 60.0 + number(secs)
    };
    told.number("elapsed", minutes(elapsed));
    if !remaining.starts_with('?') {
        told.number("remaining", minutes(remaining));
    }
    for part in parts {
        match part.split_once('=') {
            Some(("wait", _)) if timed == step => told.leave_out("wait_told_by_timing"),
            Some((key, value)) => told.number(key, number(value)),
            None if part.ends_with("step/s") && !part.starts_with('?') => {
                told.number("step/s", number(part));
            }
            None => {}
        }
    }
}

fn logged(text: &str, timed: &mut String, told: &mut Told) {
    if let Some((_, rest)) = text.split_once(" TIMING step=") {
        let (step, times) = rest.split_once(": ").expect("times follow the step");
        step.clone_into(timed);
        told.steps.push(number(step));
        told.spans += 1;
        for (key, secs) in times.split(' ').filter_map(|part| part.split_once('=')) {
            told.number(format!("TIMING {}", key.trim_start_matches('[')), number(secs));
        }
    } else if let Some((_, options)) = text.split_once(" INFO Starting: ") {
        told.events += options.matches('=').count();
    } else {
        let messages = [
            "INFO Training completed: ",
            "INFO Epoch ",
            "INFO Max steps reached",
            "INFO Dataset exhausted, reloading ",
        ];
        told.events += usize::from(messages.iter().any(|message| text.contains(message)));
    }
}
