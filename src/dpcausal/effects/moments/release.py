"""The released moments that a caller gets: regressions of any of their columns, free."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.moments.effect import effect_of_line
from dpcausal.effects.moments.linear_models import Instrumented, mediated, partial, sensitivity_table, two_stage
from dpcausal.effects.moments.regression import Errors, Regression, Terms, regress
from dpcausal.effects.moments.released import ReleasedMoments
from dpcausal.effects.result import Effect
from dpcausal.errors import ParameterError, with_signature_errors


@storable("JointMoments")
@dataclass(frozen=True, eq=False)
class JointMoments(ReleasedMoments):
    __doc__ = ReleasedMoments.__doc__

    @with_signature_errors
    def ols(
        self, outcome: str, regressors: Sequence[str], *, reference: Mapping[str, Any] | None = None,
        errors: Errors | None = None, coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return the linear regression of a column on others: free, however often.

        Parameters
        ----------
        outcome : str
        regressors : list of str
            A column of more than two levels has a coefficient for each but its reference, as ``"site = south"``.
        reference : dict from column to level, optional
            The level that the others of a column are compared with; by default the first that was declared.
        errors : {"homoscedastic", "normal", "symmetric"}, optional
            What is known of the errors about the line.  Second moments do not show it, so there is an interval only
            where it is stated, or for the regression named as ``robust_for`` at enough rows.

            * ``"homoscedastic"``: they have one distribution everywhere, the same spread and the same skew.
            * ``"normal"``: outcome and regressors are about normal together, so errors are homoscedastic too.  Needed
              where noise would hide a skew.
            * ``"symmetric"``: of the regression named as ``robust_for``, the outcome lies as far above its line as
              below, everywhere; its spread may differ.  Needed where rows are too few to show a skew.
        coverage : float
            From 0.5 to 0.999.
        """
        named, on = self._named(outcome=outcome), self._listed("regressors", regressors, 1, outcome)
        return regress(self, named, on, _terms(errors, coverage), self._references(on, reference))

    @with_signature_errors
    def effect(
        self, *, treatment: str, outcome: str, adjust: Sequence[str], errors: Errors | None = None,
        coverage: float = 0.95,
    ) -> Effect:  # fmt: skip
        """Return the slope of a treatment, others held fixed, as an effect: free, however often.

        Parameters
        ----------
        treatment, outcome : str
        adjust : list of str
            Every common cause of both; empty if treatment was drawn at random.
        errors, coverage
            As for ``ols``, whose slope and interval it has.

        Returns
        -------
        Effect
            ``estimand`` is ``"slope"``: the mean change by one unit of the treatment where outcomes follow a line.
        """
        named, moved = self._pair(outcome, treatment)
        held = self._listed("adjust", adjust, 0, outcome, treatment)
        terms = _terms(errors, coverage)
        return replace(effect_of_line(self, moved, named, held, terms), release=self)

    @with_signature_errors
    def iv(
        self, outcome: str, treatment: str, *, instruments: Sequence[str], given: Sequence[str] = (),
        errors: Literal["homoscedastic"] | None = None, coverage: float = 0.95,
    ) -> Instrumented:  # fmt: skip
        """Return the slope of a treatment by instruments, two-stage least squares and Anderson–Rubin: free.

        Parameters
        ----------
        outcome, treatment : str
        instruments : list of str
            Columns that move the treatment, and the outcome through nothing else: no table can show that.
        given : list of str
            Columns that are held fixed.
        errors, coverage
            As for ``ols``.
        """
        named, moved = self._pair(outcome, treatment)
        by = self._listed("instruments", instruments, 1, outcome, treatment)
        held = self._listed("given", given, 0, outcome, treatment, *by)
        by = tuple(one for name in by for one in self._columns_of(name))
        return two_stage(self, named, moved, by, held, _terms(errors, coverage, "homoscedastic"))

    @with_signature_errors
    def partial(
        self, x: str, y: str, *, given: Sequence[str] = (), errors: Literal["normal"] | None = None,
        coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return the partial correlation of two columns, others held fixed: free. ``errors="normal"`` states that all
        of them are about normal; without it there is no interval."""
        one, other = self._named(x=x), self._named(y=y)
        held = self._listed("given", given, 0, x, y)
        if one == other:
            raise ParameterError("x and y must be different columns")
        return partial(self, one, other, held, _terms(errors, coverage, "normal"))

    @with_signature_errors
    def mediation(
        self, treatment: str, mediator: str, outcome: str, *, given: Sequence[str] = (),
        errors: Literal["homoscedastic"] | None = None, coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return the direct effect, that through a mediator, and both together, in linear models: free. Right if
        ``given`` holds every common cause of treatment, mediator and outcome, and none of them is itself caused by the
        treatment.  Where the mediator acts otherwise under treatment, the indirect effect of a randomised one is p
        times that with treatment and 1 − p times that without, p the share treated; the direct one is the rest of the
        total."""
        names = self._listed("treatment, mediator and outcome", (treatment, mediator, outcome), 3)
        for name in names:
            self._named(name=name)
        held = self._listed("given", given, 0, *names)
        return mediated(self, names[0], names[1], names[2], held, _terms(errors, coverage, "homoscedastic"))

    @with_signature_errors
    def sensitivity(
        self, outcome: str, treatment: str, *, given: Sequence[str] = (), explains: tuple[float, float] | None = None,
        errors: Literal["homoscedastic", "normal"] | None = None, coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return what would be left of a slope if a cause were unmeasured: free.

        One line each: no cause; one that explains the shares ``explains`` of what is left of outcome and treatment; one
        as strong as each of ``given``, in the sense of Cinelli & Hazlett (2020).  The first has the robustness value of
        the slope: the share of both that would bring it to 0.  Only the first has an interval, unless ``errors``
        is ``"normal"``, all columns about normal: the others rely on spreads, which shortening moves elsewhere.
        """
        named, moved = self._pair(outcome, treatment)
        held = self._listed("given", given, 0, outcome, treatment)
        if explains is not None:
            if not isinstance(explains, tuple) or len(explains) != 2:
                raise ParameterError("explains must be two shares: of the outcome, of the treatment")
            of_outcome, of_treatment = (public.number("explains", share, 0, 0.99) for share in explains)
            explains = (of_outcome, of_treatment)
        return sensitivity_table(
            self, named, moved, held, explains, _terms(errors, coverage, "homoscedastic", "normal")
        )

    def _named(self, **one: str) -> str:
        ((what, name),) = one.items()
        if public.names(what, [name], known=self.columns)[0] not in self.names:
            raise ParameterError(f"{what}: column {name!r} has more than two levels", argument=what, rule="levels")
        return name

    def _pair(self, outcome: str, treatment: str) -> tuple[str, str]:
        if self._named(outcome=outcome) == self._named(treatment=treatment):
            raise ParameterError("outcome and treatment must be different columns")
        return outcome, treatment

    def _columns_of(self, name: str) -> tuple[str, ...]:
        """Return a number, or of a factor the columns of all levels but its reference."""
        levels = next((one[2:] for one in self.factors if one[0] == name), ())
        return tuple(f"{name} = {level}" for level in levels) or (name,)

    def _references(self, on: tuple[str, ...], reference: object) -> dict[str, str]:
        if reference is None:
            return {}
        levels = {one[0]: one[1:] for one in self.factors if one[0] in on}
        known = isinstance(reference, Mapping) and all(str(reference[one]) in levels.get(one, ()) for one in reference)
        if not isinstance(reference, Mapping) or not known:
            raise ParameterError(
                "reference must name a level of columns of more than two levels among the regressors",
                argument="reference", rule="levels",
            )  # fmt: skip
        return {name: str(level) for name, level in reference.items()}

    def _listed(self, what: str, names: Sequence[str], least: int, *others: str) -> tuple[str, ...]:
        listed = public.names(what, names, known=self.columns)
        if len(listed) < least or set(listed) & set(others):
            count, excluded = f"at least {least} columns" if least else "columns", ", ".join(others)
            text = f"{what} must be {count}{f', and none of {excluded}' if others else ''}"
            raise ParameterError(text, argument=what, rule="names", value=listed)
        return listed


def _terms(errors: object, coverage: Any, *allowed: str) -> Terms:
    if errors is not None:
        public.check_choice("errors", errors, allowed or get_args(Errors))
    share = public.number("coverage", coverage, 0.5, 0.999)
    return Terms(cast("Errors | None", errors), share)
