"""The job with the token: judges what a pull request measured, and shows it.

It launches nothing.
"""
