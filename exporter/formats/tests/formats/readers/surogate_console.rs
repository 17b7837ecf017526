//! Surogate's console.

use crate::expected::{ExpectedLog, lines, number};

/// Standard output of Surogate: headings, steps, evaluations, GPUs.
pub(crate) fn surogate_console(bytes: &[u8]) -> ExpectedLog {
    let mut told = ExpectedLog::default();
    for line in lines(bytes) {
        told.attributes = Vec::new();
        if let Some(rest) = line.strip_prefix(":: step") {
            let (step, rest) = rest.split_once('[').expect("a share follows");
            let (share, rest) = rest.split_once("%]").expect("a share ends");
            told.steps.push(number(step));
            told.number("%", number(share));
            parts("step ", rest.trim_start_matches([' ', '\\', '/']), &mut told);
        } else if let Some(rest) = line.strip_prefix(">> eval") {
            parts("eval ", rest, &mut told);
        } else if line.starts_with("[G] step") || line.starts_with("Mem Usage") {
            gpu(&line, &mut told);
        } else {
            heading(line.trim(), &mut told);
        }
    }
    told
}

fn parts(kind: &str, text: &str, told: &mut ExpectedLog) {
    for part in text.split('|').map(str::trim) {
        let Some((first, second)) = part.split_once(' ') else {
            told.state(format!("{kind}phase"), part);
            continue;
        };
        let second = second.trim();
        if let Some(spike) = second.strip_prefix('!') {
            told.number(format!("{kind}spike"), 1.0);
            told.number(format!("{kind}{first}"), number(spike));
        } else if let Some((hours, minutes)) = second.split_once('h') {
            told.number(
                format!("{kind}{first}"),
                number(hours) * 3600.0 + number(minutes) * 60.0,
            );
        } else if first.starts_with(|letter: char| letter.is_ascii_digit()) {
            let thousands = if first.ends_with('k') { 1e3 } else { 1.0 };
            told.number(
                format!("{kind}{second}"),
                number(first.trim_end_matches('k')) * thousands,
            );
        } else {
            told.number(format!("{kind}{first}"), number(second));
        }
    }
}

/// The one GPU of the samples.
fn gpu(line: &str, told: &mut ExpectedLog) {
    told.attributes = vec![("gpu.index", "0".to_owned())];
    for part in line.split('|').map(str::trim) {
        for key in ["power", "temp", "clock", "Mem Usage", "PCI↓", "PCI↑"] {
            let Some(rest) = part.strip_prefix(key) else {
                continue;
            };
            told.number(key, number(rest));
            if let Some((_, limit)) = rest.split_once('/').filter(|_| key == "temp") {
                told.number("temp limit", number(limit));
            }
        }
    }
}

fn heading(text: &str, told: &mut ExpectedLog) {
    let Some((key, value)) = text.split_once(':') else {
        told.events += usize::from(text.starts_with("done in "));
        return;
    };
    let scale = |units: &[(&str, f64)]| {
        let found = units.iter().find(|(unit, _)| value.contains(unit));
        found.map_or(1.0, |(_, factor)| *factor)
    };
    match key.trim() {
        "Device 0" => told.events += 1,
        "Memory" => {
            told.attributes = vec![("gpu.index", "0".to_owned())];
            let (used, limit) = value.split_once('/').expect("so much of so much");
            told.number("Mem Usage", number(used));
            told.number("Memory limit", number(limit));
        }
        "train" | "eval" => {
            told.attributes = vec![("data.split", key.to_owned())];
            told.number(
                "tokens of a split",
                number(value) * scale(&[("M tokens", 1e6), ("k tokens", 1e3)]),
            );
        }
        file if file.ends_with(".bin") => told.leave_out("tokens_of_one_file"),
        peak if peak.starts_with("Peak ") => told.number(peak, number(value) * 1e12),
        "Blocks" | "LM-Head" | "Attention" => {
            told.number(key, number(value) * scale(&[("GFLOP", 1e9), ("MFLOP", 1e6)]));
        }
        "SOL" => told.number(key, number(value)),
        _ => {}
    }
}
