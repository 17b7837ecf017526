//! `grafana/`: dashboards, alerts and their other files, checked with the programs that read them.

mod agent_faults;
mod alerts;
mod alerts_agent;
mod alerts_history;
mod alerts_live;
mod annotations;
mod dashboards;
mod drawn;
mod fleet;
mod history;
mod jobs;
mod lint;
mod queries;
mod recorded_traces;
mod traces;
