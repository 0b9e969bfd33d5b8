"""Leave out workloads of which both sides use the same files.

Every launch records what it uses (`recorder`); `proof` compares a record with the files of a side.
"""

from ci_perf.hooks import Feature

# The core calls it by name: what it leaves out is in the documents of a run.
FEATURE = Feature()
