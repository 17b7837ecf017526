//! Means and quantiles of histograms, of classic and of native ones.
//!
//! A histogram with explicit buckets arrives in Prometheus as `_bucket`, `_sum` and `_count`; an exponential one, and one that
//! Prometheus converts, as a native histogram under its own name. One query has to work for all of them, so it selects the
//! classic series first and, for those that are missing, the native ones.

use super::definition::QueryDefinition;

const WINDOW: &str = "$__rate_interval";

/// Returns the text of a query: `expr` as it is, or the query of `mean` or of `quantile` and `of`.
///
/// # Errors
///
/// Returns the problem if the keys do not fit together.
pub(crate) fn expression(query: &QueryDefinition) -> Result<String, String> {
    match (&query.expr, &query.mean, query.quantile, &query.of) {
        (Some(expr), None, None, None) if query.by.is_empty() => Ok(expr.trim().to_owned()),
        (None, Some(of), None, None) => Ok(mean(&selector(of)?, &query.by, query.since_start)),
        (None, None, Some(quantile), Some(of)) if (0.0..=1.0).contains(&quantile) => {
            Ok(self::quantile(quantile, &selector(of)?, &query.by))
        }
        _ => Err("a query has `expr`, or `mean` and `by`, or `quantile`, `of` and `by`".to_owned()),
    }
}

/// The name of a histogram and its matchers in braces, which may be empty.
struct Selector<'a> {
    name: &'a str,
    matchers: &'a str,
}

impl Selector<'_> {
    fn total(&self, part: &str) -> String {
        format!("{}{part}{}", self.name, self.matchers)
    }

    fn rate(&self, part: &str) -> String {
        format!("rate({}{part}{}[{WINDOW}])", self.name, self.matchers)
    }
}

fn selector(text: &str) -> Result<Selector<'_>, String> {
    let text = text.trim();
    let (name, matchers) = text.split_at(text.find('{').unwrap_or(text.len()));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) || !(matchers.is_empty() || matchers.ends_with('}')) {
        return Err(format!(
            "`{text}` is not the selector of a histogram, such as `name{{label=\"value\"}}`"
        ));
    }
    Ok(Selector { name, matchers })
}

fn mean(of: &Selector<'_>, by: &[String], since_start: bool) -> String {
    let part = |part| {
        if since_start {
            of.total(part)
        } else {
            of.rate(part)
        }
    };
    let (by, sum, count, native) = (by.join(", "), part("_sum"), part("_count"), part(""));
    let (classic_sum, classic_count) = (
        format!("sum by ({by}) ({sum})"),
        format!("sum by ({by}) ({count})"),
    );
    // Not `histogram_avg`, which Prometheus before 2.51 does not have.
    let native = format!("sum by ({by}) ({native})");
    format!(
        "{classic_sum} / ({classic_count} > 0) or histogram_sum({native}) / (histogram_count({native}) > 0)"
    )
}

fn quantile(quantile: f64, of: &Selector<'_>, by: &[String]) -> String {
    let (by, bucket, native) = (by.join(", "), of.rate("_bucket"), of.rate(""));
    let le = if by.is_empty() {
        "le".to_owned()
    } else {
        format!("le, {by}")
    };
    format!(
        "histogram_quantile({quantile}, sum by ({le}) ({bucket})) or histogram_quantile({quantile}, sum by ({by}) ({native}))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(yaml: &str) -> Result<String, String> {
        expression(&serde_saphyr::from_str(yaml).unwrap())
    }

    #[test]
    fn mean_queries_classic_histograms_then_native_ones() {
        assert_eq!(
            parse("{mean: 'h_seconds{a=\"b\"}', by: [x]}").unwrap(),
            "sum by (x) (rate(h_seconds_sum{a=\"b\"}[$__rate_interval])) \
             / (sum by (x) (rate(h_seconds_count{a=\"b\"}[$__rate_interval])) > 0) \
             or histogram_sum(sum by (x) (rate(h_seconds{a=\"b\"}[$__rate_interval]))) \
             / (histogram_count(sum by (x) (rate(h_seconds{a=\"b\"}[$__rate_interval]))) > 0)"
        );
    }

    #[test]
    fn mean_since_the_start_uses_totals_without_rate() {
        assert_eq!(
            parse("{mean: h_seconds, by: [x], since_start: true}").unwrap(),
            "sum by (x) (h_seconds_sum) / (sum by (x) (h_seconds_count) > 0) \
             or histogram_sum(sum by (x) (h_seconds)) / (histogram_count(sum by (x) (h_seconds)) > 0)"
        );
    }

    #[test]
    fn quantile_queries_classic_histogram_buckets_then_native_ones() {
        assert_eq!(
            parse("{quantile: 0.99, of: h_seconds, by: [x]}").unwrap(),
            "histogram_quantile(0.99, sum by (le, x) (rate(h_seconds_bucket[$__rate_interval]))) \
             or histogram_quantile(0.99, sum by (x) (rate(h_seconds[$__rate_interval])))"
        );
    }

    #[test]
    fn incompatible_histogram_query_keys_are_rejected() {
        for yaml in [
            "{}",
            "{expr: a, mean: b}",
            "{expr: a, by: [x]}",
            "{quantile: 0.5}",
            "{quantile: 2, of: a}",
            "{mean: 'a + b'}",
        ] {
            assert!(parse(yaml).is_err(), "{yaml}");
        }
    }
}
