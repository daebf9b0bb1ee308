"""The grid that recipes choose the temperature of a calibrated model from."""

import math

TEMPERATURES = [math.exp(place / 50) for place in range(-100, 101)]  # 0.14 … 7.4
