//! Tests that sinks are independent: with live sources, a sink receives the same batches at the same times with or
//! without other sinks.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use pulsetrain_pipeline::{GiveUp, QueueConfig, Requirement, SinkCounts, clock};
use tokio::time::sleep;

use crate::{
    fake_sink::{Answer, Attempt, Move, batch},
    scenario::{End, Op, Scenario, Size, millis, queues, runtime, scripts, sizes},
};

const SECOND: Duration = Duration::from_secs(1);

/// Scripts and offers that never coincide, because their order would be undefined: offers are at full seconds, and every
/// duration of a sink is a number of seconds plus one millisecond.
fn worlds() -> impl Strategy<Value = Scenario> {
    let off_the_second = (0_u64..4).prop_map(|seconds| Duration::from_millis(seconds * 1000 + 1));
    let ops = prop_oneof![
        3 => sizes().prop_map(Op::Offer),
        1 => (1_u32..4).prop_map(|seconds| Op::Pass(seconds * SECOND)),
    ];
    let end = (0_u32..20).prop_map(|seconds| End::Drain(seconds * SECOND + SECOND / 2));
    (
        vec((scripts(off_the_second), Just(Requirement::Required)), 2..4),
        queues(),
        prop_oneof![
            millis(20..20_000).prop_map(GiveUp::AfterOutage),
            millis(20..20_000).prop_map(GiveUp::WhenFull),
        ],
        vec(ops, 0..60),
        end,
    )
        .prop_map(|(sinks, queue, give_up, ops, end)| Scenario {
            sinks,
            queue,
            give_up,
            ops,
            end,
        })
}

/// The deliveries of the first sink, in time since the start, and its counts in the ledger.
type Seen = (Vec<(u32, Duration, Option<(Duration, Answer)>)>, SinkCounts);

async fn happen(scenario: &Scenario) -> Seen {
    let (builder, witnesses) = scenario.build();
    let (pipeline, ingress) = builder.start();
    // From here on, the clock is at a full tick.
    sleep(SECOND).await;
    let start = clock::now();
    for (id, op) in (0..).zip(&scenario.ops) {
        match *op {
            Op::Offer(Size { items, bytes }) => {
                ingress
                    .try_send_or_drop(batch(id, items, bytes))
                    .expect("the pipeline is open");
            }
            Op::Pass(time) => sleep(time).await,
            Op::Send(..) | Op::Push(_) => unreachable!("live sources do not send"),
        }
    }
    let End::Drain(within) = scenario.end else {
        unreachable!("these worlds end with a drain")
    };
    let mut counts = pipeline.drain(within).await.remove(0).counts;
    // The instant and the number of the account differ between worlds.
    counts.failure = None;
    counts.account = 0;
    let seen = |attempt: &Attempt| {
        let answered = attempt.answered.map(|(at, answer)| (at - start, answer));
        (attempt.id, attempt.began - start, answered)
    };
    (witnesses[0].books().attempts.iter().map(seen).collect(), counts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn sink_receives_the_same_batches_with_and_without_other_sinks(world in worlds()) {
        let alone = Scenario { sinks: vec![world.sinks[0].clone()], ..world.clone() };
        prop_assert_eq!(runtime().block_on(happen(&world)), runtime().block_on(happen(&alone)));
    }
}

#[test]
fn hanging_sink_does_not_delay_its_neighbour() {
    let at_once = |answer: Answer| -> (Vec<Move>, _) { (vec![answer.at_once()], Requirement::Required) };
    let world = Scenario {
        sinks: vec![at_once(Answer::Take), at_once(Answer::Hang)],
        queue: QueueConfig {
            max_batches: 100,
            max_bytes: 1000,
        },
        give_up: GiveUp::AfterOutage(SECOND),
        ops: vec![Op::Offer(Size { items: 1, bytes: 10 }); 100],
        end: End::Drain(SECOND),
    };
    let (attempts, counts) = runtime().block_on(happen(&world));
    assert_eq!(counts.delivered, 100);
    assert!(
        attempts.iter().all(|(_, began, _)| began.is_zero()),
        "all of them at the instant of the offer"
    );
}
