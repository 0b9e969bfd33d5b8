"""A small project being judged, from baseline to red mark. Measures nothing itself.

It types what a person would type, `git` and `ci-perf`, in a scratch repository.
"""
