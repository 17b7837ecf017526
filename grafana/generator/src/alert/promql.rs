//! Scaled expressions: every range, offset and step divided by a factor.

use promql_parser::parser::{self, Expr, Offset, VectorSelector};
use std::time::Duration;

/// Returns an expression whose durations are divided by `factor`.
///
/// # Errors
///
/// Returns the parser's message.
pub(super) fn scaled(text: &str, factor: f64) -> Result<String, String> {
    let mut expression = parser::parse(text)?;
    scale(&mut expression, factor);
    Ok(expression.to_string())
}

fn scale(expression: &mut Expr, factor: f64) {
    match expression {
        Expr::Aggregate(aggregate) => {
            if let Some(param) = &mut aggregate.param {
                scale(param, factor);
            }
            scale(&mut aggregate.expr, factor);
        }
        Expr::Unary(unary) => scale(&mut unary.expr, factor),
        Expr::Binary(binary) => {
            scale(&mut binary.lhs, factor);
            scale(&mut binary.rhs, factor);
        }
        Expr::Paren(paren) => scale(&mut paren.expr, factor),
        Expr::Subquery(subquery) => {
            scale(&mut subquery.expr, factor);
            subquery.range = shorter(subquery.range, factor);
            subquery.step = subquery.step.map(|step| shorter(step, factor));
            offset(&mut subquery.offset, factor);
        }
        Expr::VectorSelector(selector) => scale_selector(selector, factor),
        Expr::MatrixSelector(matrix) => {
            scale_selector(&mut matrix.vs, factor);
            matrix.range = shorter(matrix.range, factor);
        }
        Expr::Call(call) => call
            .args
            .args
            .iter_mut()
            .for_each(|argument| scale(argument, factor)),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => {}
    }
}

fn scale_selector(selector: &mut VectorSelector, factor: f64) {
    offset(&mut selector.offset, factor);
}

fn offset(offset: &mut Option<Offset>, factor: f64) {
    if let Some(Offset::Pos(duration) | Offset::Neg(duration)) = offset {
        *duration = shorter(*duration, factor);
    }
}

/// Returns a duration divided by a factor, rounded to milliseconds.
fn shorter(duration: Duration, factor: f64) -> Duration {
    Duration::from_millis((duration.as_secs_f64() * 1e3 / factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_divides_every_duration_of_an_expression() {
        let text = "max_over_time(avg(rate(train_loss[5m] offset 1h))[1d:10m]) > 3";
        let scaled = scaled(text, 60.0).unwrap();
        assert_eq!(
            scaled,
            "max_over_time(avg(rate(train_loss[5s] offset 1m))[24m:10s]) > 3"
        );
    }
}
