//! KempnerForge: standard output of a dense model.

use crate::Imported;

#[test]
fn configuration_and_messages_are_events() {
    let imported = Imported::of("kempnerforge", "kempnerforge/dense.stdout");
    let named = |name: &str| {
        imported
            .events
            .iter()
            .filter(|event| event["eventName"] == name)
            .count()
    };
    assert_eq!((named("run.config"), named("run.message")), (1, 4));
    assert_eq!(imported.events.len(), 5);
}
