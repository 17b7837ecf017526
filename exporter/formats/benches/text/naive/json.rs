//! Reads objects with `serde_json::Value`, one a line or those in a list of one object.

use serde_json::Value;

use super::Points;

/// The keys that are read from the objects of a format.
pub(crate) struct Objects {
    /// The key of the time, and its unit in nanoseconds.
    pub(crate) time: Option<(&'static str, f64)>,
    /// The list that contains the objects, or `None` if each line is one.
    pub(crate) within: Option<&'static str>,
    /// The keys whose numbers are points. Empty selects all keys.
    pub(crate) only: &'static [&'static str],
}

/// The key of the step.
const STEP: &str = "step";

impl Objects {
    pub(super) fn read(&self, input: &[u8]) -> u64 {
        let mut points = Points::default();
        if let Some(list) = self.within {
            let complete: Value = serde_json::from_slice(input).unwrap();
            for object in complete[list].as_array().unwrap() {
                self.object(object, &mut points);
            }
            return points.finish();
        }
        for line in String::from_utf8_lossy(input).lines() {
            // The line may be part of a list with an object a line.
            let line = line.trim_end_matches(',');
            // Python writes numbers that serde_json rejects.
            let object =
                serde_json::from_str(line).or_else(|_| serde_json::from_str(&line.replace("NaN", "null")));
            if let Ok(object) = object {
                self.object(&object, &mut points);
            }
        }
        points.finish()
    }

    fn object(&self, object: &Value, points: &mut Points) {
        let time = self
            .time
            .and_then(|(key, nanos)| Some((object[key].as_f64()? * nanos) as u64))
            .unwrap_or_default();
        let is_wanted = self.only.is_empty() || self.only.iter().any(|key| !object[*key].is_null());
        if let Some(step) = object[STEP].as_f64().filter(|_| is_wanted) {
            points.push_step(time, step);
        }
        self.numbers("", object, time, points);
    }

    fn numbers(&self, outer: &str, object: &Value, time: u64, points: &mut Points) {
        for (key, value) in object.as_object().into_iter().flatten() {
            let is_own = key == STEP || self.time.is_some_and(|(time, _)| time == key);
            if is_own || !(self.only.is_empty() || self.only.contains(&key.as_str())) {
                continue;
            }
            match value {
                Value::Number(number) => {
                    points.push(&format!("{outer}{key}"), time, number.as_f64().unwrap());
                }
                Value::Bool(truth) => {
                    points.push(&format!("{outer}{key}"), time, f64::from(u8::from(*truth)));
                }
                Value::Object(_) => self.numbers(&format!("{outer}{key}."), value, time, points),
                _ => {}
            }
        }
    }
}
