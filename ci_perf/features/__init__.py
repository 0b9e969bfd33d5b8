"""Capabilities beside the gate: each folder has its model, logic, worker, report and tests."""
