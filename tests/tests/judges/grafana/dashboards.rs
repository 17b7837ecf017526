//! Dashboards on a simulated fleet in real backends. The checks share the fleet, so they are one test.

use crate::grafana::{drawn, fleet::Fleet, queries, traces};

#[test]
fn every_dashboard_shows_the_fleet() {
    let Some(mut fleet) = Fleet::start() else {
        return;
    };
    let mut errors = queries::check(&fleet);
    errors.extend(traces::check(&fleet));
    errors.extend(drawn::check(&mut fleet));
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
