//! The name that was probably meant by an unknown one.

use pulsetrain_semconv::{attribute, event, metric, span};

/// The similarity (Jaro-Winkler) below which two names are unrelated.
const MIN_SIMILARITY: f64 = 0.85;

/// Returns the name that is most similar to `name`, or `None` if no name is similar.
pub fn nearest(name: &str) -> Option<&'static str> {
    let metrics = metric::ALL.iter().map(|it| it.name);
    let attributes = attribute::ALL.iter().map(|it| it.name);
    let others = span::ALL
        .iter()
        .map(|it| it.name)
        .chain(event::ALL.iter().map(|it| it.name));
    let all = metrics.chain(attributes).chain(others);
    let near = all.map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    near.max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity > MIN_SIMILARITY)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_name_has_a_suggestion_and_an_unrelated_one_has_none() {
        assert_eq!(nearest("train.los"), Some("train.loss"));
        assert_eq!(nearest("qqq"), None);
    }
}
