//! Checks an OTLP file against the registry: unknown names, wrong units, instruments and types, missing attributes.

use std::{fs::File, io, path::Path};

use pulsetrain_otlp::{
    Signal, WireError,
    frames::{Frame, FrameReader},
    limits::Limits,
    view::{AnyValue, KeyValue, LogRecord, Metric, Repeated, Span, Temporality},
    walk::{self, InResource, PointKind},
};
use pulsetrain_semconv::{self as semconv, AttributeKind, AttributeUse, Instrument, Requirement};

use crate::report::{Finding, Report};

/// Checks every message of an OTLP file. A message that cannot be read is a finding.
///
/// # Errors
/// The file cannot be opened.
pub fn check_file(path: &Path) -> io::Result<Report> {
    let file = File::open(path)?;
    let mut report = Report::default();
    for frame in FrameReader::new(file, Limits::default()) {
        report.next_frame();
        match frame {
            Ok(frame) => {
                report.items += frame.counts.items;
                if let Err(error) = check_frame(&frame, &mut report) {
                    report.add(Finding::Unreadable {
                        message: error.to_string(),
                    });
                }
            }
            Err(error) => report.add(Finding::Unreadable {
                message: format!("{}: {error}", path.display()),
            }),
        }
    }
    Ok(report)
}

fn check_frame(frame: &Frame, report: &mut Report) -> Result<(), WireError> {
    match frame.signal {
        Signal::Metrics => check_items(walk::metrics(&frame.bytes), report, check_metric),
        Signal::Traces => check_items(walk::spans(&frame.bytes), report, check_span),
        Signal::Logs => check_items(walk::records(&frame.bytes), report, check_event),
    }
}

fn check_items<'a, T: walk::Item<'a>>(
    resources: impl Iterator<Item = Result<InResource<'a, T>, WireError>>,
    report: &mut Report,
    check: impl Fn(&T, &mut Report) -> Result<(), WireError>,
) -> Result<(), WireError> {
    for resource in resources {
        let resource = resource?;
        check_resource(resource.attributes(), report)?;
        resource.items().try_for_each(|item| check(&item?, report))?;
    }
    Ok(())
}

/// Checks a resource. Unknown attributes are allowed; attributes of the registry must have its type.
fn check_resource(attributes: Attributes<'_>, report: &mut Report) -> Result<(), WireError> {
    for attribute in attributes {
        check_type("a resource", &attribute?, report);
    }
    Ok(())
}

fn check_metric(metric: &Metric<'_>, report: &mut Report) -> Result<(), WireError> {
    let name = metric.name.to_str_lossy();
    let Some(known) = semconv::metric::find(&name) else {
        report.add(Finding::UnknownName {
            kind: "metric",
            name: name.into_owned(),
        });
        return Ok(());
    };
    if metric.unit != known.unit {
        let found = metric.unit.to_string();
        report.add(Finding::WrongUnit {
            metric: known.name.into(),
            expected: known.unit,
            found,
        });
    }
    let Some(data) = metric.data() else { return Ok(()) };
    let found = found_instrument(data.kind());
    if found != known.instrument.as_str() {
        let expected = known.instrument.as_str();
        report.add(Finding::WrongInstrument {
            metric: known.name.into(),
            expected,
            found,
        });
    }
    let on = format!("metric {name}");
    data.try_each_point(|point| check_attributes(&on, known.attributes, point.attributes(), report))
}

/// Returns the instrument that produces such points.
fn found_instrument(kind: PointKind) -> &'static str {
    match kind {
        PointKind::Gauge => Instrument::Gauge.as_str(),
        PointKind::Sum {
            temporality: Temporality::Unspecified,
            ..
        } => "sum without temporality",
        PointKind::Sum {
            is_monotonic: true, ..
        } => Instrument::Counter.as_str(),
        PointKind::Sum { .. } => Instrument::UpDownCounter.as_str(),
        PointKind::Histogram { .. } | PointKind::ExponentialHistogram { .. } => {
            Instrument::Histogram.as_str()
        }
        PointKind::Summary => "summary",
    }
}

type Attributes<'a> = Repeated<'a, KeyValue<'a>>;

fn check_span(span: &Span<'_>, report: &mut Report) -> Result<(), WireError> {
    let name = span.name.to_str_lossy();
    match semconv::span::find(&name) {
        Some(known) => check_attributes(&format!("span {name}"), known.attributes, span.attributes, report),
        None => {
            report.add(Finding::UnknownName {
                kind: "span",
                name: name.into_owned(),
            });
            Ok(())
        }
    }
}

/// Checks the event of a log record. A record without an event name is not checked.
fn check_event(record: &LogRecord<'_>, report: &mut Report) -> Result<(), WireError> {
    let name = record.event_name.to_str_lossy();
    match semconv::event::find(&name) {
        Some(known) => check_attributes(
            &format!("event {name}"),
            known.attributes,
            record.attributes,
            report,
        ),
        None if name.is_empty() => Ok(()),
        None => {
            report.add(Finding::UnknownName {
                kind: "event",
                name: name.into_owned(),
            });
            Ok(())
        }
    }
}

fn check_attributes(
    on: &str,
    uses: &[AttributeUse],
    attributes: Attributes<'_>,
    report: &mut Report,
) -> Result<(), WireError> {
    for attribute in attributes {
        let attribute = attribute?;
        check_type(on, &attribute, report);
        let key = attribute.key.to_str_lossy();
        if semconv::attribute::find(&key).is_none() {
            report.add(Finding::UnknownAttribute {
                on: on.into(),
                attribute: key.into_owned(),
            });
        }
    }
    for required in uses.iter().filter(|it| it.requirement == Requirement::Required) {
        let name = required.attribute.name;
        let is_there = attributes
            .iter()
            .any(|attribute| attribute.is_ok_and(|attribute| attribute.key == name));
        if !is_there {
            report.add(Finding::MissingAttribute {
                on: on.into(),
                attribute: name,
            });
        }
    }
    Ok(())
}

fn check_type(on: &str, attribute: &KeyValue<'_>, report: &mut Report) {
    let Some(known) = semconv::attribute::find(&attribute.key.to_str_lossy()) else {
        return;
    };
    let value = attribute.value.unwrap_or_default();
    if !is_of_kind(&value, known.kind) {
        let expected = kind_name(known.kind);
        let found = type_name(&value);
        report.add(Finding::WrongAttributeType {
            on: on.into(),
            attribute: known.name,
            expected,
            found,
        });
    }
}

fn is_of_kind(value: &AnyValue<'_>, kind: AttributeKind) -> bool {
    let all = |values: &Repeated<'_, AnyValue<'_>>, kind| {
        values
            .iter()
            .all(|value| value.is_ok_and(|value| is_of_kind(&value, kind)))
    };
    match (kind, value) {
        (AttributeKind::Any, _) => true,
        (AttributeKind::String | AttributeKind::Enum(_), AnyValue::String(_)) => true,
        (AttributeKind::Int, AnyValue::Int(_)) => true,
        (AttributeKind::Double, AnyValue::Double(_)) => true,
        (AttributeKind::Boolean, AnyValue::Bool(_)) => true,
        (AttributeKind::Strings, AnyValue::Array(values)) => all(values, AttributeKind::String),
        (AttributeKind::Ints, AnyValue::Array(values)) => all(values, AttributeKind::Int),
        (AttributeKind::Doubles, AnyValue::Array(values)) => all(values, AttributeKind::Double),
        (AttributeKind::Booleans, AnyValue::Array(values)) => all(values, AttributeKind::Boolean),
        _ => false,
    }
}

fn kind_name(kind: AttributeKind) -> String {
    match kind {
        AttributeKind::Enum(_) => "string".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn type_name(value: &AnyValue<'_>) -> &'static str {
    match value {
        AnyValue::Empty => "nothing",
        AnyValue::String(_) | AnyValue::StringIndex(_) => "string",
        AnyValue::Bool(_) => "boolean",
        AnyValue::Int(_) => "int",
        AnyValue::Double(_) => "double",
        AnyValue::Array(_) => "a list",
        AnyValue::Map(_) => "a map",
        AnyValue::Bytes(_) => "bytes",
    }
}

#[cfg(test)]
mod tests;
