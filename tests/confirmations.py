"""Builders of confirmations: pairs in, an outcome out."""

from ci_perf.judging.confirm import Confirmation
from ci_perf.judging.policy import ALPHA, PolicyKind, policy_of

TIME = policy_of(PolicyKind.TIME)
# Without a spread: what is left is the size of the change alone.
EXACT = {"prior_variance": 0.0, "prior_df": 0.0}
MIRRORED = {"regressed": "improved", "improved": "regressed"}
# Where the screen saw the head, and what each side then has of alpha: losses, gains.
SHARES = {1: (0.9, 0.1), 0: (0.5, 0.5), -1: (0.1, 0.9)}


def a_confirmation(*, alpha=ALPHA, prior_variance=1e-5, prior_df=8.0, suspected=0, **known):
    return Confirmation(
        policy=TIME,
        alpha=alpha,
        prior_variance=prior_variance,
        prior_df=prior_df,
        suspected=suspected,
        **known,
    )


def confirmed(differences, **history):
    """Add pairs until there is an outcome."""
    confirmation = a_confirmation(**history)
    for difference in differences:
        if outcome := confirmation.add(difference):
            return outcome
    return confirmation.finish()
