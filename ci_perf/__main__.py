"""`ci-perf`, and `python -m ci_perf`: handles signals before it imports the command line."""

from ci_perf.system import signals


def main() -> None:
    """Run the command line."""
    signals.exit_at_once()
    from ci_perf.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
