//! The program's own state on the page: its sinks, their queues and their losses.

use super::json::JsonWriter;

/// The state of one sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkState {
    /// The name of the sink.
    pub name: String,
    /// The number of items sent to it.
    pub accepted: u64,
    /// The number of delivered items.
    pub delivered: u64,
    /// The number of items in its queue.
    pub queued: u64,
    /// The number of lost items, by reason.
    pub dropped: Vec<(String, u64)>,
    /// The current delivery error.
    pub error: Option<String>,
}

/// A source of the state of sinks. The page calls it at each update.
pub trait PageTelemetry: Send + Sync + 'static {
    /// Returns the current state of the sinks.
    fn sinks(&self) -> Vec<SinkState>;
}

impl SinkState {
    pub(super) fn write(&self, json: &mut JsonWriter) {
        json.object(|json| {
            json.key("name").text(&self.name);
            json.key("accepted").integer(self.accepted as i64);
            json.key("delivered").integer(self.delivered as i64);
            json.key("queued").integer(self.queued as i64);
            json.key("dropped").list(|json| {
                for (reason, items) in &self.dropped {
                    json.list(|json| {
                        json.text(reason);
                        json.integer(*items as i64);
                    });
                }
            });
            if let Some(error) = &self.error {
                json.key("error").text(error);
            }
        });
    }
}
