"""Units of a plan on many machines, by engines that exist: exactly one ending for each of them.

The engine queues, places, isolates and kills; `ledger` knows which unit has no ending yet, and
`reading` takes nothing that a node writes at its word. A node runs our command line.
"""
