//! Tunix: standard error of two runs of reinforcement learning.

use crate::Imported;

const SAMPLES: [&str; 2] = [
    "tunix/colocated/stderr_absl.log",
    "tunix/rollout1_actor2/stderr_absl.log",
];

#[test]
fn prompts_and_completions_are_never_exported() {
    for name in SAMPLES {
        let imported = Imported::new("tunix", name);
        let all = format!("{:?}", imported.events);
        assert!(!all.contains("hello there") && !all.contains("Morgane"), "{name}");
    }
}
