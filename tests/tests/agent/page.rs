//! The live page of an agent and `pulsetrain show`: over HTTP, in a terminal, and in a real browser.

mod agent;
mod browser;
mod live;
mod look;
mod show;
mod updates;
mod world;
