"""Say why a step takes longer, and what limits it: by launches of its own, which decide nothing."""
