"""Speed beside Redisson: the same work on the same server, in turns, so that
other load on the machine affects both."""

import statistics

from contention import EACH, contend
from peers import check

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


def ratio_of(world, what, measure):
    rounds = [{side: measure(world, side) for side in TOTAL}
              for _ in range(ROUNDS)]
    seen = {side: statistics.median(one[side] for one in rounds)
            for side in TOTAL}
    ratio = seen['ours'] / seen['redisson']
    world.note(f'{what}: ours {seen["ours"]:.0f}/s, '
               f'redisson {seen["redisson"]:.0f}/s, {ratio:.1f} times')
    return ratio


def compare(world, what, measure):
    """Another program on the machine may spoil one of our measurements, but not
    all of them."""
    for side in TOTAL:  # lets Java warm up
        measure(world, side)
    check(any(ratio_of(world, what, measure) > 0.8 for _ in range(TRIES)),
          'slower than Redisson')


CASES = [
    ('mutex', f'figures: {what}',
     lambda world, what=what, measure=measure: compare(world, what, measure))
    for what, measure in [
        ('lock and unlock, alone', race('unfair', 1)),
        ('8 processes', together('unfair')),
        ('8 processes, fair', together('fair')),
        ('16 threads', race('unfair', 16)),
        ('16 threads, handoff 1000', race('unfair', 16, 1000)),
    ]
]
