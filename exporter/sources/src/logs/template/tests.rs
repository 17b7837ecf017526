//! What comes first makes no difference to what a line says.

use super::*;
use crate::logs::fields::Value;

/// `12: loss=2.5 rate= 1.5k, at 01:02 of 9`: a step, pairs at equals signs, a clock.
fn draw(line: &str) -> Option<Sketch<usize>> {
    let (step, rest) = line.split_once(':')?;
    let mut drawing = Drawing::of(line, rest.len());
    drawing.count(step.trim())?;
    for word in rest.split([' ', '|']).filter(|word| !word.is_empty()) {
        if let Some((key, value)) = word.split_once('=') {
            let thousands = value.strip_suffix('k');
            drawing.number(
                key,
                thousands.unwrap_or(value),
                if thousands.is_some() { 1e3 } else { 1.0 },
            );
        } else if let Some((minutes, secs)) = word.split_once(':') {
            drawing.made("clock", &[minutes, secs], How::Sixtieths(2, 1.0));
        }
    }
    *drawing.more() = drawing.sketch().fields.len();
    Some(drawing.finish(&[]))
}

fn said(templates: &mut Templates<usize>, line: &str) -> Option<String> {
    let sketch = templates.read(line, draw)?;
    let fields: Vec<String> = sketch
        .all()
        .iter()
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    Some(format!("{} {}", sketch.number(0), fields.join(" ")))
}

#[test]
fn a_line_says_the_same_whatever_lines_came_before() {
    let lines = [
        "1: loss=2.5 rate=1.5k",
        "2: loss=2.25 rate=17k",
        "3: loss=-2e-05 rate=1,129k",
        "4: loss=nan rate=1.5k",
        "5: loss=2.5 rate=1.5",
        "6: loss=2.5 rate=1.5kk",
        "7: loss=2.5",
        "8: loss=2.5 rate=1.5k more",
        "8: loss=2.5   | rate=1.5k",
        "9: at 01:02 |     a=5",
        "9: at 01:02 | a=5",
        "10: at 1.5:02 |   a=50",
        "11: at 01:59 |a=5",
        "-1: loss=2.5 rate=1.5k",
        "1.5: loss=2.5 rate=1.5k",
        "1,500: loss=2.5 rate=1.5k",
        "12: loss=2.5, rate=1.5k",
        "12: loss=2,500 rate=0.30000000000000004123k",
        "no step",
        "",
    ];
    let mut templates = Templates::default();
    for line in lines.iter().cycle().take(5 * lines.len()) {
        assert_eq!(
            said(&mut templates, line),
            said(&mut Templates::default(), line),
            "{line}"
        );
    }
}

#[test]
fn numbers_are_read_without_drawing_again() {
    let mut templates = Templates::default();
    for number in 0..100 {
        let line = format!("{number:>9}: at 00:{number:02} | loss={number}.5");
        let drawn = std::cell::Cell::new(false);
        let sketch = templates
            .read(&line, |line| {
                drawn.set(true);
                draw(line)
            })
            .unwrap();
        let expected = Value::Number(f64::from(number) + 0.5);
        assert_eq!(sketch.all().last().map(|(_, value)| value), Some(&expected));
        // Where all is compared, it is drawn every time.
        assert!(drawn.get() == (number == 0) || cfg!(debug_assertions));
    }
    assert_eq!(templates.known.len(), 1);
}

#[test]
fn of_very_many_templates_few_are_remembered_and_what_comes_again_is_among_them() {
    let mut templates = Templates::default();
    let newest = |templates: &Templates<usize>| templates.known[templates.last].sketch.fields[0].key.clone();
    for number in 0..1_000 {
        let line = format!("{number}: key{number}={number}");
        assert_eq!(
            said(&mut templates, &line),
            said(&mut Templates::default(), &line)
        );
        let is_remembered = newest(&templates) == format!("key{number}");
        assert!(is_remembered || number >= u32::from(PATIENCE) - 1, "{number}");
    }
    assert_eq!((templates.known.len(), templates.patience), (TEMPLATES, 0));
    for number in 0..=PATIENCE {
        said(&mut templates, &format!("{number}: again={number}"));
    }
    assert_eq!(newest(&templates), "again");
    // A template that comes again earns others.
    said(&mut templates, "1: again=1");
    said(&mut templates, "2: again=2");
    said(&mut templates, "3: another=3");
    assert_eq!(newest(&templates), "another");
    said(&mut templates, &format!("1: a={}", "1".repeat(LONGEST)));
    assert_eq!(newest(&templates), "another");
}
