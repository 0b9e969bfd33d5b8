"""`python -m ci_perf` is `ci-perf`."""

from ci_perf.cli.main import main

if __name__ == "__main__":
    main()
