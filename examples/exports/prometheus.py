"""Write ci_perf.prom for Prometheus, with prometheus-client: `python prometheus.py run.json`."""

import sys

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

import ci_perf

table = ci_perf.load(sys.argv[1]).to_frame().query("outcome == 'measured' and step.isna()")
registry, labels = CollectorRegistry(), ["workload", "metric", "unit"]
gauge = Gauge("ci_perf_median", "The median of the launches.", labels, registry=registry)
for names, values in table.groupby(labels)["value"]:
    gauge.labels(*names).set(values.median())
write_to_textfile("ci_perf.prom", registry)
