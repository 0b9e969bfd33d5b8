"""Results of other harnesses as samples: text in, samples out. No files, no third-party code."""
