"""How far two colours lie apart for people who see some of them alike.

The matrices are those of Machado, Oliveira and Fernandes, "A Physiologically-based Model for
Simulation of Color Vision Deficiency" (2009), at full severity; distances are CIE 1976's.
"""

import math

import numpy as np

KINDS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
_WHITE = [0.9505, 1.0, 1.089]


def distance(first, second, kind):
    """Return the distance of two colours like "#08589e"; 2 is just noticeable."""
    return math.dist(*(_lab(KINDS[kind] @ _linear(colour)) for colour in (first, second)))


def _linear(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = np.array(list(bytes.fromhex(digits))) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def _lab(linear):
    shares = np.clip(_XYZ @ linear, 0, None) / _WHITE
    x, y, z = np.where(shares > 0.008856, np.cbrt(shares), 7.787 * shares + 16 / 116)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
