//! Units: the part of UCUM (case sensitive) that the vocabulary uses, without prefixes.
//!
//! A unit is terms joined by `/` and `.`; a term is a symbol with an optional exponent, an annotation in braces, or both.

/// The symbols that a unit may consist of.
const SYMBOLS: &[&str] = &[
    "1", "s", "By", "W", "J", "Cel", "Hz", "V", "A", "m", "g", "K", "bit", "nat",
];

/// The prefixes of UCUM, which the vocabulary does not use: a source converts its values to the unit without a prefix.
const PREFIXES: &[&str] = &[
    "Ki", "Mi", "Gi", "Ti", "da", "k", "M", "G", "T", "m", "u", "n", "h", "d", "c",
];

/// The problem with a unit.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("has no unit; use an annotation like `{{item}}` where there is no dimension")]
    Empty,
    #[error("is in `{symbol}`, which has a prefix; use `{base}` and convert at the source")]
    Prefix { symbol: String, base: &'static str },
    #[error("is in `{symbol}`, which is {words}; use `{instead}` and convert at the source")]
    Derived {
        symbol: String,
        words: &'static str,
        instead: &'static str,
    },
    #[error("is in `{0}`, which is not a unit of UCUM")]
    Unknown(String),
    #[error("has the annotation `{0}`; write lower case letters and underscores in one pair of braces")]
    Annotation(String),
}

/// Checks a unit.
pub(crate) fn check(unit: &str) -> Result<(), Problem> {
    if unit.is_empty() {
        return Err(Problem::Empty);
    }
    terms(unit).into_iter().try_for_each(check_term)
}

/// Splits at every `/` and `.` outside braces.
fn terms(unit: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut in_braces) = (0, false);
    for (at, c) in unit.char_indices() {
        match c {
            '{' => in_braces = true,
            '}' => in_braces = false,
            '/' | '.' if !in_braces => {
                terms.push(&unit[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&unit[start..]);
    terms
}

fn check_term(term: &str) -> Result<(), Problem> {
    let (symbol, annotation) = match term.find('{') {
        Some(at) => (&term[..at], Some(&term[at..])),
        None => (term, None),
    };
    annotation.map_or(Ok(()), check_annotation)?;
    if symbol.is_empty() && annotation.is_some() {
        Ok(())
    } else {
        check_symbol(symbol)
    }
}

fn check_annotation(annotation: &str) -> Result<(), Problem> {
    let inside = annotation
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or_default();
    let is_word = !inside.is_empty() && inside.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if is_word {
        Ok(())
    } else {
        Err(Problem::Annotation(annotation.to_owned()))
    }
}

fn check_symbol(symbol: &str) -> Result<(), Problem> {
    let base = symbol.trim_end_matches(|c: char| c.is_ascii_digit());
    let base = if base.is_empty() { symbol } else { base };
    if SYMBOLS.contains(&base) {
        return Ok(());
    }
    let (words, instead) = match base {
        "%" => ("a hundredth", "1"),
        "min" | "h" | "d" | "wk" => ("a multiple of the second", "s"),
        _ => return Err(prefixed(base).unwrap_or_else(|| Problem::Unknown(symbol.to_owned()))),
    };
    Err(Problem::Derived {
        symbol: symbol.to_owned(),
        words,
        instead,
    })
}

fn prefixed(symbol: &str) -> Option<Problem> {
    let rests = PREFIXES.iter().filter_map(|prefix| symbol.strip_prefix(prefix));
    let base = rests
        .into_iter()
        .find_map(|rest| SYMBOLS.iter().find(|known| **known == rest))?;
    Some(Problem::Prefix {
        symbol: symbol.to_owned(),
        base,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_ucum_units_are_accepted() {
        for unit in [
            "s",
            "By",
            "By/s",
            "{token}/s",
            "{flop}/{token}",
            "1",
            "W",
            "m/s2",
            "{token}.s",
            "By{packet}",
        ] {
            assert_eq!(check(unit), Ok(()), "{unit}");
        }
    }

    #[test]
    fn prefixed_unit_is_rejected_with_its_base_unit() {
        for (unit, base) in [
            ("ms", "s"),
            ("MiBy", "By"),
            ("kBy/s", "By"),
            ("MHz", "Hz"),
            ("mW", "W"),
            ("{token}/ms", "s"),
        ] {
            let problem = check(unit);
            assert!(
                matches!(&problem, Err(Problem::Prefix { base: found, .. }) if *found == base),
                "{unit}: {problem:?}"
            );
        }
    }

    #[test]
    fn invalid_ucum_units_are_rejected() {
        for unit in ["tokens", "seconds", "rpm", "/s", "s/", "s s", "bytes"] {
            assert!(matches!(check(unit), Err(Problem::Unknown(_))), "{unit}");
        }
        for unit in ["{}", "{Token}", "{token", "{a}{b}", "{to ken}"] {
            assert!(matches!(check(unit), Err(Problem::Annotation(_))), "{unit}");
        }
        for unit in ["%", "min", "h"] {
            assert!(matches!(check(unit), Err(Problem::Derived { .. })), "{unit}");
        }
        assert_eq!(check(""), Err(Problem::Empty));
    }
}
