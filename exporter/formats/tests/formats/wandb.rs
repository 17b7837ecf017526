//! A wandb file of TorchSpec, written offline.

use crate::{
    Imported,
    imported::{attributes, sample},
    upstream,
};

const FILE: &str = "torchspec/perf.wandb";
/// A field of `Record`.
const RUN: u64 = 17;

/// The messages in `field` of the records.
fn messages(field: u64) -> Vec<Vec<u8>> {
    let records = upstream::wandb_records(&sample(FILE));
    let of_field = |record: &Vec<u8>| Some(upstream::message(record).get(&field)?.bytes().to_vec());
    records.iter().filter_map(of_field).collect()
}

#[test]
fn wandb_configuration_becomes_one_option_per_key() {
    let imported = Imported::new("wandb", FILE);
    let runs = messages(RUN);
    let mut expected = upstream::items(upstream::message(&runs[0])[&4].bytes(), 1);
    expected.retain(|(key, _)| key != "_wandb");
    let mut options: Vec<_> = imported.events.iter().map(attributes).collect();
    // The environment is not an option, and the program did not set the labels of the run.
    options.retain(|option| {
        let name = option.get("run.option.name");
        name.is_some_and(|name| !name.starts_with("wandb."))
    });
    assert_eq!(options.len(), expected.len());
    for (option, (key, json)) in options.iter().zip(expected) {
        assert_eq!(option["run.option.name"], key);
        let expected = if json == "null" {
            ""
        } else {
            json.trim_matches('"')
        };
        assert_eq!(option["run.option.value"], expected, "{key}");
    }
}
