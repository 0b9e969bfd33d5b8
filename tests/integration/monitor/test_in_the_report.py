"""From the driver to the report: what NVML says of each card while a workload is timed."""

from ci_perf.report import markdown
from tests import drivers
from tests.comparisons import judged
from tests.runs import GPU, a_measured, a_run, an_environment


def reported(evidence):
    run = a_run(a_measured("w", 1e-3, evidence=evidence), environment=an_environment(hard=GPU))
    return markdown.render(judged(run, run))


def test_the_report_shows_utilisation_power_and_memory_of_each_card(
    watch, worker_under_watch, driver
):
    driver.says(util=97, power_mw=412_000, mem_used=30 * 2**30)
    with watch(drivers.UUID, environment=driver.environment) as watched:
        worker_under_watch().finished()

    report = reported(watched.evidence())
    assert f"| `w` | `{drivers.UUID}` | 97.0 % | 412 W | 30.0 GiB |" in report


def test_what_the_driver_refuses_is_kept_and_decides_nothing_in_the_report(
    watch, worker_under_watch, driver
):
    driver.says(fail={"nvmlDeviceGetPowerUsage": drivers.NOT_SUPPORTED})
    with watch(drivers.UUID, environment=driver.environment) as watched:
        worker_under_watch().finished()

    evidence = watched.evidence()
    assert "Not Supported" in evidence.gpus[0].absent.values()
    assert "Not Supported" not in reported(evidence)
