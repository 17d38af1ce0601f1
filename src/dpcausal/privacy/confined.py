"""What does not leave its process: private records, hidden answers, budgets."""

from __future__ import annotations

from typing import ClassVar, NoReturn, Self

from dpcausal.errors import HiddenAnswerError


class Confined:
    """Base of what refuses to be pickled, and so to be copied."""

    __slots__ = ()

    confined: ClassVar[str]
    """Why, as the error says it."""

    def __getstate__(self) -> NoReturn:
        raise HiddenAnswerError(self.confined)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise HiddenAnswerError(self.confined)


class Single(Confined):
    """The same, where a copy is the same object."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self
