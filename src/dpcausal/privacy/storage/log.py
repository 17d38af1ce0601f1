"""The log of spends and refusals, and who asks: public values only."""

import getpass
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.privacy.composition import remaining
from dpcausal.privacy.loss import parse_loss
from dpcausal.privacy.storage.lines import Account

VARIABLE = "DPCAUSAL_ANALYST"
LOGGER = logging.getLogger("dpcausal")
LOGGER.addHandler(logging.NullHandler())


def analyst_here(*, divided: bool) -> str:
    """Return who asks: the name of the environment, else, where parts are spent from, of the system's user."""
    named = os.environ.get(VARIABLE, "")
    if divided and not named:
        with suppress(OSError, KeyError):
            return getpass.getuser()
    return named


@contextmanager
def logged(record: dict[str, Any], ledger: str) -> Iterator[Callable[[Account], None]]:
    """Lend what logs a spend; a refusal is logged as a warning."""
    loss = parse_loss(record["loss"])
    analyst, task, detail = record["detail"].get("analyst", ""), record["task"], record["detail"]
    public = {"analyst": analyst, "task": task, "cost": str(loss), "ledger": ledger, "detail": detail}
    who = f" by {analyst}" if analyst else ""

    def log(account: Account) -> None:
        left = str(remaining(account.budget, account.totals)) if LOGGER.isEnabledFor(logging.INFO) else ""
        spend = {"event": "spend", "number": account.totals.spends, "left": left, "head": account.head} | public
        LOGGER.info("spend %d%s: %s, %s; left %s", account.totals.spends, who, task, loss, left, extra=spend)

    try:
        yield log
    except (BudgetExceededError, LedgerError) as error:
        refused = {"event": "refusal", "reason": str(error)} | public
        LOGGER.warning("refused%s: %s, %s; %s", who, task, loss, error, extra=refused)
        raise
