"""Trains the classifier, and prints the time of each step."""

import random
import time

from model import normalize, train_step

random.seed(0)
points = normalize([(random.gauss(170, 10), random.gauss(70, 12)) for _ in range(4000)])
labels = [int(x + y > 0) for x, y in points]
weights = [0.0, 0.0]

for step in range(100):
    start = time.perf_counter()
    weights = train_step(weights, points, labels)
    print(f"step {step} time {1000 * (time.perf_counter() - start):.3f} ms")
