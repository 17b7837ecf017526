use proptest::prelude::*;

use super::*;

fn at(secs: f64) -> UnixNanos {
    UnixNanos((secs * 1e9).round() as u64)
}

fn step(attempt: i64, number: i64, start: f64, end: f64) -> RunStep {
    RunStep {
        attempt,
        number,
        covered_start: at(start),
        start: at(start),
        end: at(end),
        data_secs: 0.0,
        dispatch_secs: 0.0,
    }
}

fn interval(used_for: Use, attempt: i64, start: f64, end: f64) -> Interval {
    Interval {
        used_for,
        attempt,
        start: at(start),
        end: at(end),
    }
}

/// Returns the settled time in seconds.
fn wall_secs(timeline: &Timeline) -> f64 {
    timeline.settled.secs_since(timeline.started.unwrap_or_default())
}

fn totals(timeline: &Timeline) -> Vec<(Use, f64)> {
    timeline.totals().collect()
}

#[test]
fn every_second_of_a_restarted_run_has_exactly_one_use() {
    let mut timeline = Timeline::new();
    timeline.set_stall_secs(60.0);
    // 10 s preparation with 4 s of compilation inside it.
    timeline.add_interval(interval(Use::TrainingPreparation, 0, 0.0, 10.0));
    timeline.add_interval(interval(Use::ProgramStartup, 0, 6.0, 10.0));
    // Ten steps of 2 s, each with a data wait of 0.5 s. The first takes 5 s. After step 5 a checkpoint takes
    // 3 s.
    let mut now = 10.0;
    for number in 0..10 {
        let secs = if number == 0 { 5.0 } else { 2.0 };
        timeline.add_step(RunStep {
            data_secs: 0.5,
            ..step(0, number, now, now + secs)
        });
        now += secs;
        if number == 5 {
            timeline.add_interval(interval(Use::CheckpointSave, 0, now, now + 3.0));
            now += 3.0;
        }
    }
    // Killed at 36 s, back at 50 s. It prepares until 55 s, restores inside it, and repeats the steps 6 to 9.
    timeline.add_interval(interval(Use::TrainingPreparation, 1, 50.0, 55.0));
    timeline.add_interval(interval(Use::CheckpointRestore, 1, 53.0, 55.0));
    now = 55.0;
    for number in 6..16 {
        timeline.add_step(step(1, number, now, now + 2.0));
        now += 2.0;
    }
    timeline.finish(at(80.0));
    assert_eq!(
        totals(&timeline),
        [
            // Ten steps less their data wait, and six new steps of the second attempt.
            (Use::Productive, 10.0 * 1.5 + 6.0 * 2.0),
            (Use::TrainingPreparation, 6.0 + 3.0),
            (Use::ProgramStartup, 4.0 + 3.0),
            (Use::CheckpointSave, 3.0),
            (Use::CheckpointRestore, 2.0),
            (Use::DataWait, 5.0),
            (Use::Repeated, 8.0),
            (Use::Recovery, 14.0),
            (Use::Other, 5.0),
        ]
    );
    assert_eq!(wall_secs(&timeline), 80.0);
    assert_eq!(timeline.goodput(), Some(27.0 / 80.0));
}

#[test]
fn asynchronous_checkpoint_costs_no_time() {
    let mut timeline = Timeline::new();
    timeline.add_interval(interval(Use::CheckpointSave, 0, 3.0, 7.0));
    (0..10).for_each(|number| timeline.add_step(step(0, number, number as f64, number as f64 + 1.0)));
    timeline.finish(at(10.0));
    assert_eq!(totals(&timeline), [(Use::Productive, 10.0)]);
}

#[test]
fn records_of_every_tenth_step_cover_the_steps_between() {
    let mut timeline = Timeline::new();
    // A second each; after step 15 a save of 2 s, in step 25 an evaluation of 3 s.
    timeline.add_interval(interval(Use::CheckpointSave, 0, 15.0, 17.0));
    timeline.add_interval(interval(Use::Evaluation, 0, 27.0, 30.0));
    for (number, covered_start, end) in [(10, 9.0, 10.0), (20, 10.0, 22.0), (30, 22.0, 35.0)] {
        timeline.add_step(RunStep {
            covered_start: at(covered_start),
            data_secs: if number == 10 { 0.1 } else { 1.0 },
            ..step(0, number, end - 1.0, end)
        });
    }
    timeline.finish(at(35.0));
    assert_eq!(
        totals(&timeline),
        [
            (Use::Productive, 21.0 - 2.1),
            (Use::CheckpointSave, 2.0),
            (Use::Evaluation, 3.0),
            (Use::DataWait, 2.1)
        ]
    );
}

#[test]
fn stall_is_counted_while_it_lasts() {
    let mut timeline = Timeline::new();
    timeline.set_stall_secs(30.0);
    (0..10).for_each(|number| timeline.add_step(step(0, number, number as f64, number as f64 + 1.0)));
    timeline.stall_until(at(50.0));
    assert_eq!(totals(&timeline), [(Use::Productive, 10.0), (Use::Stall, 40.0)]);
    // The step that ends the stall began before it, so only its end is new.
    timeline.add_step(step(0, 10, 10.0, 51.0));
    assert_eq!(totals(&timeline), [(Use::Productive, 11.0), (Use::Stall, 40.0)]);
}

#[test]
fn overlapping_intervals_count_once() {
    let mut timeline = Timeline::new();
    timeline.add_interval(interval(Use::TrainingPreparation, 0, 1.0, 4.0));
    timeline.add_interval(interval(Use::TrainingPreparation, 0, 0.0, 3.0));
    timeline.finish(at(4.0));
    assert_eq!(totals(&timeline), [(Use::TrainingPreparation, 4.0)]);
}

fn uses() -> impl Strategy<Value = Use> {
    prop_oneof![
        Just(Use::TrainingPreparation),
        Just(Use::ProgramStartup),
        Just(Use::CheckpointSave),
        Just(Use::CheckpointRestore),
        Just(Use::Evaluation),
    ]
}

proptest! {
    #[test]
    fn totals_add_up_to_the_wall_time(
        events in proptest::collection::vec((0..4_u8, uses(), 0..3_i64, 0..500_u64, 1..90_u64, 0.0..5.0_f64), 0..60)
    ) {
        let mut timeline = Timeline::new();
        timeline.set_stall_secs(50.0);
        let (mut attempt, mut before) = (0, UnixNanos::default());
        for (what, used_for, more, start, length, wait) in events {
            let (start, end) = (UnixNanos(start * 1_000_000_007), UnixNanos((start + length) * 1_000_000_007));
            match what {
                0 => timeline.add_interval(Interval { used_for, attempt: attempt + more % 2, start, end }),
                1 => timeline.stall_until(end),
                _ => {
                    attempt += i64::from(more == 2);
                    // Some records cover the steps since the record before.
                    let covered_start = if more == 0 { before.min(start) } else { start };
                    before = end;
                    timeline.add_step(RunStep { attempt, number: more, covered_start, start, end, data_secs: wait, dispatch_secs: wait });
                }
            }
            let sum: u64 = timeline.totals.values().sum();
            let settled = timeline.started.map_or(0, |started| timeline.settled.0 - started.0);
            prop_assert_eq!(sum, settled);
        }
    }
}
