"""One table of all audits: what each looked at, how much of the claim it shows, and the mutants it kills.

    python -m benchmarks audit_table --jobs 2      ten minutes; the Markdown of a table for auditors

*Falsifier's share*: the largest change over its bound that a search found; of a call, the largest share of its charge
that neighbours use up at the gate, all answers together, as a multiple of the noise.  *ε shown*: the exact loss of the
worst pair at claims of 1 and 2; of a statistic and of a call, what the exact law of the noise makes of the falsifier's
share.  *5 % less*: whether a mechanism is caught that declares, or draws, 5 % too little.  The figures are the same at
each run; the real noise of each mechanism is compared with its law besides, with a false alarm of at most 1e-6 for all.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context

from benchmarks.run import Report, benchmark
from dpcausal.audit import audit_samples
from dpcausal.direction import api as ask
from dpcausal.direction.scores import anm
from dpcausal.privacy.noise import simulated_noise
from tests.registry.attacks import ATTACKS, WAYS, fallen
from tests.registry.exact import departs, departs_evenly, keeps, less_declared, less_noise
from tests.registry.exact_rows import EXACT
from tests.registry.index import MECHANISMS, SENSITIVITIES, TASKS, cases, mutants_of
from tests.registry.prices import at_gate, hunt
from tests.registry.rows import searched

CLAIMS = (1.0, 2.0)
TOO_LITTLE = 0.95
RUN_FALSE_ALARM = 1e-6
EACH = RUN_FALSE_ALARM / (sum(len(row.fits) for row in EXACT) + len(TASKS))
PAIRS = 200
"""Neighbours of each call; the claims have 8,000."""

ROUNDING = 1e-5
Job = tuple[str, str]


@dataclass(frozen=True)
class Found:
    """A line of the table, and what is wrong with it."""

    share: str
    shown: tuple[str, str]
    less: str
    faults: tuple[str, ...] = ()


def mechanism(name: str) -> Found:
    """Return the exact audit of a mechanism; its real noise must follow the law."""
    row = next(row for row in EXACT if row.name == name)
    faults, shown = [], []
    for epsilon in CLAIMS:
        right, share = keeps(row, epsilon)
        shown.append(f"{share * epsilon:.3f}")
        if not right:
            faults.append(f"shows {share:.4f} of a claim of {epsilon:g}")
        if keeps(row, epsilon, TOO_LITTLE)[0]:
            faults.append(f"5 % less, declared, is not seen at a claim of {epsilon:g}")
    if row.even:
        seen = [any(departs_evenly(fit, share) for fit in row.even) for share in (1.0, TOO_LITTLE)]
    else:
        seen = []
        for share in (1.0, TOO_LITTLE):
            with simulated_noise(3), less_noise(share):
                seen.append(any(departs(fit, EACH) for fit in row.fits))
    if seen != [False, True]:
        faults.append("outputs do not follow the law" if seen[0] else "5 % less, drawn, is not seen")
    if any(departs(fit, EACH) for fit in row.fits):
        faults.append("outputs of real noise do not follow the law")
    return Found("–", (shown[0], shown[1]), "seen" if not faults else "MISSED", tuple(faults))


def statistic(name: str) -> Found:
    """Return the search over neighbours of a claim about a statistic."""
    row = next(row for row in SENSITIVITIES if row.claim == name)
    worst = max(searched(row), key=lambda found: found.ratio)
    faults = [worst.summary()] if worst.violated or worst.ratio < row.reached else []
    return Found(f"{worst.ratio:.3f}", _shown(worst.ratio), "–", tuple(faults))


def _shown(share: float) -> tuple[str, str]:
    return f"{share * CLAIMS[0]:.3f}", f"{share * CLAIMS[1]:.3f}"


def call(name: str) -> Found:
    """Return the hunt through a call, and the price of the noise that it declares."""
    row = next(row for row in TASKS if row.name == name)
    found = hunt(row.compare.search, pairs=PAIRS, seed=1)
    gates = [at_gate(row, epsilon) for epsilon in CLAIMS]
    faults = []
    if found.violated:
        faults.append(f"neighbours use up {found.share:.4f} of the charge")
    if not all(1 - ROUNDING <= gate.least_noise <= gate.noise <= 1 + ROUNDING for gate in gates):
        faults.append("the declared noise does not cost what is charged")
    with simulated_noise(22):
        outputs = [row.draw(side, 1.0, 120) for side in (0, 1)]
    if audit_samples(*outputs, claimed=1.0, delta=row.delta, pilot=20, false_alarm=EACH).violated:
        faults.append("outputs of the whole call are flagged")
    with less_declared(TOO_LITTLE):
        seen = at_gate(row, 1.0).noise > 1.01
    share = max(found.share, gates[0].moved)
    return Found(f"{share:.3f}", _shown(share), "seen" if seen else "MISSED", tuple(faults))


def attack(name: str) -> Found:
    """Return how many ways of all calls fall to an attack; its broken libraries stand in the place of mutants."""
    row = next(row for row in ATTACKS if row.name == name)
    ours = [f"{way.task} {way.name}" for way in WAYS if row.succeeds(way)]
    broken = {name: {way.task for way in fallen(row, name)} for name in row.broken}
    faults = [f"{way} falls" for way in ours]
    if set().union(*broken.values()) != {way.task for way in WAYS} or not all(broken.values()):
        faults.append("a broken library does not fall to it")
    return Found(f"{len(ours)} of {len(WAYS)} ways fall", ("–", "–"), "–", tuple(faults))


KINDS: dict[str, Callable[[str], Found]] = {
    "mechanism": mechanism, "call": call, "statistic": statistic, "attack": attack,
}  # fmt: skip


@lru_cache(maxsize=1)
def _mutants() -> dict[str, Callable[[], bool]]:
    return {name: case.flagged for name, case in cases()[0].items()}


def done(job: Job) -> Found | bool:
    """Do one job in a process of its own: a line, or whether a mutant is killed."""
    # Small tables and no rehearsal: neither bears on what one row can move.
    anm.TABLE_PLACES, ask.rehearse = 65, lambda score: None  # type: ignore[assignment]
    kind, name = job
    return _mutants()[name]() if kind == "mutant" else KINDS[kind](name)


def lines() -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """Yield kind, name and mutants of every line, in the order of the table."""
    of = {row.name: mutants_of(row) for row in MECHANISMS}
    of |= {row.claim: mutants_of(row) for row in SENSITIVITIES}
    yield from (("mechanism", row.name, of[row.name]) for row in EXACT)
    yield from (("statistic", row.claim, of[row.claim]) for row in SENSITIVITIES)
    yield from (("call", row.name, mutants_of(row)) for row in TASKS)
    yield from (("attack", row.name, tuple(row.broken)) for row in ATTACKS)


COLUMNS = ("audited", "falsifier's share", "ε shown of 1", "ε shown of 2", "5 % less", "mutants killed")
HEADINGS = {
    "mechanism": "mechanisms, by their exact laws", "statistic": "claims about statistics",
    "call": "public calls, each way", "attack": "attacks, with libraries that fall to them as mutants",
}  # fmt: skip


@benchmark("audit", jobs=2)
def main(report: Report) -> None:
    table, killed = list(lines()), dict.fromkeys(_mutants(), False)
    wanted: list[Job] = [(kind, row) for kind, row, _ in table]
    wanted += [("mutant", mutant) for mutant in killed]
    with ProcessPoolExecutor(report.given.jobs, mp_context=get_context("spawn")) as pool:
        results = dict(zip(wanted, pool.map(done, wanted), strict=True))
    faults: list[str] = []
    print("|", " | ".join(COLUMNS), "|")
    print("|---" * len(COLUMNS) + "|")
    previous = ""
    for kind, row, mutants in table:
        audit = results[kind, row]
        assert isinstance(audit, Found)
        if kind != previous:
            print(f"| **{HEADINGS[kind]}** | | | | | |")
            previous = kind
        number = sum(bool(results["mutant", mutant]) for mutant in mutants) if kind != "attack" else len(mutants)
        print("|", " | ".join((row, audit.share, *audit.shown, audit.less, f"{number} of {len(mutants)}")), "|")
        faults += [f"{row}: {fault}" for fault in audit.faults]
    alive = [mutant for mutant in killed if not results["mutant", mutant]]
    for fault in [*faults, *(f"mutant not killed: {mutant}" for mutant in alive)]:
        report.target(fault, False)
    report.target(f"{len(killed) - len(alive)} of {len(killed)} mutants killed", not alive)
