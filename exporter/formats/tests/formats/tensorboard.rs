//! The configuration in event files, as text under a tag.

use crate::{
    Imported,
    imported::{attributes, sample},
    upstream,
};

const HF_TRAINER: &str = "hf-trainer/tensorboard/events.out.tfevents.1795221025.vm.20360.0";
const MAXTEXT: &str = "maxtext/tensorboard/events.out.tfevents.1795221261.vm";

#[test]
fn hugging_face_trainer_writes_its_configuration_as_one_text() {
    let imported = Imported::new("tensorboard", HF_TRAINER);
    let file = upstream::event_file(&sample(HF_TRAINER));
    let names: Vec<_> = imported
        .events
        .iter()
        .map(|event| event["eventName"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(names, ["run.config", "run.option"]);
    let body = imported.events[0]["body"]["stringValue"]
        .as_str()
        .unwrap_or_default();
    assert_eq!(body, file.texts[0].1);
}

#[test]
fn maxtext_writes_one_configuration_text_per_option() {
    let imported = Imported::new("tensorboard", MAXTEXT);
    let file = upstream::event_file(&sample(MAXTEXT));
    assert_eq!(file.texts.len(), 777);
    for (event, (tag, text)) in imported.events.iter().zip(&file.texts) {
        let attributes = attributes(event);
        assert_eq!(format!("{}/text_summary", attributes["run.option.name"]), *tag);
        assert_eq!(attributes["run.option.value"], *text);
    }
}
