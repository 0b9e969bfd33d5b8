"""A run as the judge sees it."""

from ci_perf.judge import canaries, numbers, numerics, profiles
from ci_perf.model.process import Fingerprint
from ci_perf.model.run import Measured, Run
from ci_perf.model.summary import Sitting, Subject, Summary, Turns


def run(measured: Run, *, label: str) -> Summary:
    """Reduce a run to one number per process and metric."""
    return Summary(
        label=label,
        source=measured.source,
        run=measured.id,
        suite=measured.suite,
        selection=measured.selection,
        validity=measured.validity,
        subjects=tuple(_subject(measured, workload) for workload in measured.measured),
        failed=measured.failed,
        machine=measured.environment.hard,
        image=measured.environment.image,
        interleaved=measured.interleaved,
        profiles=profiles.of_run(measured),
    )


def _subject(measured: Run, workload: Measured) -> Subject:
    return Subject(
        workload=workload.workload,
        parameters=workload.parameters,
        items_per_step=workload.items_per_step,
        item_unit=workload.item_unit,
        statistic=workload.protocol.statistic,
        machine=measured.environment.hard,
        sessions=(
            Sitting(
                commit=measured.source.commit,
                recorded_at=measured.started_at,
                soft=measured.environment.soft,
                processes=numbers.of_workload(workload, measured),
                fingerprints=_each_once(workload),
                canaries=canaries.readings(measured.canaries),
            ),
        ),
        turns=_turns(measured, workload),
    )


def _turns(measured: Run, workload: Measured) -> Turns | None:
    """Return what the base showed that was launched beside this workload, if it was."""
    for found in measured.paired:
        if found.workload == workload.workload:
            bases = [pair.base.fingerprint for pair in found.pairs]
            return Turns(
                pairs=numbers.of_pairs(found, workload, measured),
                base_fingerprints=tuple(
                    dict.fromkeys(one for one in bases if numerics.values(one))
                ),
                own_file=found.file == "base",
                trouble=found.trouble,
            )
    return None


def _each_once(workload: Measured) -> tuple[Fingerprint, ...]:
    """Return the different fingerprints, in launch order."""
    return tuple(dict.fromkeys(process.fingerprint for process in workload.processes))
