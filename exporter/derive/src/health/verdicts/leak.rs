//! `memory_leak`: memory of a rank that grows steadily from step to step.
//!
//! The memory of each step enters blocks. Eight consecutive blocks, each with a greater mean than the one
//! before, are a leak if they grow by 3 % or more together and no single jump is more than half of it. Memory
//! that only fluctuates does so with a probability of 1/8! for each eight blocks, and then rarely by 3 %.
//! Blocks of 16 steps detect fast leaks after 128 steps, and blocks of 256 steps slow ones after 2048. The
//! first 20 steps of an attempt are ignored, because the allocator fills its caches. Resolved when eight
//! blocks grow by less than 1 %.

use std::collections::{BTreeMap, VecDeque};

use super::super::{
    rank_step::RankStep,
    verdict::{Board, Bytes, Subject, VerdictKind},
};

const BLOCKS: usize = 8;
const SCALES: [u32; 2] = [16, 256];
const GROWTH: f64 = 0.03;
const STEADY: f64 = 0.01;
const LARGEST_PART: f64 = 0.5;
const WARMUP_STEPS: u32 = 20;

/// Watches the memory of the ranks of a run.
#[derive(Debug, Default)]
pub(crate) struct MemoryLeaks {
    attempt: i64,
    ranks: BTreeMap<i64, RankMemory>,
}

#[derive(Debug, Default)]
struct RankMemory {
    steps: u32,
    /// The growth of the framework's and of the host's memory, at each scale.
    growth: [[Growth; SCALES.len()]; 2],
    /// Whether each of them is a leak.
    leaks: [[bool; SCALES.len()]; 2],
}

/// The means of the newest blocks of one series.
#[derive(Clone, Debug, Default)]
struct Growth {
    sum: f64,
    count: u32,
    means: VecDeque<f64>,
}

impl MemoryLeaks {
    /// Returns the number of tracked ranks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Adds a step of a rank.
    pub(crate) fn on_rank_step(&mut self, attempt: i64, step: &RankStep, board: &mut Board) {
        if self.attempt != attempt {
            self.attempt = attempt;
            self.ranks.clear();
        }
        let series = [("framework", step.framework_memory), ("host", step.host_memory)];
        if series.iter().all(|(_, bytes)| bytes.is_none()) {
            return;
        }
        let memory = self.ranks.entry(step.rank).or_default();
        memory.steps = memory.steps.saturating_add(1);
        if memory.steps <= WARMUP_STEPS {
            return;
        }
        let mut is_steady = false;
        for (kind, (name, bytes)) in series.into_iter().enumerate() {
            let Some(bytes) = bytes.filter(|bytes| bytes.is_finite()) else {
                continue;
            };
            for (scale, block) in SCALES.into_iter().enumerate() {
                let growth = &mut memory.growth[kind][scale];
                if !growth.push(bytes, block) {
                    continue;
                }
                let leaks = &mut memory.leaks[kind][scale];
                match growth.verdict() {
                    Some(true) => {
                        *leaks = true;
                        board.open(
                            VerdictKind::MemoryLeak,
                            Subject::Rank(step.rank),
                            step.end,
                            || growth.reason(step.rank, name, block),
                        );
                    }
                    Some(false) => (*leaks, is_steady) = (false, true),
                    None => {}
                }
            }
        }
        if is_steady && !memory.leaks.as_flattened().contains(&true) {
            board.resolve(VerdictKind::MemoryLeak, &Subject::Rank(step.rank), step.end);
        }
    }
}

impl Growth {
    /// Adds a value. Returns whether it completes a block.
    fn push(&mut self, value: f64, block: u32) -> bool {
        self.sum += value;
        self.count += 1;
        if self.count < block {
            return false;
        }
        if self.means.len() >= BLOCKS {
            self.means.pop_front();
        }
        self.means.push_back(self.sum / f64::from(self.count));
        (self.sum, self.count) = (0.0, 0);
        true
    }

    /// Returns whether the blocks grow (`Some(true)`) or do not grow (`Some(false)`). Returns `None` if neither is
    /// certain.
    fn verdict(&self) -> Option<bool> {
        if self.means.len() < BLOCKS {
            return None;
        }
        let (first, last) = (*self.means.front()?, *self.means.back()?);
        let total = last - first;
        if total < STEADY * first {
            return Some(false);
        }
        let steps = || self.means.iter().zip(self.means.iter().skip(1));
        let grows = steps().all(|(one, next)| next > one);
        let largest = steps().map(|(one, next)| next - one).fold(0.0, f64::max);
        (grows && total >= GROWTH * first && largest <= LARGEST_PART * total).then_some(true)
    }

    fn reason(&self, rank: i64, name: &str, block: u32) -> String {
        let first = self.means.front().copied().unwrap_or_default();
        let last = self.means.back().copied().unwrap_or_default();
        let steps = f64::from(block) * (BLOCKS - 1) as f64;
        format!(
            "Memory of the {name} on rank {rank} grew from {} to {} in {steps:.0} steps, {} a step.",
            Bytes(first),
            Bytes(last),
            Bytes((last - first) / steps)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::UnixNanos, *};

    fn opened(memory: impl Fn(i64, i64) -> f64, steps: i64) -> Vec<(Subject, bool, u64)> {
        let (mut leaks, mut board) = (MemoryLeaks::default(), Board::default());
        for number in 0..steps {
            for rank in 0..3 {
                let time = UnixNanos(number as u64);
                let step = RankStep {
                    framework_memory: Some(memory(rank, number)),
                    ..RankStep::new(rank, number, time, time)
                };
                leaks.on_rank_step(0, &step, &mut board);
            }
        }
        board.map_changes(|change| (change.subject, change.is_open, change.time.0))
    }

    fn noise(rank: i64, number: i64) -> f64 {
        let seed = (rank * 1_000_003 + number) as u64;
        (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1_u32 << 24) - 0.5
    }

    #[test]
    fn steady_growth_is_a_leak_of_that_rank_until_it_stops() {
        let memory = |rank, number: i64| {
            let leaked = if rank == 1 {
                (number - 100).clamp(0, 400) as f64 * 2e7
            } else {
                0.0
            };
            4e10 + leaked + 1e8 * noise(rank, number)
        };
        let changes = opened(memory, 1000);
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert_eq!((&changes[0].0, changes[0].1), (&Subject::Rank(1), true));
        assert!(changes[0].2 < 100 + 160, "{changes:?}");
        assert_eq!((&changes[1].0, changes[1].1), (&Subject::Rank(1), false));
    }

    #[test]
    fn slow_leak_is_found_in_longer_blocks() {
        let changes = opened(
            |rank, number| 4e10 + if rank == 2 { number as f64 * 1e6 } else { 0.0 },
            3000,
        );
        assert_eq!(
            changes.iter().map(|change| &change.0).collect::<Vec<_>>(),
            [&Subject::Rank(2)]
        );
    }

    #[test]
    fn noise_jumps_and_sawtooth_memory_are_not_a_leak() {
        let memory = |rank: i64, number: i64| match rank {
            0 => 4e10 * (1.0 + 0.1 * noise(rank, number)),
            1 => 4e10 + if number > 500 { 1e10 } else { 0.0 },
            _ => 4e10 + (number % 100) as f64 * 1e8,
        };
        assert_eq!(opened(memory, 20_000), []);
    }
}
