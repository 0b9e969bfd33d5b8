"""How often verdicts are right: ours and those of other tools, on noise whose truth is known."""
