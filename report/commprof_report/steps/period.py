"""The period in a sequence of collectives: which of them make up one training step.

A sequence holds the bulk collectives of one rank on one communicator, in order. Three methods are
tried in this order:

sizes   The same calls with the same sizes repeat. The smallest lag at which nearly all of them
        repeat is the period. Calls that occur less often than every second period, or whose
        function is rarely called, are foreign (a checkpoint, an evaluation); they may occur
        anywhere.
bytes   The sizes differ from step to step, but their sum does not: a framework that fuses gradients
        as they become ready (Horovod). The step is the sum of bytes that divides the sequence into
        steps; if there are few steps, they must also follow long pauses. All sums that occur often
        enough to fill the sequence are candidates; those that can be no steps are left out before
        they are tried.
gaps    All calls are alike (equal layers, reduced one by one), and a long pause follows every k-th
        call. A job that pauses after every k-th step looks the same, so the pauses must be a
        notable share of the time.

If samples are missing, what repeats may be a layer in stretches that hold no whole step
(_may_be_layers): then no period is found.

The first call of a period is the one with the longest pause before it: that is when data are read
and the forward pass runs. A pause is time outside the communicator's collectives; the time that
ranks wait for each other in a small collective after every step is no pause.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate, compress, groupby
from math import exp, log, sqrt
from operator import eq, or_
from statistics import fmean, median
from typing import NamedTuple

from ..base import units

FEWEST_CALLS = 8
FEWEST_STEPS = 3
FEWEST_SINGLE_STEPS = 8  # if a step is one call: two equal calls prove little
FEWEST_CONFIDENCE = 0.6
MANY_STEPS = 10
# when searching a lag; the period found is then matched against the whole sequence
MOST_CALLS_TRIED = 8_192
MOST_CALLS_SUMMED = 3_000
MOST_CALLS_OF_A_SUM = 400
# a sum that begins after one of the longest pauses may have more calls
MOST_CALLS_AFTER_A_PAUSE, LONGEST_PAUSES = 1_500, 64
LAG_TOLERANCE = 0.02  # a smaller lag is preferred unless a larger one is better by more than this
FEWEST_REPEATED = 0.6
ANCHORS_TRIED = 8
SMALLEST_ANCHOR = 0.1  # share of the longest mean pause
FEWEST_SUMMED = 0.75  # least confidence in a period of bytes, or in few steps
SUM_TOLERANCE = 0.05
LINKED, SAFETY = 0.8, 3.0
# share of the steps of a period of bytes whose preceding pause is longer than every pause inside
FOLLOWING_PAUSES = 0.67
SURELY_LONG = 0.75  # of the pauses before the steps that there may be
# of those that there may be: so many of the longest pauses are looked at before a sum is tried
HALF_THE_STEPS = 0.5
DIVIDED = 0.9  # share of the spans of a sum that consist of the same number of equal parts
# number of different sizes in the sequence, unless it is known that steps are cut anew
FEWEST_SIZES = 6
WORTH_WITHOUT_PAUSE = 0.75  # of a step of bytes, relative to one after a long pause
# the same where it is known that steps are cut anew, and follow each other whatever the pauses
WORTH_CUT_ANEW = 0.98
RARE_FUNCTION = 0.05  # share of the calls, below which a function is foreign to the steps
# least ratio of long to short pauses; least share of long pauses in the whole time
LONG_GAP, LONG_GAPS_SHARE = 3.0, 0.25
# of a long pause: the profiler itself takes some microseconds after each 64th call, for a new page
# of samples
LEAST_LONG_NS = 10_000
MOST_CALLS_BY_GAPS = 64
# share of equal distances between long pauses, and of the calls that then lie in whole steps
SAME_DISTANCE = 0.8
STEADY = 0.75  # share of the intervals, and of their time, between half and twice the median
IRREGULAR = 0.6  # median absolute deviation / median of the times from one call to the next


class Calls(NamedTuple):
    """Bulk collectives in order, one list for each column."""

    tokens: Sequence[int]  # equal for the same call and size
    functions: Sequence[int]  # equal for the same call
    bytes: Sequence[int]
    # time up to the call in which no collective of the communicator, bulk or control, was in
    # progress
    free_ns: Sequence[int]
    end_ns: Sequence[int]
    stretch: Sequence[int]  # equal while no call is missing in between


class Span(NamedTuple):
    """A step: calls[first:end] hold it."""

    first: int
    end: int


class Walk(NamedTuple):
    """A stretch divided into steps of one sum of bytes."""

    spans: list[Span]
    linked: int  # steps that begin where another one ends
    calls: int
    hits: int  # calls that start a run of calls with this sum


class Period(NamedTuple):
    spans: list[Span]
    how: str  # 'sizes', 'bytes', 'gaps'; '': no period
    calls: float  # in a step, on average
    bytes: int  # in a step
    confidence: float  # share of the calls of the step's functions that lie in whole steps
    why: str  # no period was found


def find_period(calls: Calls, is_cut_anew: bool = False) -> Period:
    """is_cut_anew: a framework cuts what a step reduces into messages as it becomes ready, so equal
    sizes are a coincidence."""
    if len(calls.tokens) < FEWEST_CALLS:
        return _none(f"they are too few, {FEWEST_CALLS} are needed")
    gaps = pauses(calls)
    found = _by_sizes(calls, gaps)
    tried, is_rare = [found], len(found.spans) < FEWEST_STEPS
    if found.confidence < FEWEST_CONFIDENCE or is_rare or is_cut_anew:
        tried.append(summed := _by_bytes(calls, is_cut_anew))
        is_better = is_rare or summed.confidence > found.confidence or _is_a_part(summed, found)
        found = summed if summed.how and is_better else found
    if not found.how or found.confidence < _least(found):
        return _none("; ".join(map(_doubt, tried)), found.confidence)
    return _checked(calls, gaps, found, is_cut_anew)


def _is_a_part(summed: Period, found: Period) -> bool:
    """Several steps with a call now and then repeat, too, and may explain a little more than the
    step."""
    return summed.bytes < found.bytes and summed.confidence >= found.confidence - LAG_TOLERANCE


def _least(found: Period) -> float:
    return FEWEST_CONFIDENCE if len(found.spans) >= MANY_STEPS else FEWEST_SUMMED


def _doubt(found: Period) -> str:
    """Why these are no steps."""
    if not found.how:
        return found.why
    what = "sums of bytes that repeat" if found.how == "bytes" else "sizes that repeat"
    needed = units.share(_least(found))
    return f"{what} have {units.share(found.confidence)} of them, {needed} are needed"


def pauses(calls: Calls) -> list[int | None]:
    """Free time between each call and the call before it; None if calls before it are missing."""
    before = [None, *zip(calls.stretch, calls.free_ns)]
    return [
        free_ns - earlier[1] if earlier and earlier[0] == stretch else None
        for earlier, stretch, free_ns in zip(before, calls.stretch, calls.free_ns)
    ]


def free_times(begins: Sequence[int], ends: Sequence[int]) -> list[int]:
    """For intervals sorted by begin: the time before each one in which no interval was in progress,
    cumulative."""
    upto = accumulate(ends, max)
    idle = (max(0, begin - latest) for begin, latest in zip(begins[1:], upto))
    return list(accumulate(idle, initial=0)) if begins else []


def _none(why: str, confidence: float = 0.0) -> Period:
    return Period([], "", 0, 0, confidence, why)


def _checked(calls: Calls, gaps: Sequence[int | None], found: Period, is_cut_anew: bool) -> Period:
    if _may_be_layers(calls, gaps, found.spans):
        return _none(
            "what repeats may be a step or a part of one; too little was sampled in a row to tell"
        )
    single = found.calls == 1
    fewest = FEWEST_SINGLE_STEPS if single else FEWEST_STEPS
    if len(found.spans) < fewest:
        times = units.counted(len(found.spans), "time")
        return _none(f"what repeats occurs {times}, {fewest} are needed", found.confidence)
    if single and not is_cut_anew and _is_irregular(intervals(calls, found.spans)):
        return _none("they are alike, and come at irregular times", found.confidence)
    return found


def intervals(calls: Calls, spans: Sequence[Span]) -> list[int]:
    """Times from the end of each step to the end of the step directly after it."""
    return [
        calls.end_ns[later.end - 1] - calls.end_ns[earlier.end - 1]
        for earlier, later in zip(spans, spans[1:])
        if calls.stretch[earlier.first] == calls.stretch[later.first]
    ]


def _is_irregular(times: Sequence[int]) -> bool:
    if len(times) < FEWEST_STEPS:
        return True
    middle = median(times)
    return median(abs(time - middle) for time in times) > IRREGULAR * middle


def is_steady(times: Sequence[int]) -> bool:
    """True if the intervals are alike and hold most of the time. False for polls in quick
    succession with long pauses in between."""
    if len(times) < MANY_STEPS:
        return False
    middle = median(times)
    near = [time for time in times if middle <= 2 * time <= 4 * middle]
    return len(near) >= STEADY * len(times) and sum(near) >= STEADY * sum(times)


def _confidence(calls: Calls, spans: Sequence[Span]) -> float:
    """Ignores calls of functions that are not in the step (a checkpoint's Gather, Bcasts at the
    start)."""
    inside = [place for span in spans for place in range(*span)]
    functions = {calls.functions[place] for place in inside}
    return len(inside) / sum(map(functions.__contains__, calls.functions)) if inside else 0.0


# By sizes.


def _by_sizes(calls: Calls, gaps: Sequence[int | None]) -> Period:
    made, counts = Counter(calls.functions), Counter(calls.tokens)
    places = [
        place for place, (function, token) in enumerate(zip(calls.functions, calls.tokens))
        if made[function] >= RARE_FUNCTION * len(calls.functions) and counts[token] >= FEWEST_STEPS
    ]
    lag = _smallest_lag(calls, places)
    if lag:
        often = len(places) / lag / 2
        places = [place for place in places if counts[calls.tokens[place]] >= often]
        lag = _smallest_lag(calls, places)
    if not lag:
        return _none("their sizes do not repeat")
    pattern = _pattern(calls, places, lag)
    lag = len(pattern)
    own = set(pattern)
    places = [place for place in places if calls.tokens[place] in own]
    spans = _anchored(calls, gaps, places, pattern)
    if not spans:
        return _none("their sizes do not repeat in order")
    volumes: Counter[int] = Counter()
    for place in range(*spans[len(spans) // 2]):
        volumes[calls.functions[place]] += calls.bytes[place] if calls.tokens[place] in own else 0
    how, step_bytes = "sizes", sum(volumes.values())
    units = _units_of_a_step(calls, gaps, spans)
    groups, cut = _grouped(gaps, spans, units) if units > 1 else ([], 0)
    if groups and units * len(groups) >= SAME_DISTANCE * (len(spans) - cut):
        spans, how, step_bytes = groups, "gaps", step_bytes * units
    else:
        units = 1
        spans = _mended(calls, spans, *volumes.most_common(1)[0])
    return Period(spans, how, lag * units, step_bytes, _confidence(calls, spans), "")


def _stretches(calls: Calls, places: Iterable[int]) -> Iterator[list[int]]:
    for _, stretch in groupby(places, calls.stretch.__getitem__):
        yield list(stretch)


def _smallest_lag(calls: Calls, places: Sequence[int]) -> int:
    """0: none. Each kind of call is weighted by the square root of its frequency, so that rare ones
    count."""
    longest = _longest(_stretches(calls, places), MOST_CALLS_TRIED)
    lists = [[calls.tokens[place] for place in stretch] for stretch in longest]
    counts = Counter(token for tokens in lists for token in tokens)
    weights = [[1 / sqrt(counts[token]) for token in tokens] for tokens in lists]
    repeated = {}
    for lag in range(1, max(map(len, lists), default=0) // 2 + 1):
        repeated[lag] = _repeated(lists, weights, lag)
        if repeated[lag] >= 1 - LAG_TOLERANCE:
            return lag
    best = max(repeated.values(), default=0)
    return next(
        (
            lag for lag, share in repeated.items()
            if share >= max(FEWEST_REPEATED, best - LAG_TOLERANCE)
        ),
        0,
    )


def _repeated(
    lists: Sequence[Sequence[int]], weights: Sequence[Sequence[float]], lag: int
) -> float:
    same = compared = 0.0
    for tokens, weight in zip(lists, weights):
        if len(tokens) > lag:
            same += sum(compress(weight, map(eq, tokens, tokens[lag:])))
            compared += sum(weight[: len(tokens) - lag])
    return same / compared if compared else 0.0


def _pattern(calls: Calls, places: Sequence[int], lag: int) -> tuple[int, ...]:
    """The period where the sequence repeats longest; if it repeats a shorter pattern itself, that
    pattern."""
    longest = 0
    pattern: tuple[int, ...] = ()
    for stretch in _stretches(calls, places):
        tokens = [calls.tokens[place] for place in stretch]
        run = 0
        for place, same in enumerate(map(eq, tokens, tokens[lag:])):
            run = run + 1 if same else 0
            if run > longest:
                longest, pattern = run, tuple(tokens[place - run + 1 : place - run + 1 + lag])
    pattern = pattern or tuple(calls.tokens[place] for place in places[:lag])
    return next(
        pattern[:part] for part in range(1, lag + 1)
        if lag % part == 0 and pattern[:part] * (lag // part) == pattern
    )


def _anchored(
    calls: Calls, gaps: Sequence[int | None], places: Sequence[int], pattern: tuple[int, ...]
) -> list[Span]:
    """The steps, beginning with the call of the pattern that has the longest pause before it. If no
    sample is missing and several pauses are long, the steps begin with the call that leaves the
    fewest calls over at both ends."""
    spans = _scan(calls, places, pattern)
    before: list[list[int]] = [[] for _ in pattern]
    for _, inside in spans:
        for phase, place in enumerate(inside):
            if (gap := gaps[place]) is not None:
                before[phase].append(gap)
    means = [fmean(known) if known else 0.0 for known in before]
    order = sorted(range(len(pattern)), key=means.__getitem__, reverse=True)
    is_whole = calls.stretch[0] == calls.stretch[-1]
    tried = (
        [
            phase for phase in order[:ANCHORS_TRIED]
            if means[phase] >= SMALLEST_ANCHOR * means[order[0]]
        ]
        if is_whole
        else order[:1]
    )
    chosen = max(
        (
            [span for span, _ in _scan(calls, places, pattern[phase:] + pattern[:phase])]
            for phase in tried
        ),
        key=len,
        default=[],
    )
    return chosen


def _scan(
    calls: Calls, places: Sequence[int], pattern: tuple[int, ...]
) -> list[tuple[Span, list[int]]]:
    found = []
    first, length = pattern[0], len(pattern)
    for stretch in _stretches(calls, places):
        tokens = [calls.tokens[place] for place in stretch]
        at = 0
        while at + length <= len(tokens):
            if tokens[at] == first and tuple(tokens[at : at + length]) == pattern:
                inside = stretch[at : at + length]
                found.append((Span(inside[0], inside[-1] + 1), inside))
                at += length
            else:
                at += 1
    return found


def _mended(calls: Calls, spans: Sequence[Span], function: int, function_bytes: int) -> list[Span]:
    """Adds a step for the calls left over before a step if they differ in size but have the same
    sum of bytes, of the function that carries most: the first step of DistributedDataParallel has
    other buckets."""
    mended: list[Span] = []
    taken = 0
    for span in spans:
        extra: list[Span] = []
        end = place = span.first
        total = 0
        while (
            place > taken and calls.stretch[place - 1] == calls.stretch[span.first]
            and total < function_bytes
        ):
            place -= 1
            if calls.functions[place] == function:
                total += calls.bytes[place]
            if total == function_bytes > 0:
                extra.append(Span(place, end))
                end, total = place, 0
        mended += [*reversed(extra), span]
        taken = span.end
    return mended


# By gaps.


def _units_of_a_step(calls: Calls, gaps: Sequence[int | None], spans: Sequence[Span]) -> int:
    """The number of spans between long pauses, if it is constant; otherwise 1."""
    long_ns = _long_gap(gaps, spans)
    runs = (
        [] if long_ns is None
        else _unbroken(calls, spans, [(gaps[span.first] or 0) >= long_ns for span in spans])
    )
    distances = Counter(run.spans for run in runs if run.is_whole)
    ((units, times),) = distances.most_common(1) or [(1, 0)]
    known = sum(distances.values())
    is_regular = known >= FEWEST_STEPS and times >= SAME_DISTANCE * known
    return units if is_regular and units <= MOST_CALLS_BY_GAPS else 1


def _may_be_layers(calls: Calls, gaps: Sequence[int | None], spans: Sequence[Span]) -> bool:
    """Whether spans may be parts of steps, and the samples do not tell: calls are missing, and long
    pauses or other calls interrupt the spans, at distances most of which are not known."""
    if calls.stretch[0] == calls.stretch[-1]:
        return False
    long_ns = _long_gap(gaps, spans)
    is_after_others = [
        span.first != earlier.end for earlier, span in zip([spans[0], *spans], spans)
    ]
    is_after_pause = [long_ns is not None and (gaps[span.first] or 0) >= long_ns for span in spans]
    runs = _unbroken(calls, spans, list(map(or_, is_after_others, is_after_pause)))
    are_known = sum(run.is_whole for run in runs) >= FEWEST_STEPS
    return (
        any(run.is_interrupted for run in runs) and not are_known
        and max(run.spans for run in runs) < MOST_CALLS_BY_GAPS
    )


class Unbroken(NamedTuple):
    """Spans between two interruptions, or between one and calls that are missing."""

    spans: int
    is_interrupted: bool  # at one end at least
    is_whole: bool  # at both


def _unbroken(calls: Calls, spans: Sequence[Span], begins: Sequence[bool]) -> list[Unbroken]:
    """begins: of each span, whether an interruption precedes it."""
    # place of a span, and whether an interruption precedes it, rather than calls that are missing
    edges: list[tuple[int, bool]] = []
    for place, (span, is_begin) in enumerate(zip(spans, begins)):
        is_seen = place > 0 and calls.stretch[span.first] == calls.stretch[spans[place - 1].first]
        if is_begin or not is_seen:
            edges.append((place, is_seen))
    ends = [*edges[1:], (len(spans), False)]
    return [
        Unbroken(end - place, own or other, own and other)
        for (place, own), (end, other) in zip(edges, ends)
    ]


def _long_gap(gaps: Sequence[int | None], spans: Sequence[Span]) -> int | None:
    """The shortest long pause, if pauses are of two kinds (Otsu's threshold on their
    logarithms)."""
    known = sorted(gap for span in spans if (gap := gaps[span.first]) is not None)
    logs = [log(max(gap, 1)) for gap in known]
    sums = list(accumulate(logs))
    count = len(known)

    def between(place: int) -> float:
        low, high = sums[place - 1] / place, (sums[-1] - sums[place - 1]) / (count - place)
        return place * (count - place) * (high - low) ** 2

    if count < FEWEST_CALLS:
        return None
    split = max(range(1, count), key=between)
    low, high = sums[split - 1] / split, (sums[-1] - sums[split - 1]) / (count - split)
    matters = sum(known[split:]) >= LONG_GAPS_SHARE * sum(known) and known[split] >= LEAST_LONG_NS
    return known[split] if matters and exp(high - low) >= LONG_GAP else None


def _grouped(
    gaps: Sequence[int | None], spans: Sequence[Span], units: int
) -> tuple[list[Span], int]:
    """The steps of so many spans, and how many spans are in parts of steps, before or after calls
    that are missing."""
    long_ns = _long_gap(gaps, spans) or 0
    groups: list[list[Span]] = []
    for span in spans:
        gap = gaps[span.first]
        is_first = gap is None or gap >= long_ns or not groups or groups[-1][-1].end != span.first
        if is_first:
            groups.append([])
        groups[-1].append(span)
    is_cut = [gaps[group[0].first] is None for group in groups] + [True]
    cut = sum(
        len(group) for group, *sides in zip(groups, is_cut, is_cut[1:])
        if len(group) < units and any(sides)
    )
    return [Span(group[0].first, group[-1].end) for group in groups if len(group) == units], cut


# By bytes.


def _by_bytes(calls: Calls, is_cut_anew: bool) -> Period:
    """Considers only the function that carries most bytes; the others are
    ignored, even in pauses."""
    volumes: Counter[int] = Counter()
    for function, message_bytes in zip(calls.functions, calls.bytes):
        volumes[function] += message_bytes
    ((function, _),) = volumes.most_common(1)
    places = [place for place, other in enumerate(calls.functions) if other == function]
    sizes = len({calls.bytes[place] for place in places})
    if sizes < (2 if is_cut_anew else FEWEST_SIZES):
        return _none(
            f"{units.counted(sizes, 'size')} are too few for sums, {FEWEST_SIZES} are needed"
        )
    gaps = dict(
        zip(places, pauses(Calls(*([column[place] for place in places] for column in calls))))
    )
    stretches = list(_stretches(calls, places))
    step_bytes = _step_bytes(
        _summed(calls, gaps, _longest(stretches, MOST_CALLS_SUMMED), is_cut_anew)
    )
    if not step_bytes:
        return _none("no sum of their bytes repeats")
    summed = _summed(calls, gaps, stretches, is_cut_anew)
    spans, step_bytes = _divided(
        calls, gaps, [span for walk in summed.walks(step_bytes) for span in walk.spans], step_bytes
    )
    of_function = sum(
        calls.functions[place] == function for span in spans for place in range(*span)
    )
    return Period(
        spans, "bytes", of_function / len(spans), step_bytes, of_function / len(places), ""
    )


def _longest(stretches: Iterable[Sequence[int]], most: int) -> list[Sequence[int]]:
    """The longest stretches, up to `most` calls in total."""
    chosen: list[Sequence[int]] = []
    for stretch in sorted(stretches, key=len, reverse=True):
        if most > 0:
            chosen.append(stretch[:most])
            most -= len(chosen[-1])
    return chosen


class Stretch(NamedTuple):
    """Calls without a hole in between."""

    places: Sequence[int]
    upto: list[int]  # bytes up to each call, and up to the end
    index_of: dict[int, int]  # of a sum in upto

    def hits(self, step_bytes: int) -> list[tuple[int, int]]:
        """(first, end) of each run of calls with this sum, in order."""
        ends = self.index_of
        return [
            (first, ends[total + step_bytes]) for first, total in enumerate(self.upto)
            if total + step_bytes in ends
        ]


class Summed(NamedTuple):
    """The calls of one function, prepared for trying sums of their bytes."""

    gaps: dict[int, int | None]
    stretches: list[Stretch]
    # the places of all calls after a known pause, those after the longest first
    after_longest_gaps: list[int]
    calls: int
    volume: int
    is_cut_anew: bool

    @property
    def worth(self) -> float:
        """Weight of a step that follows no long pause."""
        return WORTH_CUT_ANEW if self.is_cut_anew else WORTH_WITHOUT_PAUSE

    def walks(self, step_bytes: int) -> list[Walk]:
        """As many pauses are longer than a surely long one as a part of the steps that there may
        be."""
        after = self.after_longest_gaps
        place = min(len(after) - 1, round(SURELY_LONG * self.volume / step_bytes))
        long_ns = self.gaps[after[place]] or 0 if after else 0
        return [
            _walk(self, stretch, stretch.hits(step_bytes), long_ns) for stretch in self.stretches
        ]

    def most_calls(self) -> dict[int, int]:
        """By place of a call after a long pause, or the first of a stretch: how many calls a sum
        may have."""
        after = [
            *self.after_longest_gaps[:LONGEST_PAUSES],
            *(stretch.places[0] for stretch in self.stretches),
        ]
        return dict.fromkeys(after, MOST_CALLS_AFTER_A_PAUSE)


def _summed(
    calls: Calls, gaps: dict[int, int | None], stretches: Sequence[Sequence[int]], is_cut_anew: bool
) -> Summed:
    prepared = []
    for places in stretches:
        upto = [0, *accumulate(calls.bytes[place] for place in places)]
        prepared.append(Stretch(places, upto, {total: index for index, total in enumerate(upto)}))
    all_places = [place for places in stretches for place in places]
    after = sorted(
        (place for place in all_places if gaps[place] is not None),
        key=lambda place: -(gaps[place] or 0),
    )
    return Summed(
        gaps, prepared, after, len(all_places), sum(stretch.upto[-1] for stretch in prepared),
        is_cut_anew,
    )


def _step_bytes(summed: Summed) -> int:
    """The bytes of a step: the smallest sum that explains nearly as much as the best one. 0: no sum
    explains enough. Where steps are known to be cut anew, a sum whose runs cover all calls, one
    after the other, needs no other proof: if most are cut alike, it occurs at each call, as by
    chance."""
    explained: dict[int, float] = {}
    best = 0.0
    hits_of = _hits_of_sums(summed)
    for step_bytes in sorted(hits_of):
        if not _may_be_steps(summed, step_bytes, hits_of[step_bytes], len(hits_of)):
            continue
        walks = summed.walks(step_bytes)
        spans = [span for walk in walks for span in walk.spans]
        share = sum(place in summed.gaps for span in spans for place in range(*span)) / summed.calls
        is_cover = summed.is_cut_anew and share >= 1 - SUM_TOLERANCE and _is_linked(walks)
        if spans and (
            is_cover or _is_no_chance(walks, len(hits_of)) or _follow_pauses(summed.gaps, spans)
        ):
            explained[step_bytes] = share
            best = max(best, share)
        if best >= 1 - SUM_TOLERANCE:
            break  # no larger sum explains notably more
    return min(
        (
            total for total, share in explained.items()
            if share >= max(FEWEST_SUMMED, best - SUM_TOLERANCE)
        ),
        default=0,
    )


def _divided(
    calls: Calls, gaps: Container[int], spans: list[Span], step_bytes: int
) -> tuple[list[Span], int]:
    """If nearly all spans consist of the same number of parts with equal sums,
    these are the steps."""
    for parts in range(min(span.end - span.first for span in spans), 1, -1):
        inner = (
            [_parts(calls, gaps, span, step_bytes // parts) for span in spans]
            if step_bytes % parts == 0 else []
        )
        divided = [span for own in inner if len(own) == parts for span in own]
        if len(divided) >= DIVIDED * parts * len(spans):
            return divided, step_bytes // parts
    return spans, step_bytes


def _parts(calls: Calls, gaps: Container[int], span: Span, part_bytes: int) -> list[Span]:
    """The span cut where a sum of its calls is a multiple of `part_bytes`."""
    places = [place for place in range(*span) if place in gaps]
    upto = accumulate(calls.bytes[place] for place in places)
    ends = [place + 1 for place, total in zip(places, upto) if total % part_bytes == 0]
    return [Span(first, end) for first, end in zip([span.first, *ends], ends)]


def _hits_of_sums(summed: Summed) -> dict[int, list[tuple[int, int]]]:
    """The sums of consecutive calls that occur often enough to fill the sequence: the places where
    a run with this sum begins, and where the run after it would."""
    counts: Counter[int] = Counter()
    most = summed.most_calls()

    def sums(stretch: Stretch, first: int) -> list[int]:
        before, last = (
            stretch.upto[first], first + most.get(stretch.places[first], MOST_CALLS_OF_A_SUM),
        )
        return [total - before for total in stretch.upto[first + 1 : last + 1]]

    for stretch in summed.stretches:
        for first in range(len(stretch.places)):
            counts.update(sums(stretch, first))
    least = FEWEST_SUMMED * summed.volume
    hits_of: dict[int, list[tuple[int, int]]] = {
        total: [] for total, count in counts.items()
        if count >= FEWEST_STEPS and total * count >= least
    }
    for stretch in summed.stretches:
        places = [*stretch.places, stretch.places[-1] + 1]
        for first in range(len(stretch.places)):
            for end, total in enumerate(sums(stretch, first), first + 1):
                if total in hits_of:
                    hits_of[total].append((places[first], places[end]))
    return hits_of


def _may_be_steps(
    summed: Summed, step_bytes: int, hits: Sequence[tuple[int, int]], sums: int
) -> bool:
    """False if the runs with this sum neither follow each other more often than by chance, nor
    follow most of the longest pauses."""
    firsts = {first for first, _ in hits}
    linked = sum(end in firsts for _, end in hits)
    if linked * log(summed.calls / len(hits)) > log(summed.calls * sums) + SAFETY:
        return True
    longest = summed.after_longest_gaps[
        : max(1, round(HALF_THE_STEPS * summed.volume / step_bytes))
    ]
    return sum(map(firsts.__contains__, longest)) >= FOLLOWING_PAUSES * len(longest)


def _walk(
    summed: Summed, stretch: Stretch, hits: Sequence[tuple[int, int]], long_ns: float
) -> Walk:
    """The steps that cover most of a stretch, chosen from `hits`; steps after a pause are
    preferred. A step that stands alone and follows no pause may consist of parts of two steps."""
    places, gaps = stretch.places, summed.gaps
    # by hit: the first one that does not begin before its end
    after = [bisect_left(hits, (end,)) for _, end in hits]
    pays = [1.0 if (gaps[places[first]] or 0) >= long_ns else summed.worth for first, _ in hits]
    best = [0.0] * (len(hits) + 1)
    for hit in range(len(hits) - 1, -1, -1):
        best[hit] = max(best[hit + 1], pays[hit] + best[after[hit]])
    taken, hit = [], 0
    while hit < len(hits):
        is_taken = best[hit] == pays[hit] + best[after[hit]]
        if is_taken:
            taken.append(hits[hit])
        hit = after[hit] if is_taken else hit + 1
    firsts, ends = {first for first, _ in taken}, {end for _, end in taken}
    spans = [
        Span(places[first], places[end - 1] + 1) for first, end in taken
        if first in ends or end in firsts or (gaps[places[first]] or 0) >= long_ns
    ]
    return Walk(spans, len(firsts & ends), len(places), len(hits))


def _is_linked(walks: Sequence[Walk]) -> bool:
    """True if nearly every step begins where another one ends."""
    return sum(walk.linked for walk in walks) >= LINKED * sum(len(walk.spans) - 1 for walk in walks)


def _is_no_chance(walks: Sequence[Walk], sums: int) -> bool:
    """True if the steps are linked, more often than expected by chance, of `sums` tried."""
    linked, calls, hits = (sum(column) for column in zip(*(walk[1:] for walk in walks)))
    return _is_linked(walks) and linked * log(calls / hits) > log(calls * sums) + SAFETY


def _follow_pauses(gaps: dict[int, int | None], spans: Sequence[Span]) -> bool:
    """True if the pause before most steps exceeds every pause inside them."""
    longest = [
        max((gaps.get(place) or 0 for place in range(span.first + 1, span.end)), default=0)
        for span in spans
    ]
    known = [
        (gap, inside) for span, inside in zip(spans, longest)
        if (gap := gaps[span.first]) is not None
    ]
    return sum(before > inside > 0 for before, inside in known) >= FOLLOWING_PAUSES * max(
        1, len(known)
    )
