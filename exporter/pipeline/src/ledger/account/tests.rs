//! Tests of the sums of one sink, ticket by ticket.

use super::*;

fn dropped(reason: DropReason, items: u64, message: Option<&str>) -> Dropped {
    Dropped {
        reason,
        signal: Signal::Metrics,
        items,
        message: message.map(str::to_owned),
    }
}

#[test]
fn settled_tickets_move_items_from_queued_to_delivered_and_dropped() {
    let account = Account::new("test");
    let (first, second, third) = (
        account.accept(Signal::Metrics, 5, 10),
        account.accept(Signal::Metrics, 7, 20),
        account.accept(Signal::Metrics, 11, 30),
    );
    assert_eq!((account.counts().accepted, account.counts().queued), (23, 23));
    assert_eq!(
        (account.counts().queued_batches, account.counts().queued_bytes),
        (3, 60)
    );
    first.deliver_except(0, "");
    second.deliver_except(3, "three are too old");
    third.lose(DropReason::Refused, "no such tenant");
    let counts = account.counts();
    assert_eq!((counts.accepted, counts.delivered, counts.queued), (23, 9, 0));
    assert_eq!((counts.queued_batches, counts.queued_bytes), (0, 0));
    assert_eq!(
        counts.dropped,
        [
            dropped(DropReason::Rejected, 3, Some("three are too old")),
            dropped(DropReason::Refused, 11, Some("no such tenant")),
        ]
    );
    assert_eq!(
        (counts.dropped_items(), counts.dropped_for(DropReason::Refused)),
        (14, 11)
    );
}

#[test]
fn losses_are_counted_per_signal_with_the_latest_message() {
    let account = Account::new("test");
    for (signal, message) in [(Signal::Logs, "no logs"), (Signal::Traces, "too old")] {
        account.accept(signal, 2, 8).lose(DropReason::Refused, message);
    }
    account
        .accept(Signal::Logs, 3, 8)
        .lose(DropReason::Refused, "no logs here");
    let counts = account.counts();
    let losses: Vec<_> = (counts.dropped.iter())
        .map(|loss| (loss.signal, loss.items, loss.message.as_deref()))
        .collect();
    assert_eq!(
        losses,
        [
            (Signal::Traces, 2, Some("too old")),
            (Signal::Logs, 5, Some("no logs here"))
        ]
    );
    assert_eq!(counts.dropped_for(DropReason::Refused), 7);
}

#[test]
fn unsupported_signal_is_a_loss_unless_the_receiver_accepts_only_other_signals() {
    let lost = |accepted: &[Signal]| {
        let account = Account::new("test");
        account
            .accept(Signal::Traces, 3, 8)
            .lose(DropReason::UnsupportedSignal, "404");
        for signal in accepted {
            account.accept(*signal, 1, 8).deliver_except(0, "");
        }
        let counts = account.counts();
        assert_eq!(
            counts.lost_items() + counts.unsupported().map(|drop| drop.items).sum::<u64>(),
            3
        );
        counts.lost_items()
    };
    assert_eq!(lost(&[]), 3, "nothing was accepted: the endpoint is wrong");
    assert_eq!(lost(&[Signal::Metrics]), 0);
    assert_eq!(
        lost(&[Signal::Metrics, Signal::Traces]),
        3,
        "it accepts traces, but not these"
    );
}

#[test]
fn forgotten_ticket_is_counted_as_abandoned() {
    let account = Account::new("test");
    drop(account.accept(Signal::Metrics, 4, 8));
    assert_eq!(account.counts().queued, 0);
    assert_eq!(
        account.counts().dropped,
        [dropped(DropReason::Abandoned, 4, None)]
    );
}

#[test]
fn accepted_items_never_fall_while_batches_move_to_the_disk() {
    let account = Account::new("test");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut before = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let accepted = account.counts().accepted;
                    assert!(accepted >= before, "{before}, then {accepted}");
                    before = accepted;
                }
            });
        }
        for _ in 0..50_000 {
            account.accept(Signal::Metrics, 1, 8).store();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn receiver_cannot_reject_more_than_it_was_sent() {
    let account = Account::new("test");
    account
        .accept(Signal::Metrics, 4, 8)
        .deliver_except(u64::MAX, "all of it");
    assert_eq!(
        (account.counts().delivered, account.counts().dropped_items()),
        (0, 4)
    );
}

#[test]
fn warning_without_a_loss_is_not_reported_for_a_later_loss() {
    let account = Account::new("test");
    account
        .accept(Signal::Metrics, 4, 8)
        .deliver_except(0, "a warning");
    account.accept(Signal::Metrics, 4, 8).deliver_except(1, "");
    assert_eq!(account.counts().dropped, [dropped(DropReason::Rejected, 1, None)]);
}

#[test]
fn warnings_and_retries_are_counted_with_their_last_message() {
    let account = Account::new("test");
    account.report_warning("first");
    account.report_warning("second");
    account.report_retry("busy");
    let counts = account.counts();
    assert_eq!(
        (counts.warnings, counts.warning_message.as_deref()),
        (2, Some("second"))
    );
    assert_eq!(
        (counts.retries, counts.retry_message.as_deref()),
        (1, Some("busy"))
    );
}
