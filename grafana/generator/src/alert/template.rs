//! Renders the templates of annotations as Prometheus does; supports only the expressions that the definitions use.

use std::collections::BTreeMap;

/// The action of a template that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("`{{{{` without `}}}}`")]
    Unclosed,
    #[error("the alert has no label `{0}` in its test")]
    Label(String),
    #[error(
        "`{{{{ {0} }}}}` is not supported; use `$labels.NAME`, `$value | humanizePercentage`, \
         `$value | humanizeDuration` or `$value | printf \"%.1f\"`"
    )]
    Action(String),
}

/// Renders a template with the labels and the value of an alert.
///
/// # Errors
///
/// Returns the action that cannot be rendered: a label that the alert does not have, or an expression that is not supported.
pub(super) fn render(
    template: &str,
    labels: &BTreeMap<String, String>,
    value: f64,
) -> Result<String, TemplateError> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (action, after) = after.split_once("}}").ok_or(TemplateError::Unclosed)?;
        text.push_str(before);
        text.push_str(&evaluate(action.trim(), labels, value)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn evaluate(action: &str, labels: &BTreeMap<String, String>, value: f64) -> Result<String, TemplateError> {
    if let Some(label) = action.strip_prefix("$labels.") {
        let found = labels.get(label).cloned();
        return found.ok_or_else(|| TemplateError::Label(label.to_owned()));
    }
    match action {
        "$value | humanizePercentage" => Ok(format!("{}%", four_digits(value * 100.0))),
        "$value | humanizeDuration" => Ok(humanized_duration(value)),
        _ => printed(action, value).ok_or_else(|| TemplateError::Action(action.to_owned())),
    }
}

/// Renders `printf "%.Nf"`, or returns `None` for another action.
fn printed(action: &str, value: f64) -> Option<String> {
    let digits = action.strip_prefix("$value | printf \"%.")?.strip_suffix("f\"")?;
    let digits: usize = digits.parse().ok()?;
    Some(format!("{value:.digits$}"))
}

/// Formats a number as `%.4g` of C does, without exponents.
fn four_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn humanized_duration(seconds: f64) -> String {
    let whole = seconds as u64;
    let (days, hours, minutes, rest) = (whole / 86_400, whole / 3_600 % 24, whole / 60 % 60, whole % 60);
    if days > 0 {
        format!("{days}d {hours}h {minutes}m {rest}s")
    } else if hours > 0 {
        format!("{hours}h {minutes}m {rest}s")
    } else if minutes > 0 {
        format!("{minutes}m {rest}s")
    } else {
        format!("{}s", four_digits(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_values_are_rendered_as_prometheus_does() {
        let labels = [("train_rank".to_owned(), "3".to_owned())].into();
        let render = |template: &str, value| render(template, &labels, value).unwrap();
        assert_eq!(render("rank {{ $labels.train_rank }}", 0.0), "rank 3");
        assert_eq!(render("{{ $value | humanizePercentage }}", 0.256_78), "25.68%");
        assert_eq!(render("{{ $value | humanizePercentage }}", 0.25), "25%");
        assert_eq!(render("{{ $value | humanizeDuration }}", 3_725.0), "1h 2m 5s");
        assert_eq!(render("{{ $value | humanizeDuration }}", 7.5), "7.5s");
        assert_eq!(render("{{ $value | printf \"%.1f\" }}", 7.25), "7.2");
    }

    #[test]
    fn label_missing_from_the_alert_is_an_error() {
        assert!(render("{{ $labels.gpu }}", &BTreeMap::new(), 0.0).is_err());
        assert!(render("{{ $value }}", &BTreeMap::new(), 0.0).is_err());
        assert!(render("{{ $value", &BTreeMap::new(), 0.0).is_err());
    }
}
