"""GitHub: its API, events and artifacts. No other package talks to a network."""
