"""What our rule must keep on simulated pull requests; otherwise the command fails."""

from collections.abc import Mapping

from benchmarks.verdicts.scores import Score

# Of the unchanged pull requests of any regime. The judge guarantees 5 %.
MOST_ALARMED = 0.01
# Of the changes by 5 % in the regime `typical`.
LEAST_FOUND = 0.95


def broken(scores: Mapping[str, Score]) -> list[str]:
    """Return, in words, what our scores of the regimes do not keep."""
    words = [
        f"{regime}: {score.alarmed_pull_requests.share:.1%} of the unchanged pull requests "
        f"raise an alarm, expected at most {MOST_ALARMED:.0%}"
        for regime, score in scores.items()
        if score.alarmed_pull_requests.share > MOST_ALARMED
    ]
    share = scores["typical"].together(0.05).right.share
    if share < LEAST_FOUND:
        words.append(
            f"typical: {share:.1%} of the changes by 5 % are found, "
            f"expected at least {LEAST_FOUND:.0%}"
        )
    return words
