#!/usr/bin/env python3
"""Draws training steps or one request of a Perfetto trace as SVG, from what trace_processor finds in the trace.

    draw.py TRACE --step N[..M] [--slow RATIO] [--milliseconds M] [--title TEXT] > step.svg
    draw.py TRACE --trace-id ID [--title TEXT] > request.svg

TRACE is a Perfetto trace that `pulsetrain` wrote. Spans of steps carry `train.step`; their rows are those of the trace, or its
processes if it has several. A span longer than RATIO times the median of its name in its step has a colour of its own. A span that
ends after the first M milliseconds fades out. A request is a trace of `convert --by trace`: each span is below its parent and has
the colour of its service. `--check FILE` compares the picture with a file. Needs Python and the judge trace_processor
(tests/judges/install).
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
from html import escape

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH, LABELS, ROW, GAP, TOP = 1000, 132, 26, 12, 64
# Colours that keep white text legible on a light page and on a dark one.
COLOURS = [
    "#2f6fd0", "#b4531f", "#2a8553", "#8a4bb8", "#b03060", "#4d6b7c", "#7a6a12", "#1f7f8c",
    "#5a55c9", "#9c3d3d", "#4b7a1e", "#a03c96", "#6b5a45", "#2e6b5e", "#8f5f00",
]
QUERY = """
select s.name, s.ts as start, s.dur, t.id as track, t.name as row, a.int_value as step, p.name as process
from slice s join track t on t.id = s.track_id join args a on a.arg_set_id = s.arg_set_id
left join process_track pt on pt.id = t.id left join process p using (upid)
where a.key = 'debug.train_step' and a.int_value between {first} and {last} and s.dur > 0 order by t.id, s.ts
"""
REQUEST = """
select s.name, s.category as service, s.ts as start, s.dur, 1000 * t.id + s.depth as track, '' as row
from slice s join track t on t.id = s.track_id
where s.dur > 0 and t.name = (
  select t.name from slice s join track t on t.id = s.track_id
  where s.depth = 0 and s.parent_id is null and extract_arg(s.arg_set_id, 'debug.otel.trace_id') = '{trace_id}' order by t.id limit 1
) order by t.id, s.depth, s.ts
"""
STYLE = """
  text { font: 12px ui-sans-serif, system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 } .faint { fill: #57606a } .on { fill: #fff; font-size: 11px }
  .row { fill: #eaeef2 } .grid { stroke: #d0d7de; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .faint { fill: #9198a1 } .on { fill: #fff } .row { fill: #1c2128 } .grid { stroke: #373e47 }
  }
"""


def ask(trace, query):
    judge = subprocess.run(
        [ROOT / "tests/judges/install", "--path", "trace_processor"], check=True, capture_output=True, text=True
    ).stdout.strip()
    answer = subprocess.run(["node", judge, trace, query], check=True, capture_output=True, text=True).stdout
    return json.loads(answer.splitlines()[0])


def spans_of(trace, query):
    """The spans that a query finds, with times in milliseconds from their begin."""
    spans = ask(trace, query)
    if not spans:
        raise SystemExit(f"{trace} has no such span")
    begin = min(int(span["start"]) for span in spans)
    for span in spans:
        span["start"] = (int(span["start"]) - begin) / 1e6
        span["end"] = span["start"] + int(span["dur"]) / 1e6
    return spans


def spans_of_steps(trace, steps):
    first, _, last = steps.partition("..")
    spans = spans_of(trace, QUERY.format(first=int(first), last=int(last or first)))
    if len({span["process"] for span in spans}) > 1:
        for span in spans:
            span["row"] = span["process"]
    return spans


def spans_of_request(trace, trace_id):
    """The spans of a request, named by their services."""
    spans = spans_of(trace, REQUEST.format(trace_id=trace_id.replace("'", "")))
    for span in spans:
        span["operation"], span["name"] = span["name"], span["service"]
    return spans


def mark_slow(spans, ratio):
    """Gives a span another name that is longer than `ratio` times the median of its name in its step."""
    durations = {}
    for span in spans:
        durations.setdefault((span["name"], span["step"]), []).append(span["end"] - span["start"])
    for span in spans:
        median = statistics.median(durations[span["name"], span["step"]])
        span["slow"] = span["end"] - span["start"] > ratio * median
    for span in spans:
        span["name"] += f", slower than {ratio:g} x median" if span["slow"] else ""


def rows_of(spans):
    """Rows under their names, in the order of the trace: devices first, then threads of the host."""
    groups = {}
    for span in spans:
        lanes = groups.setdefault(span["row"], {})
        lanes.setdefault(span["track"], []).append(span)
    rank = lambda row: int(re.match(r"(?:rank (\d+))?", row)[1] or 0)
    return sorted(groups.items(), key=lambda group: (not group[0].startswith("device"), rank(group[0]), min(group[1])))


def label(row, threads):
    """A name that fits: a thread of the host is told by its place, not by its number."""
    if "host-" in row:
        threads.append(row)
        return f"host thread {len(threads)}"
    return row


def milliseconds(value):
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def tick_step(length):
    steps = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    return next(step for step in steps if length / step <= 9)


class Picture:
    def __init__(self, spans, length, title):
        self.spans, self.length, self.title = spans, length, title
        first = {}
        for span in spans:
            first[span["name"]] = min(span["start"], first.get(span["name"], span["start"]))
        names = sorted(first, key=lambda name: (first[name], name))
        self.colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
        self.labels = LABELS if any(span["row"] for span in spans) else 0
        self.out = []

    def x(self, time):
        return self.labels + (WIDTH - self.labels - 8) * min(time, self.length) / self.length

    def draw(self):
        y, threads = TOP, []
        for row, lanes in rows_of(self.spans):
            if row:
                self.text(0, y + ROW / 2 + 4, label(row, threads), "faint")
            for lane in lanes.values():
                self.row(y, lane)
                y += ROW + 3
            y += GAP - 3
        bottom = y - GAP + 6
        head = self.axis(bottom)
        height = self.legend(bottom + 44)
        body = "\n".join(head + self.out)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 0 {WIDTH + 16} {height}" role="img" '
            f'aria-label="{escape(self.title)}">\n<style>{STYLE}</style>\n'
            '<defs><linearGradient id="on"><stop offset="0" stop-color="#fff"/><stop offset="1" stop-color="#fff" '
            'stop-opacity="0.1"/></linearGradient><mask id="goes-on" maskContentUnits="objectBoundingBox">'
            '<rect width="1" height="1" fill="url(#on)"/></mask></defs>\n'
            f'<text class="title" x="0" y="22">{escape(self.title)}</text>\n{body}\n</svg>\n'
        )

    def row(self, y, lane):
        width = WIDTH - self.labels - 8
        self.out.append(f'<rect class="row" x="{self.labels}" y="{y}" width="{width}" height="{ROW}" rx="4"/>')
        for span in lane:
            if span["start"] < self.length:
                self.span(y, span)

    def span(self, y, span):
        left, right = self.x(span["start"]), self.x(span["end"])
        width, goes_on = max(right - left, 1.5), span["end"] > self.length
        mask = ' mask="url(#goes-on)"' if goes_on else ""
        duration = milliseconds(span["end"] - span["start"])
        operation = span.get("operation")
        title = f"{span['name']}: {operation}" if operation else span["name"]
        self.out.append(
            f'<rect x="{left:.1f}" y="{y + 2}" width="{width:.1f}" height="{ROW - 4}" rx="3" '
            f'fill="{self.colours[span["name"]]}"{mask}><title>{escape(title)} {duration}</title></rect>'
        )
        short = operation.split("/")[-1] if operation else span["name"].split(",")[0].split(".")[-1]
        texts = [f"{short} {duration}" + (" →" if goes_on else ""), short]
        if operation:
            texts = [f"{title} {duration}", title, *texts, span["name"]]
        for text in texts:
            if len(text) * 6.1 + 10 <= width:
                self.text(left + 6, y + ROW / 2 + 4, text, "on")
                return

    def axis(self, bottom):
        lines, step = [], tick_step(self.length)
        for tick in range(0, int(self.length) + 1, step):
            x = self.x(tick)
            lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 14}" y2="{bottom}"/>')
            anchor = "end" if x > WIDTH - 40 else "start" if x < 20 else "middle"
            lines.append(
                f'<text class="faint" x="{x:.1f}" y="{TOP - 20}" text-anchor="{anchor}">{tick} ms</text>'
            )
        return lines

    def legend(self, y):
        x = 0
        for name, colour in self.colours.items():
            width = len(name) * 6.9 + 34
            if x + width > WIDTH:
                x, y = 0, y + 22
            self.out.append(f'<rect x="{x}" y="{y - 22}" width="12" height="12" rx="3" fill="{colour}"/>')
            self.text(x + 18, y - 12, name, "")
            x += width
        return y + 4

    def text(self, x, y, text, kind):
        self.out.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    selection = parser.add_mutually_exclusive_group(required=True)
    selection.add_argument("--step")
    selection.add_argument("--trace-id")
    parser.add_argument("--slow", type=float)
    parser.add_argument("--milliseconds", type=float)
    parser.add_argument("--title")
    parser.add_argument("--check", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.step:
        spans = spans_of_steps(arguments.trace, arguments.step)
    else:
        spans = spans_of_request(arguments.trace, arguments.trace_id)
    if arguments.slow:
        mark_slow(spans, arguments.slow)
    whole = max(span["end"] for span in spans)
    length = min(arguments.milliseconds or whole, whole)
    title = arguments.title or (f"step {arguments.step}" if arguments.step else f"trace {arguments.trace_id}")
    picture = Picture(spans, length, title).draw()
    if not arguments.check:
        print(picture, end="")
    elif arguments.check.read_text() != picture:
        raise SystemExit(f"{arguments.check} is not what {arguments.trace} shows: draw it again")


if __name__ == "__main__":
    main()
