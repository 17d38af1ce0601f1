"""Noisy whitened pairs, and third moments of some triples: full tests of two columns given two."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.level_moments import LEAST_SHARE, Columns, NoisyWhitened, of_factors, with_eigenvalue_floor
from dpcausal.releases.release import memoized
from dpcausal.releases.saved import Form
from dpcausal.statistics.level_moments import Triple, constant, features, third_entries

LEAST_OWN = 0.1
"""Least variance of a product of two columns' functions, beyond what these explain alone, that a test looks at."""


class _Beyond(NamedTuple):
    """What two columns z and w explain together beyond what each explains. Ψ = Lᵀ (F_z ⊗ F_w − slopesᵀ (1, F_z,
    F_w))."""

    slopes: Reals
    scale: Reals


@storable("NoisyTriples")
@dataclass(frozen=True, eq=False)
class NoisyTriples(NoisyWhitened):
    """Whitened pairs, and of some triples the noisy sums of g F_a ⊗ F_b ⊗ F_c, and of g times a constant. ``triples``:
    three columns each, in their order; ``thirds``: the sums, one triple after another, that of the constant last;
    ``thirds_deviation``: of their noise."""

    kind: ClassVar[str] = "triples"
    steepest, doubt = 1.2, 0.6

    triples: tuple[Triple, ...]
    thirds: Reals
    thirds_deviation: float

    @cached_property
    def pairs(self) -> NoisyWhitened:
        return NoisyWhitened(self.names, self.n, self.places, self.shares, self.matrix, self.deviation,
                             cuts=self.cuts, cut=self.cut)  # fmt: skip

    @cached_property
    def _total(self) -> float:
        entries = third_entries([np.array(p) for p in self.shares], self.triples)
        return max(float(self.thirds[-1]) / constant(entries), LEAST_SHARE * self.n)

    @cached_property
    def _sums(self) -> dict[Triple, Reals]:
        shapes = [[len(self.shares[place]) - 1 for place in one] for one in self.triples]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes], dtype=np.intp)
        parts = np.split(self.thirds, ends)[:-1]
        return {one: part.reshape(shape) for one, part, shape in zip(self.triples, parts, shapes, strict=True)}

    def third(self, x: int, z: int, w: int) -> Reals | None:
        """Return the noisy mean of F_x ⊗ F_z ⊗ F_w; ``None`` if that triple was not released."""
        a, b, c = sorted((x, z, w))
        sums = self._sums.get((a, b, c))
        return None if sums is None else sums.transpose([(a, b, c).index(k) for k in (x, z, w)]) / self._total

    @memoized
    def _beyond(self, z: int, w: int) -> _Beyond:
        weight = self.pair(z, w).ravel()
        one, other = (features(np.array(self.shares[place])) for place in (z, w))
        alone = np.hstack([np.ones((len(weight), 1)), np.repeat(one, len(other), 0), np.tile(other, (len(one), 1))])
        products = np.einsum("ai,bj->abij", one, other).reshape(len(weight), -1)
        inverse = with_eigenvalue_floor(alone.T @ (weight[:, None] * alone))[1]
        slopes = inverse @ inverse @ (alone.T @ (weight[:, None] * products))
        left = products - alone @ slopes
        values, vectors = np.linalg.eigh(left.T @ (weight[:, None] * left))
        own = values > LEAST_OWN
        return _Beyond(slopes, vectors[:, own] / np.sqrt(values[own]))

    @memoized
    def _turn(self, x: int, z: int, w: int) -> Reals | None:
        third = self.third(x, z, w)
        if third is None:
            return None
        own, one, other = self.block(x), self.block(z), self.block(w)
        mean, of_z, of_w = self._means[own], self._means[one], self._means[other]
        product = third.reshape(len(mean), -1) - np.outer(mean, self._second[one, other].ravel())
        alone = np.hstack([
            np.zeros((len(mean), 1)), self._second[own, one] - np.outer(mean, of_z),
            self._second[own, other] - np.outer(mean, of_w),
        ])  # fmt: skip
        beyond = self._beyond(z, w)
        return self._roots[x] @ (product - alone @ beyond.slopes) @ beyond.scale

    def _link(self, x: int, y: int, given: Columns) -> tuple[Reals, Reals, Reals]:
        """Return it given two columns, with what they explain together removed too: H − B_x B_yᵀ, B = E[x Ψ']. To first
        order its noise is that of H, and s₃² (B_x M B_xᵀ ⊗ N_y + N_x ⊗ B_y M B_yᵀ) + s₃⁴ tr M² N_x ⊗ N_y, M = LᵀL: Ψ is
        taken as if it were known."""
        h, sampling, noise = super()._link(x, y, given)
        turned, turned_y = (self._turn(end, *given) if len(given) == 2 else None for end in (x, y))
        if turned is None or turned_y is None:
            return h, sampling, noise
        one, other = self._left(x, given), self._left(y, given)
        bx, by = one.root @ turned, other.root @ turned_y
        scale = self._beyond(*given).scale
        among, variance = scale.T @ scale, (self.thirds_deviation / self._total) ** 2
        nx = one.root @ self._noise[self.block(x), self.block(x)] @ one.root
        ny = other.root @ self._noise[self.block(y), self.block(y)] @ other.root
        more = of_factors(bx @ among @ bx.T, ny) + of_factors(nx, by @ among @ by.T)
        more += variance * float(np.trace(among @ among)) * of_factors(nx, ny)
        sampling = of_factors(
            with_eigenvalue_floor(one.spread - bx @ bx.T)[0], with_eigenvalue_floor(other.spread - by @ by.T)[0]
        )
        return h - bx @ by.T, sampling, noise + variance * more

    def by_name(self) -> Self:
        ordered = super().by_name()
        if ordered is self:
            return self
        new = {name: place for place, name in enumerate(ordered.names)}
        moved: dict[Triple, Triple] = {}
        for triple in self.triples:
            a, b, c = sorted(new[self.names[k]] for k in triple)
            moved[a, b, c] = triple
        triples, parts = tuple(sorted(moved)), []
        for triple in triples:
            a, b, c = (self.names.index(ordered.names[k]) for k in triple)
            parts.append(self._sums[moved[triple]].transpose([moved[triple].index(k) for k in (a, b, c)]).ravel())
        return replace(ordered, triples=triples, thirds=np.concatenate([*parts, self.thirds[-1:]]))

    def with_extra_noise(self, generator: PublicGenerator, part: float = 1.0) -> Self:
        noisier = super().with_extra_noise(generator, part)
        noise = generator.normal(0, self.thirds_deviation * part**0.5, self.thirds.shape)
        return replace(noisier, thirds=self.thirds + noise, thirds_deviation=self.thirds_deviation * (1 + part) ** 0.5)

    def numbers(self) -> dict[str, Any]:
        return {
            **super().numbers(), "triples": [list(one) for one in self.triples], "thirds": self.thirds.tolist(),
            "thirds_deviation": self.thirds_deviation,
        }  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        pairs = NoisyWhitened.from_payload(form, names, n)
        listed = form.array("triples", integral=True) if form.entry("triples") else np.empty((0, 3), dtype=np.int64)
        thirds = form.array("thirds") if len(listed) else np.zeros(1)
        if listed.ndim != 2 or listed.shape[1] != 3:
            raise form.refuse("triples")
        triples = tuple((int(a), int(b), int(c)) for a, b, c in listed)
        known = [len(p) > 1 for p in pairs.shares]
        if len(set(triples)) < len(triples) or not all(
            0 <= a < b < c < len(known) and known[a] and known[b] and known[c] for a, b, c in triples
        ):
            raise form.refuse("triples")
        if thirds.shape != (third_entries([np.array(p) for p in pairs.shares], triples) + 1,):
            raise form.refuse("thirds")
        return cls(names, n, pairs.places, pairs.shares, pairs.matrix, pairs.deviation, triples, thirds,
                   form.size("thirds_deviation"), cuts=pairs.cuts, cut=pairs.cut)  # fmt: skip
