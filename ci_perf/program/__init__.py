"""Whether another checkout is the program that was recorded; it parses code and never runs it."""
