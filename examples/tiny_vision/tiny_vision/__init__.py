"""A small image project: prepare images, train a classifier, find similar pictures."""
