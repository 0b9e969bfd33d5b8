"""A classifier of points with two numbers each, by logistic regression."""

import math


def normalize(points):
    """Give each of the two numbers a mean of 0 and a deviation of 1."""
    columns = []
    for column in zip(*points):
        mean = sum(column) / len(column)
        deviation = math.sqrt(sum((number - mean) ** 2 for number in column) / len(column))
        columns.append([(number - mean) / deviation for number in column])
    return list(zip(*columns))


def train_step(weights, points, labels, rate=0.1):
    """Return the weights after one step of gradient descent."""
    gradient = [0.0, 0.0]
    for (x, y), label in zip(points, labels):
        chance = 1 / (1 + math.exp(-(weights[0] * x + weights[1] * y)))
        gradient[0] += (chance - label) * x
        gradient[1] += (chance - label) * y
    return [weight - rate * part / len(points) for weight, part in zip(weights, gradient)]
