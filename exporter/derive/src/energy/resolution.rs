//! The resolution of the times of a rank's steps, learned from the times.

use super::window::Window;

/// The resolutions of times in logs, the coarsest first.
const RESOLUTIONS: [u64; 4] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000];

/// The share of the steps that have a border on a multiple of a resolution if the times have that resolution. Of steps with times
/// in milliseconds, 19 % have a border on a multiple of 10 ms.
const PART: f64 = 0.4;

/// The number of steps after which earlier ones count half.
const MEMORY: u32 = 64;

/// The number of steps with a border on a multiple of each resolution.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resolution {
    steps: u32,
    multiples: [u32; RESOLUTIONS.len()],
}

impl Resolution {
    /// Records the times of a step.
    pub(super) fn observe(&mut self, window: Window) {
        if self.steps >= MEMORY {
            self.steps /= 2;
            self.multiples.iter_mut().for_each(|count| *count /= 2);
        }
        self.steps += 1;
        for (count, resolution) in self.multiples.iter_mut().zip(RESOLUTIONS) {
            let is_multiple =
                window.start.0.is_multiple_of(resolution) || window.end.0.is_multiple_of(resolution);
            *count += u32::from(is_multiple);
        }
    }

    /// Returns the resolution in nanoseconds; zero if it is finer than a millisecond.
    pub(super) fn nanos(&self) -> u64 {
        let enough = PART * f64::from(self.steps);
        let mut known = self.multiples.iter().zip(RESOLUTIONS);
        known
            .find(|(count, _)| **count > 0 && f64::from(**count) >= enough)
            .map_or(0, |(_, resolution)| resolution)
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::UnixNanos;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn learned(windows: impl IntoIterator<Item = (u64, u64)>) -> u64 {
        let mut resolution = Resolution::default();
        for (start, end) in windows {
            resolution.observe(Window::new(UnixNanos(start), UnixNanos(end)));
        }
        resolution.nanos()
    }

    #[test]
    fn second_resolution_is_detected_with_exact_durations() {
        assert_eq!(
            learned((1..9).map(|n| (n * SECOND - 512_345_678, n * SECOND))),
            SECOND
        );
    }

    #[test]
    fn single_time_on_a_full_second_keeps_millisecond_resolution() {
        let ends = (0..40).map(|n| n * 377_000_000);
        assert_eq!(learned(ends.map(|end| (end, end + 377_000_000))), 1_000_000);
    }

    #[test]
    fn nanosecond_times_need_no_resolution_correction() {
        assert_eq!(learned((1..9).map(|n| (n * SECOND + 1, (n + 1) * SECOND + 1))), 0);
    }
}
