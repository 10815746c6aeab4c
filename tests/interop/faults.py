"""Processes are killed, give up, or have their lock broken, beside those of the
other library: the others go on as soon as among processes of their own."""

import time

from peers import Watch, check, exclude, wait_until

LEASE_MS = 3000
LEASE_S = LEASE_MS / 1000
PAUSE_S = 5      # a machine may stall for some seconds
SLACK_S = 1      # the server's tick, and two cores for all processes
LOOK_S = 2       # how often ours polls, in case no message arrives
ALIVE_S = 3  # for how long a waiter of ours counts as alive after a poll
FOREVER = -1


def cast(world, *sides):
    """One process for each given side, with a short lease."""
    pools = {side: list(world.pool(side, sides.count(side), LEASE_MS))
             for side in set(sides)}
    return [pools[side].pop() for side in sides]


def wait_for(world, peer, kind, name, wait_ms=FOREVER):
    """Makes a peer wait; returns once the server knows the waiter."""
    before = world.server.waiting(kind, name)
    peer.tell('hold', kind, name, 0, wait_ms, 1)
    wait_until(f'{peer.side} waits',
               lambda: world.server.waiting(kind, name) > before)


def granted(peer):
    watch = Watch()
    peer.expect('held')
    return watch.stop()


def killed_holder(world, kind, dies, waits, wanted=None):
    """The holder of kind is killed; the waiter wants kind, or `wanted`."""
    holder, waiter = cast(world, dies, waits)
    wanted = wanted or kind
    name = world.name()
    if kind == 'semaphore':
        world.pool('redisson', 1)[0].expect('set', 'permits', kind, name, 1)
    # Redisson does not renew permits.
    lease_ms = LEASE_MS if kind == 'semaphore' and dies == 'redisson' else 0
    holder.expect('held', 'hold', kind, name, lease_ms, FOREVER, 1)
    if 'redis-py' in (dies, waits):
        waiter.tell('hold', wanted, name, 0, FOREVER)
    else:
        wait_for(world, waiter, wanted, name)
    exclude(not waiter.has_answered(), 'two hold it')
    holder.kill()
    took = granted(waiter)
    waiter.expect('dropped', 'drop')
    world.note(f'granted after {took.seconds:.2f} s, of a lease of '
               f'{LEASE_S:.0f} s')
    # Renewed after a third: at least two thirds are left.
    exclude(took.seconds > LEASE_S / 2, 'before the lease was over')
    check(took.fair_s < LEASE_S + SLACK_S, 'late')


def patience_s(world, name):
    """How much longer Redisson waits for the first in its fair queue."""
    first = world.server.ask('LINDEX', f'redisson_lock_queue:{{{name}}}', 0)
    deadline = world.server.ask('ZSCORE', f'redisson_lock_timeout:{{{name}}}',
                                first)
    return float(deadline) / 1000 - time.time()


def killed_waiter(world, kind, holds, dies, *behind, wait_ms=FOREVER):
    """Seconds from the release until the next waiter holds the lock, and seconds
    for which Redisson would still wait for the dead waiter."""
    holder, waiter, second, *others = cast(world, holds, dies, *behind)
    name = world.name()
    holder.expect('held', 'hold', kind, name, 0, FOREVER)
    wait_for(world, waiter, kind, name, wait_ms)
    for peer in second, *others:
        wait_for(world, peer, kind, name)
    waiter.kill()
    patience = patience_s(world, name) if kind == 'fair' else 0
    holder.expect('dropped', 'drop')
    seconds = granted(second).fair_s
    world.note(f'{holds} lets go, a waiter of {dies} is dead, {behind[0]} has '
               f'it after {seconds:.2f} s')
    for peer in others:
        second.expect('dropped', 'drop')
        peer.expect('held')
        second = peer
    second.expect('dropped', 'drop')
    return seconds, patience


def killed_unfair_waiter(world, holds, dies, behind):
    seconds, _ = killed_waiter(world, 'unfair', holds, dies, behind)
    check(seconds < SLACK_S, 'late')


def killed_fair_waiter_of_redisson(world):
    """Redisson derives a waiter's deadline from its wait: 2 s here."""
    for holds in 'redisson', 'ours':
        seconds, patience = killed_waiter(world, 'fair', holds, 'redisson',
                                          'ours', wait_ms=2000)
        world.note(f'Redisson would have waited for {patience:.2f} s')
        check(seconds < patience + LOOK_S + SLACK_S, 'later than Redisson')


def killed_fair_waiter_of_ours(world):
    seconds, _ = killed_waiter(world, 'fair', 'ours', 'ours', 'redisson')
    check(seconds < SLACK_S, 'late')
    # Redisson's holder does not notice the death; our other waiter does.
    seconds, _ = killed_waiter(world, 'fair', 'redisson', 'ours', 'redisson',
                               'ours')
    check(seconds < LEASE_S + LOOK_S, 'late')
    # No waiter of ours is left, but the first one's deadline is near.
    seconds, _ = killed_waiter(world, 'fair', 'redisson', 'ours', 'redisson')
    check(seconds < ALIVE_S + LOOK_S + SLACK_S, 'late')


def deadline_ms(world, side):
    """How long Redisson would wait for this waiter if it were dead."""
    holder, waiter = cast(world, 'redisson', side)
    name = world.name()
    holder.expect('held', 'hold', 'fair', name, 0, FOREVER)
    wait_for(world, waiter, 'fair', name)
    [(_, deadline)] = world.server.client.zrange(
        f'redisson_lock_timeout:{{{name}}}', 0, -1, withscores=True)
    holder.expect('dropped', 'drop')
    waiter.expect('held')
    waiter.expect('dropped', 'drop')
    return deadline - time.time() * 1000


def fair_deadlines(world):
    ours, redisson = (deadline_ms(world, side) for side in ('ours', 'redisson'))
    world.note(f'Redisson waits for a dead waiter of its own '
               f'{redisson / 1000:.1f} s, of ours {ours / 1000:.1f} s')
    check(ours < redisson + 1000 * SLACK_S, 'longer than for its own')


def gives_up(world, kind, holds, leaves, behind):
    holder, waiter, second = cast(world, holds, leaves, behind)
    name = world.name()
    holder.expect('held', 'hold', kind, name, 0, FOREVER)
    wait_for(world, waiter, kind, name, 1500)
    wait_for(world, second, kind, name)
    waiter.expect('busy')
    exclude(not second.has_answered(), 'two hold it')
    holder.expect('dropped', 'drop')
    seconds = granted(second).fair_s
    second.expect('dropped', 'drop')
    check(seconds < SLACK_S, f'{seconds:.2f} s')


def ours_is_robbed(world):
    ours, redisson = cast(world, 'ours', 'redisson')
    name = world.name()
    ours.expect('held', 'hold', 'unfair', name, 0, FOREVER)
    redisson.expect('forced', 'force', '-', name)
    redisson.expect('held', 'hold', 'unfair', name, 0, 0)
    wait_until('ours has seen it', lambda: ours.ask('check') == 'HF_ELOST',
               LEASE_S + PAUSE_S)
    ours.expect('failed HF_ELOST', 'drop')
    redisson.expect('dropped', 'drop')


def redisson_is_robbed(world):
    ours, redisson, waiter = cast(world, 'ours', 'redisson', 'redisson')
    name = world.name()
    redisson.expect('held', 'hold', 'unfair', name, 0, FOREVER)
    wait_for(world, waiter, 'unfair', name)
    ours.expect('forced', 'force', '-', name)
    check(granted(waiter).fair_s < SLACK_S, 'late')
    redisson.expect('failed java.lang.IllegalMonitorStateException', 'drop')
    waiter.expect('dropped', 'drop')


def of(run, *args):
    return lambda world: run(world, *args)


def both_ways(title, run, *args, ours='mutex', more=()):
    """Two cases: the fault happens to either side."""
    return [(ours, title.format(one), of(run, *args, one, other, *more))
            for one, other in [('redisson', 'ours'), ('ours', 'redisson')]]


CASES = [
    *both_ways('killed: {} while it holds an rlock', killed_holder, 'unfair'),
    *both_ways('killed: {} while it holds an rfairlock', killed_holder, 'fair'),
    *both_ways('killed: {} while it reads', killed_holder, 'read',
               ours='rwlock', more=['write']),
    *both_ways('killed: {} while it writes', killed_holder, 'write',
               ours='rwlock', more=['read']),
    *both_ways('killed: {} while it has a permit', killed_holder, 'semaphore',
               ours='semaphore'),
    ('mutex', 'killed: redis-py while it holds',
     of(killed_holder, 'unfair', 'redis-py', 'ours, string')),
    ('mutex', 'killed: ours while it holds, redis-py waits',
     of(killed_holder, 'unfair', 'ours, string', 'redis-py')),
    ('mutex', 'killed: redisson while it waits for an rlock',
     of(killed_unfair_waiter, 'ours', 'redisson', 'ours')),
    ('mutex', 'killed: ours while it waits for an rlock',
     of(killed_unfair_waiter, 'redisson', 'ours', 'redisson')),
    ('mutex', 'killed: redisson while it waits for an rfairlock',
     killed_fair_waiter_of_redisson),
    ('mutex', 'killed: ours while it waits for an rfairlock',
     killed_fair_waiter_of_ours),
    ('mutex', 'killed: for how long redisson waits for a dead waiter',
     fair_deadlines),
    *[('mutex', f'gives up: {leaves} on an {what}, held by {holds}',
       of(gives_up, kind, holds, leaves, behind))
      for kind, what in [('unfair', 'rlock'), ('fair', 'rfairlock')]
      for holds, leaves, behind in [('redisson', 'ours', 'redisson'),
                                    ('ours', 'redisson', 'ours')]],
    ('mutex', 'broken: a lock that ours holds, by redisson', ours_is_robbed),
    ('mutex', 'broken: a lock that redisson holds, by ours',
     redisson_is_robbed),
]
