//! Placeholder face.
