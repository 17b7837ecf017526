//! Clean step time: the time that a rank worked itself, without its waits for other ranks.
//!
//! Ranks meet in the collectives of the backward pass, so all of them end a step at about the same time, and the duration of the
//! step does not show who was slow. With `p` the time before the backward pass (data, waits for samples, rollout, forward) and
//! `b` the backward pass:
//!
//! 1. **Arrival** (the clean-step rule of TraceML, github.com/traceopt-ai/traceml PR 165): a rank that arrives early waits for the
//!    last one, and the wait is inside its `b`:
//!    `wait_r = clamp(max_q p_q - p_r, 0, max(0, b_r - min_q b_q))`.
//! 2. **Pace**: while the last rank computes its gradients, bucket by bucket, the others wait for each of its buckets as well. The
//!    rank with the shortest `b` waited least; its backward pass is work. Another rank's own backward pass is as much shorter as
//!    its forward pass `f` is: `own_r = min(b_r - wait_r, b_min * f_r / f_min)`, with `b_min`, `f_min` of that rank. A GPU that is
//!    half as fast is so in both passes, and rule 1 alone sees the forward pass only.
//!
//! `clean_r = duration_r - b_r + own_r`. Without backward times of all ranks the clean time is the duration.

use super::rank_step::RankStep;

/// Returns the clean time of each rank in seconds, in the order of `ranks`.
pub(crate) fn clean_times(ranks: &[RankStep]) -> Vec<f64> {
    let durations = || ranks.iter().map(RankStep::duration).collect();
    let Some(backward) = ranks
        .iter()
        .map(|rank| rank.backward)
        .collect::<Option<Vec<f64>>>()
    else {
        return durations();
    };
    let before: Vec<f64> = ranks.iter().map(before_backward).collect();
    let last_arrival = before.iter().copied().fold(0.0, f64::max);
    let Some((slowest, shortest)) = backward
        .iter()
        .copied()
        .enumerate()
        .min_by(|one, other| one.1.total_cmp(&other.1))
    else {
        return durations();
    };
    let slowest_forward = ranks.get(slowest).and_then(|rank| rank.forward);
    ranks
        .iter()
        .zip(backward.iter().zip(&before))
        .map(|(rank, (backward, before))| {
            let wait = (last_arrival - before).clamp(0.0, (backward - shortest).max(0.0));
            let own = (backward - wait).min(paced(shortest, rank.forward, slowest_forward));
            (rank.duration() - backward + own).max(0.0)
        })
        .collect()
}

/// Returns the time before the backward pass.
fn before_backward(rank: &RankStep) -> f64 {
    rank.data.unwrap_or(0.0)
        + rank.dispatch_wait.unwrap_or(0.0)
        + rank.forward.unwrap_or(0.0)
        + rank.other_before_backward
}

/// Returns the upper bound of a rank's own backward pass from the ratio of the forward passes, or infinity
/// without these.
fn paced(shortest: f64, forward: Option<f64>, slowest_forward: Option<f64>) -> f64 {
    match (forward, slowest_forward) {
        (Some(forward), Some(slowest)) if slowest > 0.0 => shortest * forward / slowest,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::UnixNanos;

    fn rank(rank: i64, data: f64, forward: f64, backward: f64) -> RankStep {
        let end = ((data + forward + backward + 0.1) * 1e9).round() as u64;
        RankStep {
            data: Some(data),
            forward: Some(forward),
            backward: Some(backward),
            ..RankStep::new(rank, 1, UnixNanos(0), UnixNanos(end))
        }
    }

    fn rounded(times: &[f64]) -> Vec<f64> {
        times.iter().map(|time| (time * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn wait_for_a_late_arrival_is_not_work() {
        // Rank 1 loads its data 2 s longer. Rank 0 waits these 2 s inside its backward pass.
        let ranks = [rank(0, 0.1, 1.0, 4.0), rank(1, 2.1, 1.0, 2.0)];
        assert_eq!(rounded(&clean_times(&ranks)), [3.2, 5.2]);
    }

    #[test]
    fn slow_gpu_is_slow_in_both_passes() {
        // Rank 1 is slower by half: forward 1.5 s, backward 3 s. The others end with it.
        let ranks = [
            rank(0, 0.1, 1.0, 3.5),
            rank(1, 0.1, 1.5, 3.0),
            rank(2, 0.1, 1.0, 3.5),
        ];
        assert_eq!(rounded(&clean_times(&ranks)), [3.2, 4.7, 3.2]);
    }

    #[test]
    fn long_backward_pass_that_no_arrival_explains_is_work() {
        let ranks = [rank(0, 0.1, 1.0, 2.0), rank(1, 0.1, 1.0, 2.0)];
        assert_eq!(rounded(&clean_times(&ranks)), [3.2, 3.2]);
        let without_forward = [
            RankStep {
                forward: None,
                ..rank(0, 0.0, 0.0, 2.0)
            },
            RankStep {
                forward: None,
                ..rank(1, 0.0, 0.0, 3.0)
            },
        ];
        assert_eq!(rounded(&clean_times(&without_forward)), [2.1, 3.1]);
    }

    #[test]
    fn without_backward_times_the_duration_counts() {
        let ranks = [
            rank(0, 0.1, 1.0, 2.0),
            RankStep {
                backward: None,
                ..rank(1, 0.1, 1.0, 2.0)
            },
        ];
        assert_eq!(rounded(&clean_times(&ranks)), [3.2, 3.2]);
    }
}
