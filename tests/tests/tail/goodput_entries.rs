//! Exports of Cloud Logging that are followed: nobody says their end, whichever order their entries have.

use std::fs;

use pulsetrain_tests::{corpus, wait_until};

use crate::{
    values::assert_same_values,
    world::{World, imported},
};

#[test]
fn an_export_that_is_followed_is_whole_in_either_order() {
    for name in ["goodput_entries.jsonl", "goodput_entries.json"] {
        let original = corpus(&format!("written/{name}"));
        let world = World::new(name).with("--poll-interval=0.1");
        fs::copy(&original, world.path(name)).expect("an export can be copied");
        let expected = imported([original.as_path()], &[]);
        assert!(expected.of_kind("span").len() > 20);
        let follower = world.follow();
        wait_until("everything is delivered", || {
            world.delivered().of_kind("span").len() >= expected.of_kind("span").len()
        });
        let status = follower.stop();
        assert!(status.success(), "{name}: {status}");
        assert_same_values(&world.delivered(), &expected);
    }
}
