"""Engines that start the units of a plan: the engine queues, places, retries and kills.

Each engine is a function that returns once the units have ended, however they have: what came of a
unit is in its folder (`unit.py`).
"""
