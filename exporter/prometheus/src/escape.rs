//! Escaping of names for clients without UTF-8 names, and of quoted values.
//!
//! The schemes are those of Prometheus' `docs/instrumenting/escaping_schemes.md` (prometheus/common
//! `EscapeName`).

use std::{borrow::Cow, fmt::Write};

/// The label with the name of a series.
pub(super) const NAME_LABEL: &str = "__name__";

/// The escaping scheme for names with characters that old clients cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaping {
    /// No escaping; names are quoted if necessary.
    AllowUtf8,
    /// Replaces each such character by an underscore.
    Underscores,
    /// `.` is `_dot_`, `_` is `__`, every other such character is `_UNICODE_`.
    Dots,
    /// Adds the prefix `U__` and replaces each such character by `_UNICODE_`.
    Values,
}

impl Escaping {
    /// All schemes.
    const ALL: [Self; 4] = [Self::AllowUtf8, Self::Underscores, Self::Dots, Self::Values];

    /// Returns the name of the scheme in `Accept` and `Content-Type`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::AllowUtf8 => "allow-utf-8",
            Self::Underscores => "underscores",
            Self::Dots => "dots",
            Self::Values => "values",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.word() == word)
    }

    /// Returns the escaped name of a label, in which a colon is escaped too.
    pub(super) fn label(self, name: &str) -> String {
        self.name(name).replace(':', "_")
    }

    /// Returns the escaped name.
    pub(super) fn name(self, name: &str) -> Cow<'_, str> {
        if name.is_empty() || self == Self::AllowUtf8 || (self != Self::Dots && is_legacy(name)) {
            return Cow::Borrowed(name);
        }
        let mut escaped = String::with_capacity(name.len() + 8);
        if self == Self::Values {
            escaped.push_str("U__");
        }
        name.char_indices()
            .for_each(|(place, c)| self.character(place, c, &mut escaped));
        Cow::Owned(escaped)
    }

    fn character(self, place: usize, c: char, out: &mut String) {
        match (self, c) {
            (Self::Dots | Self::Values, '_') => out.push_str("__"),
            (Self::Dots, '.') => out.push_str("_dot_"),
            _ if is_legacy_char(place, c) => out.push(c),
            (Self::Values, _) => {
                let _ = write!(out, "_{:x}_", u32::from(c));
            }
            (Self::Dots, _) => out.push_str("__"),
            _ => out.push('_'),
        }
    }
}

/// Returns whether a scheme turns the label into the name of its series: `..name..` is `__name__` with
/// underscores.
pub(super) fn hides_name(label: &str) -> bool {
    label.len() <= 4 * NAME_LABEL.len()
        && Escaping::ALL
            .into_iter()
            .any(|scheme| scheme.label(label) == NAME_LABEL)
}

/// Returns whether every version of Prometheus can read the name.
pub(super) fn is_legacy(name: &str) -> bool {
    !name.is_empty() && name.char_indices().all(|(place, c)| is_legacy_char(place, c))
}

fn is_legacy_char(place: usize, c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == ':' || (c.is_ascii_digit() && place > 0)
}

/// Writes the name of a label, in quotes if it has characters that old versions cannot read.
pub(super) fn push_label_name(name: &str, out: &mut String) {
    if is_legacy(name) && !name.contains(':') {
        out.push_str(name);
    } else {
        out.push('"');
        push_escaped(name, out);
        out.push('"');
    }
}

/// Writes the content of a quoted string. NUL, which Prometheus' text parsers treat as the end of the page,
/// becomes U+FFFD.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(place) = rest.find(['\\', '"', '\n', '\0']) {
        out.push_str(&rest[..place]);
        out.push_str(match rest.as_bytes()[place] {
            b'\\' => "\\\\",
            b'"' => "\\\"",
            0 => "\u{fffd}",
            _ => "\\n",
        });
        rest = &rest[place + 1..];
    }
    out.push_str(rest);
}

/// Reverses [`push_escaped`].
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(match chars.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            }),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_by_each_scheme_as_prometheus_does() {
        // Cases of prometheus/common, model/metric_test.go, TestEscapeName.
        let cases = [
            (
                "no:escaping_required",
                "no:escaping_required",
                "no:escaping__required",
                "no:escaping_required",
            ),
            (
                "mysystem.prod.west.cpu.load",
                "mysystem_prod_west_cpu_load",
                "mysystem_dot_prod_dot_west_dot_cpu_dot_load",
                "U__mysystem_2e_prod_2e_west_2e_cpu_2e_load",
            ),
            (
                "mysystem.prod.west.cpu.load_total",
                "mysystem_prod_west_cpu_load_total",
                "mysystem_dot_prod_dot_west_dot_cpu_dot_load__total",
                "U__mysystem_2e_prod_2e_west_2e_cpu_2e_load__total",
            ),
            (
                "http.status:sum",
                "http_status:sum",
                "http_dot_status:sum",
                "U__http_2e_status:sum",
            ),
            (
                "label with 😱",
                "label_with__",
                "label__with____",
                "U__label_20_with_20__1f631_",
            ),
            ("花火", "__", "____", "U___82b1__706b_"),
        ];
        for (name, underscores, dots, values) in cases {
            assert_eq!(Escaping::Underscores.name(name), underscores);
            assert_eq!(Escaping::Dots.name(name), dots);
            assert_eq!(Escaping::Values.name(name), values);
            assert_eq!(Escaping::AllowUtf8.name(name), name);
        }
    }

    #[test]
    fn escaping_is_reversible() {
        for text in ["", "plain", "a\"b\\c\nd", "\\n", "ü\\"] {
            let mut escaped = String::new();
            push_escaped(text, &mut escaped);
            assert!(!escaped.contains('\n'));
            assert_eq!(unescaped(&escaped), text);
        }
    }
}
