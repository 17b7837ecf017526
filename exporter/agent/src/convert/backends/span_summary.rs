//! Records the time range and the resources of the spans in the messages. Metrics of the same time range are fetched for
//! them.

use std::{collections::HashMap, time::Duration};

use pulsetrain_backends::TimeWindow;
use pulsetrain_otlp::{
    Signal, UnixNanos, WireError,
    view::{AnyValue, Message, Resource},
    walk,
    wire::{Reader, WireValue},
};
use pulsetrain_semconv::attribute;

/// The margin of a window on either side of its spans, so that a counter has a value at their start.
const MARGIN: Duration = Duration::from_secs(15);

/// The time range and the resources of spans.
#[derive(Debug, Default)]
pub(in crate::convert) struct SpanSummary {
    window: Option<TimeWindow>,
    /// The service name and instance of each encoded resource.
    resources: HashMap<Vec<u8>, [String; 2]>,
}

impl SpanSummary {
    /// Records the contents of a message. Invalid messages are ignored here, because other code reports them.
    pub(in crate::convert) fn record(&mut self, signal: Signal, bytes: &[u8]) {
        if signal == Signal::Traces {
            let _ = self.observe_spans(bytes);
        }
    }

    fn observe_spans(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for resource in walk::spans(bytes) {
            let resource = resource?;
            self.observe_resource(resource.bytes)?;
            for span in resource.items() {
                let span = span?;
                self.observe_time(
                    UnixNanos(span.start_time_unix_nano),
                    UnixNanos(span.end_time_unix_nano),
                );
            }
        }
        Ok(())
    }

    fn observe_time(&mut self, start: UnixNanos, end: UnixNanos) {
        if !start.is_known() {
            return;
        }
        let end = end.max(start);
        let window = self.window.get_or_insert(TimeWindow { start, end });
        window.start = window.start.min(start);
        window.end = window.end.max(end);
    }

    fn observe_resource(&mut self, resource_spans: &[u8]) -> Result<(), WireError> {
        for field in Reader::new(resource_spans) {
            let field = field?;
            let WireValue::Bytes(resource) = field.value else {
                continue;
            };
            if field.number != 1 || self.resources.contains_key(resource) {
                continue;
            }
            let mut names = <[String; 2]>::default();
            for attribute in Resource::decode(resource)?.attributes {
                let attribute = attribute?;
                let place = [attribute::SERVICE_NAME.name, attribute::SERVICE_INSTANCE_ID.name];
                let place = place
                    .iter()
                    .position(|name| attribute.key.as_bytes() == name.as_bytes());
                if let (Some(place), Some(AnyValue::String(text))) = (place, attribute.value) {
                    names[place] = text.to_str_lossy().into_owned();
                }
            }
            self.resources.insert(resource.to_vec(), names);
        }
        Ok(())
    }

    /// Returns the time range of all spans with a margin.
    pub(in crate::convert) fn window(&self) -> Option<TimeWindow> {
        self.window.map(|window| TimeWindow {
            start: window.start.saturating_sub(MARGIN),
            end: window.end.saturating_add(MARGIN),
        })
    }

    /// Returns the resource for a job and an instance of Prometheus: the one of that service and instance, or else the
    /// only one of that service.
    pub(in crate::convert) fn resource(&self, job: &str, instance: &str) -> Option<Vec<u8>> {
        let service = job.rsplit('/').next().unwrap_or_default();
        let of_service = || self.resources.iter().filter(|(_, names)| names[0] == service);
        let mut exact = of_service().filter(|(_, names)| names[1] == instance);
        match (exact.next(), exact.next()) {
            (Some((resource, _)), None) => Some(resource.clone()),
            (None, _) => {
                let mut all = of_service();
                all.next()
                    .filter(|_| all.next().is_none())
                    .map(|(resource, _)| resource.clone())
            }
            _ => None,
        }
    }
}
