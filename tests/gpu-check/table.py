"""The results as a table of text."""

import textwrap

HEADER = ("no", "what", "ours", "reference", "tolerance", "verdict")
WIDEST = (4, 46, 34, 34, 16, 8)


def format_table(results):
    """One block a row of the results; long cells are wrapped."""
    lines, last = [HEADER], None
    for experiment, row in results:
        if experiment.number != last:
            lines.append((str(experiment.number), experiment.title, "", "", "", ""))
        last = experiment.number
        lines.append(("", row.what, row.ours, row.reference, row.tolerance, row.verdict))
    widths = [min(limit, max(len(line[column]) for line in lines)) for column, limit in enumerate(WIDEST)]
    text = []
    for line in lines:
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(line, widths)]
        for place in range(max(map(len, cells))):
            parts = [cell[place] if place < len(cell) else "" for cell in cells]
            text.append("  ".join(part.ljust(width) for part, width in zip(parts, widths)).rstrip())
    return "\n".join(text)
