"""Words and pictures: a comparison or a run in, text out. No files, no network, no clock.

Templates are package data; every foreign string passes through `escape`.
"""
