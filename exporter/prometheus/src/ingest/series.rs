//! The labels of a series: those of the point, of its scope and of its target.

use std::{borrow::Cow, sync::Arc};

use pulsetrain_otlp::{
    view::{KeyValue, Metric, Repeated},
    walk::InScope,
};

use super::{
    super::{
        Rejection,
        escape::NAME_LABEL,
        labels::{self, Labeller},
        points::PointError,
        store::family::FamilyKind,
    },
    MAX_LABEL_BYTES, PointContext,
};

/// Names and values of the labels of a scope.
pub(super) type ScopeLabels = Vec<(Arc<str>, String)>;

/// Returns the labels of a scope.
pub(super) fn of_scope<'a>(metrics: &InScope<'a, Metric<'a>>) -> ScopeLabels {
    let scope = metrics.scope.unwrap_or_default();
    let labels = [
        ("otel_scope_name", scope.name),
        ("otel_scope_version", scope.version),
        ("otel_scope_schema_url", metrics.schema_url),
    ];
    labels
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.into(), value.to_str_lossy().into_owned()))
        .collect()
}

/// Replaces the content of `out` by the labels of a series.
pub(super) fn write_labels(
    place: &PointContext<'_>,
    attributes: &Repeated<'_, KeyValue<'_>>,
    labeller: &mut Labeller,
    out: &mut String,
) -> Result<(), PointError> {
    let kind = place.family.head.kind;
    let mut all = labeller.labels(attributes, |_| true)?;
    for (name, value) in &place.target.labels {
        let found = all.iter_mut().find(|(other, _)| other == name);
        match found {
            Some((_, mine)) if matches!(&**name, "job" | "instance") => *mine = Cow::Borrowed(value),
            Some(_) => {}
            None => all.push((Arc::clone(name), Cow::Borrowed(value))),
        }
    }
    for (name, value) in place.scope {
        all.retain(|(other, _)| other != name);
        all.push((Arc::clone(name), Cow::Borrowed(value)));
    }
    if all.iter().any(|(name, _)| is_reserved(name, kind)) {
        return Err(PointError::Rejected(Rejection::ReservedLabel));
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    out.clear();
    labels::write(all.iter().map(|(name, value)| (&**name, &**value)), out);
    if out.len() > MAX_LABEL_BYTES {
        return Err(PointError::Rejected(Rejection::LabelsTooLong));
    }
    Ok(())
}

/// Returns whether the page writes a label of this name itself.
fn is_reserved(name: &str, kind: FamilyKind) -> bool {
    name == NAME_LABEL
        || (name == "le" && kind == FamilyKind::Histogram)
        || (name == "quantile" && kind == FamilyKind::Summary)
}
