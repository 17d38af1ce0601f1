"""What does not leave its process: private records, hidden answers, budgets."""

from hashlib import sha256
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import HiddenAnswerError


class ProcessLocal:
    """Base of what refuses to be pickled, and so to be copied."""

    __slots__ = ()

    confined: ClassVar[str]
    """Why, as the error says it."""

    def __getstate__(self) -> NoReturn:
        raise HiddenAnswerError(self.confined)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise HiddenAnswerError(self.confined)


class Uncopyable(ProcessLocal):
    """The same, where a copy is the same object."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class Frozen(Uncopyable):
    """The same, whose fields only its own methods set."""

    __slots__ = ()

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is frozen")


def hash_of_text(text: str, use: str) -> int:
    """Return the first 60 bits of the sha256 of a use, the byte 31 and a text in UTF-8.

    >>> hash_of_text("17", "block") == int(sha256(b"block\\x1f17").hexdigest()[:15], 16)
    True
    """
    return int(sha256(f"{use}\x1f{text}".encode("utf-8", "surrogatepass")).hexdigest()[:15], 16)


def scrambled(numbers: NDArray[Any], salt: int) -> NDArray[np.uint64]:
    """Return a public scramble of whole numbers under a salt, alike on every machine (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + np.uint64(salt) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
