//! What the program itself reports: its sinks, their queues and what they dropped.

use super::json::JsonWriter;

/// The state of one sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkState {
    /// The name of the sink.
    pub name: String,
    /// The items that were sent to it.
    pub accepted: u64,
    /// The items that arrived.
    pub delivered: u64,
    /// The items in its queue.
    pub queued: u64,
    /// The items it lost, by reason.
    pub dropped: Vec<(String, u64)>,
    /// Why its deliveries fail at the moment.
    pub error: Option<String>,
}

/// Something that knows the sinks of a program; asked whenever the page is updated.
pub trait PageTelemetry: Send + Sync + 'static {
    /// The sinks as they are now.
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
