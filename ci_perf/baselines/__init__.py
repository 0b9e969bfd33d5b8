"""Baselines in git: BASELINES/MACHINE/SUITE/WORKLOAD.json, one file per workload."""
