"""Measure with a launcher that only answers."""

import time
from datetime import UTC, datetime

import pytest

from ci_perf import session
from tests.sessions import a_checkout, a_plan_at, measure_with, some_checks


@pytest.fixture
def measure_against(tmp_path, monkeypatch):
    """Measure a plan of `head` against `base`, two folders; `how` is said of the base."""
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))
    for side in ("head", "base"):
        (tmp_path / side / "workloads").mkdir(parents=True)

    def measure(launcher, plan, *, how, notes=(), listener=None, checks=None, **more):
        return measure_with(
            launcher,
            plan,
            listener=listener,
            checks=checks,
            against=session.Against(checkout=a_checkout(tmp_path, *notes), **how),
            **more,
        )

    return measure


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Measure workloads of these names; the lock folder is this test's own."""
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))

    def measure(
        launcher,
        *names,
        listener=None,
        wait_s=0.0,
        canaries_every_s=0.0,
        clock=time.monotonic,
        **plan,
    ):
        return measure_with(
            launcher,
            a_plan_at(tmp_path, *names, **{"processes": 2, "canaries": True, **plan}),
            listener=listener,
            wait_s=wait_s,
            checks=some_checks(canaries_every_s=canaries_every_s),
            clock=clock,
            now=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        )

    return measure
