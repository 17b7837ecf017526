//! The live page of an agent and `pulsetrain show`: over HTTP, on the terminal, and in a real browser.

mod agent;
mod browser;
mod live;
mod look;
mod show;
mod updates;
mod world;
