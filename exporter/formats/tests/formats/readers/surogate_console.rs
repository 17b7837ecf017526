//! Surogate's console.

use crate::expected::{ExpectedLog, lines, number};

/// Standard output of Surogate: headings, steps, evaluations, GPUs.
pub(crate) fn surogate_console(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for line in lines(bytes) {
        expected.attributes = Vec::new();
        if let Some(rest) = line.strip_prefix(":: step") {
            let (step, rest) = rest.split_once('[').expect("a share follows");
            let (share, rest) = rest.split_once("%]").expect("a share ends");
            expected.steps.push(number(step));
            expected.number("%", number(share));
            parts("step ", rest.trim_start_matches([' ', '\\', '/']), &mut expected);
        } else if let Some(rest) = line.strip_prefix(">> eval") {
            parts("eval ", rest, &mut expected);
        } else if line.starts_with("[G] step") || line.starts_with("Mem Usage") {
            gpu(&line, &mut expected);
        } else {
            heading(line.trim(), &mut expected);
        }
    }
    expected
}

fn parts(kind: &str, text: &str, expected: &mut ExpectedLog) {
    for part in text.split('|').map(str::trim) {
        let Some((first, second)) = part.split_once(' ') else {
            expected.state(format!("{kind}phase"), part);
            continue;
        };
        let second = second.trim();
        if let Some(spike) = second.strip_prefix('!') {
            expected.number(format!("{kind}spike"), 1.0);
            expected.number(format!("{kind}{first}"), number(spike));
        } else if let Some((hours, minutes)) = second.split_once('h') {
            expected.number(
                format!("{kind}{first}"),
                number(hours) * 3600.0 + number(minutes) * 60.0,
            );
        } else if first.starts_with(|letter: char| letter.is_ascii_digit()) {
            let thousands = if first.ends_with('k') { 1e3 } else { 1.0 };
            expected.number(
                format!("{kind}{second}"),
                number(first.trim_end_matches('k')) * thousands,
            );
        } else {
            expected.number(format!("{kind}{first}"), number(second));
        }
    }
}

/// The one GPU of the samples.
fn gpu(line: &str, expected: &mut ExpectedLog) {
    expected.attributes = vec![("gpu.index", "0".to_owned())];
    for part in line.split('|').map(str::trim) {
        for key in ["power", "temp", "clock", "Mem Usage", "PCI↓", "PCI↑"] {
            let Some(rest) = part.strip_prefix(key) else {
                continue;
            };
            expected.number(key, number(rest));
            if let Some((_, limit)) = rest.split_once('/').filter(|_| key == "temp") {
                expected.number("temp limit", number(limit));
            }
        }
    }
}

fn heading(text: &str, expected: &mut ExpectedLog) {
    let Some((key, value)) = text.split_once(':') else {
        expected.events += usize::from(text.starts_with("done in "));
        return;
    };
    let scale = |units: &[(&str, f64)]| {
        let found = units.iter().find(|(unit, _)| value.contains(unit));
        found.map_or(1.0, |(_, factor)| *factor)
    };
    match key.trim() {
        "Device 0" => expected.events += 1,
        "Memory" => {
            expected.attributes = vec![("gpu.index", "0".to_owned())];
            let (used, limit) = value.split_once('/').expect("so much of so much");
            expected.number("Mem Usage", number(used));
            expected.number("Memory limit", number(limit));
        }
        "train" | "eval" => {
            expected.attributes = vec![("data.split", key.to_owned())];
            expected.number(
                "tokens of a split",
                number(value) * scale(&[("M tokens", 1e6), ("k tokens", 1e3)]),
            );
        }
        file if file.ends_with(".bin") => expected.leave_out("tokens_of_one_file"),
        peak if peak.starts_with("Peak ") => expected.number(peak, number(value) * 1e12),
        "Blocks" | "LM-Head" | "Attention" => {
            expected.number(key, number(value) * scale(&[("GFLOP", 1e9), ("MFLOP", 1e6)]));
        }
        "SOL" => expected.number(key, number(value)),
        _ => {}
    }
}
