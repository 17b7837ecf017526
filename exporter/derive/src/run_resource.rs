//! The resource of a run: that of a rank without the attributes of the rank.

use pulsetrain_otlp::{
    view::{KeyValue, Message},
    wire::{Reader, WireValue},
    write::Buffer,
};
use pulsetrain_semconv::attribute;

use crate::spans::copy;

/// Field of `Resource` (proto/resource/v1/resource.proto).
const ATTRIBUTES: u32 = 1;
/// The field of `Resource` with entity references by key. Some of these keys are dropped.
const ENTITY_REFS: u32 = 3;

/// Returns the `Resource` message of a run, made from that of one of its ranks.
///
/// `train.rank`, `train.local_rank`, `train.attempt`, `host.*`, `process.*` and references to entities are
/// dropped, and `service.instance.id` is the run's id. All ranks of a run give the same message if their
/// other attributes are equal and in the same order.
pub(crate) fn run_resource(rank: &[u8], run: &str) -> Vec<u8> {
    let mut out = Buffer::default();
    for field in Reader::new(rank).map_while(Result::ok) {
        match (field.number, field.value) {
            (ENTITY_REFS, _) => {}
            (ATTRIBUTES, WireValue::Bytes(bytes)) => {
                if KeyValue::decode(bytes).is_ok_and(|entry| is_about_run(&entry)) {
                    out.delimited(ATTRIBUTES, bytes);
                }
            }
            _ => copy(&field, &mut out),
        }
    }
    let (mut value, mut entry) = (Buffer::default(), Buffer::default());
    value.text(1, run);
    entry.text(1, attribute::SERVICE_INSTANCE_ID.name);
    entry.delimited(2, value.as_slice());
    out.delimited(ATTRIBUTES, entry.as_slice());
    out.into_vec()
}

fn is_about_run(entry: &KeyValue<'_>) -> bool {
    const RANK: [&str; 4] = [
        attribute::TRAIN_RANK.name,
        attribute::TRAIN_LOCAL_RANK.name,
        attribute::SERVICE_INSTANCE_ID.name,
        // Counters of a run continue across its attempts.
        attribute::TRAIN_ATTEMPT.name,
    ];
    let is_of = |prefix: &str| entry.key.as_bytes().starts_with(prefix.as_bytes());
    !RANK.iter().any(|name| entry.key == *name) && !is_of("host.") && !is_of("process.")
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::view::Resource;
    use pulsetrain_run::label;

    use super::*;

    fn resource(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Buffer::default();
        for (key, value) in entries {
            let (mut any, mut entry) = (Buffer::default(), Buffer::default());
            any.text(1, value);
            entry.text(1, key);
            entry.delimited(2, any.as_slice());
            out.delimited(ATTRIBUTES, entry.as_slice());
        }
        out.into_vec()
    }

    #[test]
    fn ranks_of_a_run_share_one_run_resource() {
        let of_rank = |rank: &str, host: &str| {
            let instance = format!("r/{rank}");
            let rank = resource(&[
                ("service.name", "trainer"),
                ("service.instance.id", &instance),
                ("host.name", host),
                ("process.pid", rank),
                ("train.run.id", "r"),
                ("train.rank", rank),
                ("train.local_rank", rank),
                ("team", "speech"),
            ]);
            run_resource(&rank, "r")
        };
        assert_eq!(of_rank("0", "a"), of_rank("1", "b"));
        let run = of_rank("0", "a");
        let attributes = Resource::decode(&run).unwrap().attributes;
        let pairs: Vec<(String, String)> = attributes
            .into_iter()
            .map(Result::unwrap)
            .map(|entry| {
                let value = label(entry.value.unwrap_or_default()).unwrap_or_default();
                (entry.key.to_string(), value.to_owned())
            })
            .collect();
        let expected = [
            ("service.name", "trainer"),
            ("train.run.id", "r"),
            ("team", "speech"),
            ("service.instance.id", "r"),
        ];
        assert_eq!(
            pairs,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }
}
