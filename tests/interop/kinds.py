"""Tests which kinds each side has, and what happens to a name that is used as two kinds."""

from peers import Watch, check, exclude, wait_until
from redisson import place

# The kinds that ours supports; cases that need a kind set to False are left out.
OURS = {'mutex': True, 'rwlock': True, 'semaphore': True, 'latch': True}


def declared(world):
    [ours] = world.pool('ours', 1)
    for kind, tried in OURS.items():
        has = ours.ask('caps', kind)
        check((has != 'caps 0') == tried, f'{kind}: {has}, but in the table '
              f'of kinds.py {tried}')


def refused(world, kind, *wanted):
    """Redisson holds a lock of this kind on the name. Our requests for the wanted kinds must be
    refused, and must not disturb that hold."""
    [redisson], [ours] = world.pool('redisson', 1), world.pool('ours', 1)
    name = world.name()
    if kind in ('semaphore', 'plain'):
        redisson.expect('set', 'permits', kind, name, 1)
    redisson.expect('held', 'hold', kind, name, 0, -1)
    for one in wanted:
        ours.expect('failed HF_EMISMATCH', 'hold', one, name, 0, 0, 1)
        ours.expect('failed HF_EMISMATCH', 'hold', one, name, 0, 5000, 1)
    redisson.expect('dropped', 'drop')
    redisson.expect('held', 'hold', kind, name, 0, 0)
    redisson.expect('dropped', 'drop')


def plain_semaphore(world):
    """The same name is a Redisson semaphore without owners and a semaphore of ours. Both must
    count the same permits, or ours must be refused."""
    [redisson], [ours] = world.pool('redisson', 1), world.pool('ours', 1)
    name = world.name()
    redisson.expect('set', 'permits', 'plain', name, 1)
    redisson.expect('held', 'hold', 'plain', name, 0, -1)
    answer = ours.ask('hold', 'semaphore', name, 0, 0, 1)
    check(answer == 'busy' or answer.startswith('failed HF_EMISMATCH'), answer)
    redisson.expect('dropped', 'drop')
    answer = ours.ask('hold', 'semaphore', name, 0, 0, 1)
    world.note(f'ours, on a plain semaphore with a free permit: {answer}')
    if answer.startswith('held'):
        redisson.expect('busy', 'hold', 'plain', name, 0, 0)
        ours.expect('dropped', 'drop')
    redisson.expect('held', 'hold', 'plain', name, 0, 0)
    redisson.expect('dropped', 'drop')


def latch(world, sets):
    sides = {side: world.pool(side, 2) for side in ('redisson', 'ours')}
    name = world.name()
    for side, (_, waiter) in sides.items():
        waiter.expect('zero', 'latch', 'wait', name, 0)
    sides[sets][0].expect('set', 'latch', 'set', name, 3)
    for side, (counter, waiter) in sides.items():
        counter.expect('busy', 'latch', 'set', name, 5)
        waiter.tell('latch', 'wait', name, 20000)
    wait_until('both wait', lambda: world.server.waiting('latch', name) == 2)
    for left, side in (2, 'ours'), (1, 'redisson'), (0, sets):
        for _, waiter in sides.values():
            exclude(not waiter.has_answered(), f'{waiter.side} went on too soon')
        sides[side][0].expect('down', 'latch', 'down', name)
        for counter, _ in sides.values():
            counter.expect(f'count {left}', 'latch', 'get', name)
    watch = Watch()
    for _, waiter in sides.values():
        waiter.expect('zero')
    check(watch.stop().fair_s < 1, 'no message arrived')


def on(what, needs, *case):
    return place.on(f'kinds: {what}', *case, needs=needs)


CASES = [
    on('what ours declares is tried', 'mutex', declared),
    on('our mutex where redisson reads', 'mutex', refused, 'read', 'unfair',
       'fair'),
    on('our mutex where redisson writes', 'mutex', refused, 'write', 'unfair',
       'fair'),
    on('our mutex on an rpermitexpirablesemaphore', 'mutex', refused,
       'semaphore', 'unfair', 'fair'),
    on('our mutex on an rsemaphore', 'mutex', refused, 'plain', 'unfair',
       'fair'),
    on('our rwlock on an rlock', 'rwlock', refused, 'unfair', 'read', 'write'),
    on('our rwlock on an rpermitexpirablesemaphore', 'rwlock', refused,
       'semaphore', 'read', 'write'),
    on('our semaphore on an rlock', 'semaphore', refused, 'unfair',
       'semaphore'),
    on('our semaphore on an rsemaphore', 'semaphore', plain_semaphore),
    on('rcountdownlatch, set by redisson', 'latch', latch, 'redisson'),
    on('rcountdownlatch, set by ours', 'latch', latch, 'ours'),
]
