"""The prior of Smyth 2004, section 6.2, with scipy's functions: somebody else's numbers."""

import numpy as np
from scipy import optimize, special


def prior(variances, df, least, most):
    """Return scale and degrees of freedom, the latter between two bounds."""
    values, df = np.asarray(variances, float), np.asarray(df, float)
    logs = np.log(values) - special.digamma(df / 2) + np.log(df / 2)
    excess = np.var(logs, ddof=1) - special.polygamma(1, df / 2).mean()
    if excess <= special.polygamma(1, most / 2):
        found = most
    elif excess >= special.polygamma(1, least / 2):
        found = least
    else:
        found = optimize.brentq(
            lambda d: special.polygamma(1, d / 2) - excess, least, most, xtol=1e-14, rtol=1e-14
        )
    return np.exp(logs.mean() + special.digamma(found / 2) - np.log(found / 2)), found
