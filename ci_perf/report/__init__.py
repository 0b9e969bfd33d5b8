"""Renders a comparison or a run as text. Pure: no files, no network, no clock.

Templates are package data; every foreign string passes through `escape`.
"""
