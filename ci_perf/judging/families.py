"""Which rows are of one workload or test at several parameters."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ci_perf.model.base import Scalar
from ci_perf.model.comparison import Change, Family, Row, Uncompared
from ci_perf.model.suite import find_family
from ci_perf.model.summary import Subject


def note_families(rows: Iterable[Row], subjects: Iterable[Subject]) -> Iterator[Row]:
    """Yield rows; those of a family that has several cases name it, whatever these have shown."""
    every = list(rows)
    parameters: dict[str, Mapping[str, Scalar]] = {
        **{row.workload: row.parameters for row in every if isinstance(row, Uncompared)},
        **{subject.workload: subject.parameters for subject in subjects},
    }
    names = {name: find_family(name, given) for name, given in parameters.items()}
    cases = Counter(names.values())
    # Two files may spell the ids of their tests alike: who would know which is meant?
    sources = Counter(name for name, _ in cases)
    for row in every:
        key = names.get(row.workload, ("", ""))
        if isinstance(row, Change) and key[0] and cases[key] > 1 and sources[key[0]] == 1:
            yield msgspec.structs.replace(row, family=Family(name=key[0], cases=cases[key]))
        else:
            yield row
