use super::*;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn config() -> RetryConfig {
    RetryConfig {
        initial: secs(1),
        multiplier: 2.0,
        max: secs(5),
        give_up: GiveUp::AfterOutage(secs(20)),
        ..RetryConfig::default()
    }
    .without_jitter()
}

/// Fails every attempt at once and returns the waits until the policy gives up.
fn waits_until_given_up(retry: &mut Retry, start: Instant) -> (Vec<Duration>, DropReason) {
    let (mut waits, mut now) = (Vec::new(), start);
    loop {
        match retry.failed(now, None) {
            Step::TryAt(at) => {
                waits.push(at - now);
                now = at;
            }
            Step::GiveUp(reason) => return (waits, reason),
        }
    }
}

#[test]
fn backoff_grows_to_the_maximum_and_ends_when_the_outage_is_too_long() {
    let (waits, reason) = waits_until_given_up(&mut Retry::new(config()), clock::now());
    assert_eq!(waits, [secs(1), secs(2), secs(4), secs(5), secs(5), secs(5)]);
    assert_eq!(reason, DropReason::RetriesExhausted);
}

#[test]
fn first_batch_is_sent_immediately() {
    let start = clock::now();
    assert_eq!(Retry::new(config()).next_batch(start), Step::TryAt(start));
}

#[test]
fn next_batch_after_a_failure_is_never_scheduled_in_the_past() {
    let start = clock::now();
    let mut retry = Retry::new(config());
    retry.failed(start, None);
    assert_eq!(retry.next_batch(start), Step::TryAt(start + secs(1)));
    assert_eq!(retry.next_batch(start + secs(2)), Step::TryAt(start + secs(2)));
}

#[test]
fn retry_delay_of_the_receiver_overrides_the_backoff() {
    for wish in [Duration::from_millis(3), secs(299)] {
        let start = clock::now();
        let mut retry = Retry::new(RetryConfig::default());
        assert_eq!(retry.failed(start, Some(wish)), Step::TryAt(start + wish));
        assert_eq!(
            retry.next_batch(start),
            Step::TryAt(start + wish),
            "the wish also holds for the next batch"
        );
    }
}

#[test]
fn retry_delay_of_the_receiver_is_capped() {
    let start = clock::now();
    let mut retry = Retry::new(RetryConfig {
        max_after: secs(60),
        ..config()
    });
    assert_eq!(
        retry.failed(start, Some(secs(86_400))),
        Step::TryAt(start + secs(60))
    );
    assert_eq!(
        retry.failed(start, Some(Duration::MAX)),
        Step::TryAt(start + secs(60))
    );
}

#[test]
fn zero_retry_delay_falls_back_to_the_backoff() {
    let start = clock::now();
    assert_eq!(
        Retry::new(config()).failed(start, Some(Duration::ZERO)),
        Step::TryAt(start + secs(1))
    );
}

#[test]
fn failure_streak_is_counted_per_sink_across_batches() {
    let start = clock::now();
    let mut retry = Retry::new(config());
    retry.failed(start, None);
    let later = start + secs(19);
    assert!(
        matches!(retry.next_batch(later), Step::TryAt(_)),
        "the next batch joins the streak"
    );
    assert!(matches!(retry.failed(later, None), Step::TryAt(_)));
    assert_eq!(
        retry.failed(start + secs(20), None),
        Step::GiveUp(DropReason::RetriesExhausted)
    );
}

#[test]
fn open_circuit_allows_one_probe_per_interval() {
    let mut retry = Retry::new(config());
    let start = clock::now();
    waits_until_given_up(&mut retry, start);
    let opened = start + secs(22);
    assert_eq!(retry.next_batch(opened), Step::GiveUp(DropReason::Unreachable));
    assert_eq!(
        retry.next_batch(opened + secs(4)),
        Step::GiveUp(DropReason::Unreachable)
    );

    let probe = opened + secs(5);
    assert_eq!(retry.next_batch(probe), Step::TryAt(probe));
    assert_eq!(
        retry.failed(probe, None),
        Step::GiveUp(DropReason::Unreachable),
        "a probe is not tried again"
    );
    assert_eq!(retry.next_batch(probe), Step::GiveUp(DropReason::Unreachable));

    let second = probe + secs(5);
    assert_eq!(retry.next_batch(second), Step::TryAt(second));
}

#[test]
fn response_closes_the_circuit_and_resets_the_backoff() {
    let mut retry = Retry::new(config());
    let start = clock::now();
    waits_until_given_up(&mut retry, start);
    retry.answered();
    let now = start + secs(23);
    assert_eq!(retry.next_batch(now), Step::TryAt(now));
    assert_eq!(retry.failed(now, None), Step::TryAt(now + secs(1)));
}

#[test]
fn jitter_shortens_a_delay_by_at_most_its_fraction() {
    let start = clock::now();
    let mut waits: Vec<Duration> = Vec::new();
    for seed in 0..1000 {
        let mut retry = Retry::new(RetryConfig {
            jitter: 0.5,
            ..config()
        });
        retry.chance = fastrand::Rng::with_seed(seed);
        match retry.failed(start, None) {
            Step::TryAt(at) => waits.push(at - start),
            Step::GiveUp(reason) => panic!("given up: {reason}"),
        }
    }
    waits.sort();
    let (shortest, longest) = (waits[0], waits[999]);
    assert!(
        Duration::from_millis(500) <= shortest && shortest < Duration::from_millis(550),
        "{shortest:?}"
    );
    assert!(
        Duration::from_millis(950) < longest && longest <= secs(1),
        "{longest:?}"
    );
}

#[test]
fn extreme_retry_configuration_does_not_panic() {
    for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
        let config = RetryConfig {
            initial: Duration::MAX,
            multiplier: odd,
            max: Duration::MAX,
            jitter: odd,
            max_after: Duration::MAX,
            give_up: GiveUp::AfterOutage(Duration::MAX),
        };
        let mut retry = Retry::new(config);
        for after in [None, Some(Duration::MAX), None] {
            assert!(matches!(retry.failed(clock::now(), after), Step::TryAt(_)));
        }
    }
}
