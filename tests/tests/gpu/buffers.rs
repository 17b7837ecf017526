//! The driver's sample buffers: every sample is in a histogram exactly once, with the driver's timestamp.

use crate::watch::Watch;

/// The interval and the capacity of the scenario's buffers.
const EVERY: f64 = 0.1;
const KEPT: usize = 120;

/// Returns the power of a sample according to the scenario.
fn watts(sample: usize) -> f64 {
    let second = sample as f64 * EVERY;
    // NVML has integer milliwatts.
    (500_000.0 + 200_000.0 * (std::f64::consts::TAU * second / 20.0).sin()).trunc() / 1_000.0
}

#[test]
fn every_power_sample_is_in_the_histogram_once_with_the_last_timestamp() {
    let (fake, watch) = Watch::of_h100("gpus: {count: 1}");
    let metric = "gpu.power_distribution";
    let (mut count, mut sum) = (1, watts(0));
    watch.wait_value(metric, &[], 1.0);
    let mut newest = 0;
    // Irregular reads: less than one sample apart, a few, and more than a second.
    for second in [0.05, 0.2, 0.75, 2.0, 7.55, 7.61, 9.99] {
        fake.at(second);
        let last = (second / EVERY).floor() as usize;
        let new: Vec<usize> = (newest + 1..=last).collect();
        count += new.len();
        sum += new.iter().map(|sample| watts(*sample)).sum::<f64>();
        newest = last;
        let stamp = fake.unix_nanos(last as f64 * EVERY) / 1_000;
        let point = watch.wait_value(metric, &[], count as f64);
        assert!(
            (point.sum - sum).abs() < 1e-6 * sum,
            "{} and not {sum}",
            point.sum
        );
        assert_eq!(point.time / 1_000, stamp, "at second {second}");
    }
    watch.wait_passes(3);
    let counts: Vec<f64> = watch
        .points(metric, &[])
        .iter()
        .map(|point| point.value)
        .collect();
    assert_eq!(counts.last(), Some(&(count as f64)), "nothing is drained twice");
    assert!(counts.is_sorted());
}

#[test]
fn overflowed_sample_buffer_counts_the_remaining_samples() {
    let (fake, watch) = Watch::of_h100("gpus: {count: 1}");
    let metric = "gpu.utilization_distribution";
    watch.wait_value(metric, &[], 1.0);
    fake.at(1_000.0);
    let complete = (1 + KEPT) as f64;
    let point = watch.wait_for(metric, &[], |point| point.value > 1.0);
    assert_eq!(point.value, complete);
    // The utilization is 60 %, plus or minus 40 in waves of 20 s; these are the samples of the 12 s before second 1,000.
    assert!((point.sum / complete - 0.6).abs() < 0.2, "{}", point.sum);
}
