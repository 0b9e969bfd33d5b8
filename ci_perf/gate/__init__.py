"""What ci-perf does, as functions: measure, check, compare, accept.

They print nothing, know no command line and no network: a listener hears what goes on.
"""
