//! A follower in a pipeline, beside a writer.
