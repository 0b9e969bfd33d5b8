"""The job with the token: judge what a pull request measured, and show it. It launches nothing."""
