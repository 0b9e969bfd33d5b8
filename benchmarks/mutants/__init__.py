"""Small faults, and whether tests notice them."""
