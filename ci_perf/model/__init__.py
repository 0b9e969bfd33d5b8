"""The data that modules exchange, and its JSON form. Pure: no files, no clock.

Every struct is frozen, takes keywords only and refuses unknown keys; the JSON Schema is made of it.
"""
