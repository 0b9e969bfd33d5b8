"""The data that flows down the street, and its JSON form. Pure: no files, no clock.

Every struct is frozen, takes keywords only and refuses unknown keys: it *is* the JSON Schema.
"""
