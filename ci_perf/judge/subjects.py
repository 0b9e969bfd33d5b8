"""One workload on one side, asked for the values of its metrics."""

from ci_perf.judge import evidence
from ci_perf.model import metrics
from ci_perf.model.metrics import Metric
from ci_perf.model.summary import Numbers, Subject


def values(subject: Subject, metric: Metric) -> list[list[float]]:
    """Return the values of a metric per session, without the sessions that lack it."""
    found = [
        [process[metric.name] for process in session.processes if metric.name in process]
        for session in subject.sessions
    ]
    return [session for session in found if session]


def numbers(subject: Subject) -> Numbers:
    """Return the centre of every metric that the subject has."""
    found = ((metric, values(subject, metric)) for metric in metrics.ALL)
    return {metric.name: evidence.centre(metric.kind, v) for metric, v in found if v}
