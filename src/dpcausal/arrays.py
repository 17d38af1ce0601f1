"""Names of types of numpy arrays."""

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
