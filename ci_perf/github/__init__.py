"""Reports on GitHub: the only code that talks to a network. It makes no words of a report."""
