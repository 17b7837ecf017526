"""Experiments, what they need, and the rows that they yield."""

from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED, MEASURED = "passed", "FAILED", "skipped", "measured"

EXPERIMENTS = []


class Skip(Exception):
    """Why an experiment cannot be done on this machine."""


@dataclass
class Row:
    """One comparison."""

    what: str
    ours: str
    reference: str
    tolerance: str
    verdict: str

    def as_dict(self, experiment):
        return {"experiment": experiment.number, "title": experiment.title, **self.__dict__}


@dataclass
class Experiment:
    number: int
    title: str
    function: callable
    needs: list = field(default_factory=list)

    def require(self, context):
        """Raises `Skip` if something that the experiment needs is missing."""
        missing = [reason for need in self.needs if (reason := context.lacks(need))]
        if missing:
            raise Skip("; ".join(missing))


def experiment(number, title, *needs):
    """Registers a generator of rows as an experiment."""

    def register(function):
        EXPERIMENTS.append(Experiment(number, title, function, list(needs)))
        return function

    return register


def within(what, ours, reference, relative=0.0, absolute=0.0):
    """Ours is the reference, up to a share of it or an amount."""
    allowed = max(relative * abs(reference), absolute)
    tolerance = f"{relative:.3%}" if relative * abs(reference) >= absolute else show(absolute)
    return judge(what, show(ours), show(reference), f"+/- {tolerance}", abs(ours - reference) <= allowed)


def between(what, ours, low, high):
    """Ours is in a range."""
    return judge(what, show(ours), f"{show(low)} to {show(high)}", "in the range", low <= ours <= high)


def equal(what, ours, reference):
    """Ours is exactly the reference."""
    return judge(what, show(ours), show(reference), "equal", ours == reference)


def holds(what, ours, reference, condition):
    """A condition that is neither a range nor an equality."""
    return judge(what, show(ours), reference, "", bool(condition))


def measured(what, value):
    """A figure that is recorded and not judged."""
    return Row(what, show(value), "", "", MEASURED)


def judge(what, ours, reference, tolerance, passed):
    return Row(what, ours, reference, tolerance, PASSED if passed else FAILED)


def show(value):
    """A value for the table."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(show(one) for one in value) or "nothing"
    return str(value)
