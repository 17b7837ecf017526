//! Random numbers that are the same on every machine and in every release: SplitMix64 (Steele, Lea, Flood: "Fast Splittable
//! Pseudorandom Number Generators", OOPSLA 2014).

use std::f64::consts::TAU;

/// The increment of the state for every number: 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Returns the stream `stream` of a seed. The streams of a seed are independent, so that a fault in one part of the job does
    /// not change the noise of the others.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(mixed(seed ^ mixed(stream.wrapping_add(GAMMA))))
    }

    /// Returns 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mixed(self.0)
    }

    /// Returns a number from 0 up to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normally distributed number (Box-Muller), cut at four standard deviations.
    pub(crate) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let standard = radius * (TAU * self.uniform()).cos();
        mean + deviation * standard.clamp(-4.0, 4.0)
    }

    /// Returns a positive factor around 1 whose logarithm has this standard deviation.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        self.normal(0.0, deviation).exp()
    }

    /// Draws true with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}

/// Returns bits that depend on every bit of the state.
fn mixed(state: u64) -> u64 {
    let bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn streams_do_not_continue_the_numbers_of_other_streams() {
        let numbers = |stream| {
            let mut random = Random::new(0, stream);
            [(); 8].map(|()| random.next())
        };
        let (one, next) = (numbers(1), numbers(2));
        assert!(
            one.iter().all(|number| !next.contains(number)),
            "{one:?} {next:?}"
        );
    }

    #[test]
    fn streams_repeat_and_differ_from_each_other() {
        let numbers = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (random.next(), random.next())
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
    }

    #[test]
    fn normal_numbers_have_their_mean_and_deviation() {
        let mut random = Random::new(7, 0);
        let numbers: Vec<f64> = (0..10_000).map(|_| random.normal(3.0, 0.5)).collect();
        let mean = numbers.iter().sum::<f64>() / 10_000.0;
        let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / 10_000.0;
        assert!((mean - 3.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() - 0.5).abs() < 0.02, "{variance}");
    }
}
