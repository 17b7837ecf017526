//! Messages for the operator: bounded, on one line, and without control characters.

use crate::{Problem, printable};

const MAX_BYTES: usize = 512;
const ELLIPSIS: &str = "...";

/// Returns the stored form of a message: control characters become spaces, and bytes over 512 are truncated.
pub(super) fn bounded(message: &str) -> Option<String> {
    let fits = message.len() <= MAX_BYTES;
    let cut = if fits {
        message.len()
    } else {
        char_boundary(message, MAX_BYTES - ELLIPSIS.len())
    };
    let mut kept = printable(&message[..cut]).into_owned();
    if !fits {
        kept.push_str(ELLIPSIS);
    }
    (!kept.is_empty()).then_some(kept)
}

/// Returns a problem whose parts are bounded, each like a message.
pub(super) fn bounded_parts(problem: &Problem) -> Problem {
    Problem {
        subject: problem.subject.as_deref().and_then(bounded),
        what: bounded(&problem.what).unwrap_or_default(),
        remedy: problem.remedy.as_deref().and_then(bounded).map(Into::into),
    }
}

/// Returns the last character boundary at or before `at`.
fn char_boundary(message: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&index| message.is_char_boundary(index))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_message_is_truncated_at_a_character_boundary_with_a_marker() {
        let kept = bounded(&"é".repeat(400)).expect("a message");
        assert_eq!(kept.len(), 511, "254 characters of two bytes, and the three dots");
        assert!(kept.ends_with("é..."));
        assert_eq!(bounded(&"x".repeat(512)).expect("a message").len(), 512);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(
            bounded("no\u{1b}[2J room\nleft").as_deref(),
            Some("no [2J room left")
        );
        assert_eq!(bounded(""), None);
    }
}
