"""What a crowded CPU does to verdicts, and what helps: by recordings that lie beside this file."""
