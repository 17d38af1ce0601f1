"""Differentially private causal inference."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcausal.api import *  # noqa: F403 - for type checkers: at run time they come late

__version__ = "0.1.0"


class _Library(ModuleType):
    """Names are brought by the first that is asked for, all at once: the command is at hand before numpy is."""

    def __getattr__(self, name: str) -> Any:
        own = vars(self)
        if not name.startswith("__") or name == "__all__":
            library = import_module("dpcausal.api")
            public = {key: one for key, one in vars(library).items() if not key.startswith("_")}
            own |= public
            own["__all__"] = list(public)
        if name in own:
            return own[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        # Python binds a folder that it imports; these two have the names of their functions, which are meant.
        if not (isinstance(value, ModuleType) and name in ("direction", "synthetic_control")):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return ["__all__", "__doc__", "__file__", "__path__", "__version__", *self.__getattr__("__all__")]


sys.modules[__name__].__class__ = _Library
