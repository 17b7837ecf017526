//! Finds all faults of a configuration that cannot be read, instead of only the first.
//!
//! The YAML reader stops at the first error. The faulty entry is therefore removed and the rest is read again; line
//! numbers do not change, so the places of the other faults stay correct.

use std::collections::{HashMap, HashSet};

use super::{Config, Fault, read::parse};

/// The limit on the faults that are reported at once.
const MOST: usize = 20;

/// Returns the faults of `text` from `file`; empty if it is valid.
pub(super) fn all(file: &str, text: &str, variables: &HashMap<String, String>) -> Vec<Fault> {
    all_by(text, |text| parse::<Config>(file, text, variables).err())
}

/// Like [`all`], with another reader: `first_fault` returns the first fault of a text.
pub(super) fn all_by(text: &str, first_fault: impl Fn(&str) -> Option<Fault>) -> Vec<Fault> {
    let mut lines: Vec<&str> = text.lines().collect();
    let (mut faults, mut emptied) = (Vec::new(), HashSet::new());
    for _ in 0..2 * MOST {
        let Some(fault) = first_fault(&lines.join("\n")) else {
            break;
        };
        let line = usize::try_from(fault.location.line).unwrap_or_default();
        let is_ours = emptied.contains(&line);
        // An error without a place, or one that could not be removed, hides all others.
        let place = line
            .checked_sub(1)
            .filter(|place| lines.get(*place).is_some_and(|line| !line.is_empty()));
        if !is_ours || place.is_none() {
            faults.extend(Some(fault).filter(|fault| !faults.contains(fault)));
        }
        let Some(place) = place.filter(|_| faults.len() < MOST) else {
            break;
        };
        emptied.extend(take_out(&mut lines, place));
    }
    faults
}

/// Empties a line and the more deeply indented lines below it. Returns the number of the line that they belong to.
fn take_out(lines: &mut [&str], place: usize) -> Option<usize> {
    let depth = indent(lines[place]);
    let below = lines[place + 1..]
        .iter()
        .take_while(|line| line.trim().is_empty() || indent(line) > depth);
    let end = place + 1 + below.count();
    lines[place..end].fill("");
    let above = lines[..place].iter().rposition(|line| {
        let text = line.trim();
        !text.is_empty() && !text.starts_with('#') && indent(line) < depth
    });
    above.map(|place| place + 1)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
