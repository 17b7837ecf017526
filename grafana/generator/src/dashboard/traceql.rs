//! Checks the names in TraceQL queries against the semantic conventions.

use pulsetrain_semconv::{attribute, span};

/// Returns the problems of a query: attributes and spans that the conventions do not have, and unbalanced brackets.
///
/// An attribute is `span.NAME` or `resource.NAME`; a span is `name = "NAME"`. The syntax is not checked here: a test runs every
/// query against Tempo.
pub(crate) fn check(query: &str) -> Vec<String> {
    let mut errors = Vec::new();
    for (open, close) in [('{', '}'), ('(', ')')] {
        if query.matches(open).count() != query.matches(close).count() {
            errors.push(format!("`{query}` has not as many `{open}` as `{close}`"));
        }
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    for word in query.split(|c| !is_name(c)) {
        let name = word
            .strip_prefix("span.")
            .or_else(|| word.strip_prefix("resource."));
        if let Some(name) = name
            && !attribute::ALL.iter().any(|attribute| attribute.name == name)
        {
            errors.push(format!("no attribute `{name}` in the semantic conventions"));
        }
    }
    for after in query.split("name = \"").skip(1) {
        let name = after.split('"').next().unwrap_or_default();
        if !span::ALL.iter().any(|span| span.name == name) {
            errors.push(format!("no span `{name}` in the semantic conventions"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn traceql_names_outside_the_conventions_are_errors() {
        let query = r#"{ name = "train.step" && resource.train.run.id =~ "$run" && duration > 1s } | select(span.train.step)"#;
        assert_eq!(check(query), [""; 0]);
        assert_eq!(check(r#"{ name = "train.stepp" }"#).len(), 1);
        assert_eq!(check("{ span.train.stepp = 1 }").len(), 1);
        assert_eq!(check("{ (span.train.step = 1 }").len(), 1);
    }
}
