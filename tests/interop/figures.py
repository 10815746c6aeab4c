"""Compares the speed with that of another library: the same work on the same server, in
turns, so that other load on the machine affects both. The cases here compare
with Redisson.
"""

import statistics

from contention import EACH, contend
from peers import check
from redisson import place

ROUNDS = 3
TRIES = 3
RUN_MS = 700
TOTAL = {'redisson': 1000, 'ours': 10000}  # some seconds each


def race(kind, threads, handoff=0):
    def measure(world, side):
        [peer] = world.pool(side, 1)
        seen = peer.expect('done', 'race', kind, world.name(), threads, RUN_MS,
                           handoff)
        return seen['pairs'] * 1e6 / seen['us']
    return measure


def together(kind):
    def measure(world, side):
        total = TOTAL[side]
        _, seconds = contend(world, kind, {side: world.pool(side, 2 * EACH)},
                             total, stay_us=0, quiet=True)
        return total / seconds
    return measure


def ratio_of(world, what, theirs, measure):
    rounds = [{side: measure(world, side) for side in (theirs, 'ours')}
              for _ in range(ROUNDS)]
    ours, other = (statistics.median(one[side] for one in rounds)
                   for side in ('ours', theirs))
    world.note(f'{what}: ours {ours:.0f}/s, {theirs} {other:.0f}/s, '
               f'{ours / other:.2f} times')
    return ours / other


def compare(world, what, theirs, measure, least=0.8, tries=TRIES):
    """Compares at most `tries' times: another program on the machine may spoil one
    measurement of ours, but not all of them."""
    for side in theirs, 'ours':  # lets Java warm up
        measure(world, side)
    check(any(ratio_of(world, what, theirs, measure) > least
              for _ in range(tries)), f'slower than {theirs}')


CASES = [
    place.on(f'figures: {what}', compare, what, 'redisson', measure)
    for what, measure in [
        ('lock and unlock, alone', race('unfair', 1)),
        ('8 processes', together('unfair')),
        ('8 processes, fair', together('fair')),
        ('16 threads', race('unfair', 16)),
        ('16 threads, handoff 1000', race('unfair', 16, 1000)),
    ]
]
