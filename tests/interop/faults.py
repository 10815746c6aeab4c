"""Processes are killed, give up, or have their lock broken, while processes of the
other library use the same lock. The remaining processes must continue as soon as they
would if all were of one library.
"""

import time

from peers import check, exclude, wait_until
from places import (FOREVER, LEASE_MS, LEASE_S, SLACK_S, cast, granted,
                    killed_holder, killed_waiter, wait_for)
from redisson import place

PAUSE_S = 5      # a machine may stall for some seconds
LOOK_S = 2       # how often ours polls, in case no message arrives
ALIVE_S = 3      # for how long a waiter of ours counts as alive after a poll


def killed_permit_holder(world, dies, waits):
    name = world.name()
    world.pool('redisson', 1)[0].expect('set', 'permits', 'semaphore', name, 1)
    # Redisson does not renew permits, so its holder gets a lease.
    killed_holder(world, 'semaphore', dies, waits, name=name,
                  lease_ms=LEASE_MS if dies == 'redisson' else 0)


def killed_unfair_waiter(world, holds, dies, behind):
    seconds, _ = killed_waiter(world, 'unfair', holds, dies, behind)
    check(seconds < SLACK_S, 'late')


def killed_fair_waiter_of_redisson(world):
    """Redisson derives a waiter's deadline from how long the waiter is willing to wait, here
    2 s."""
    def patience_s(name):
        """Returns how much longer Redisson waits for the first waiter in its fair queue."""
        ask = world.server.ask
        first = ask('LINDEX', f'redisson_lock_queue:{{{name}}}', 0)
        deadline = ask('ZSCORE', f'redisson_lock_timeout:{{{name}}}', first)
        return float(deadline) / 1000 - time.time()

    for holds in 'redisson', 'ours':
        seconds, patience = killed_waiter(world, 'fair', holds, 'redisson',
                                          'ours', wait_ms=2000, look=patience_s)
        world.note(f'Redisson would have waited for {patience:.2f} s')
        check(seconds < patience + LOOK_S + SLACK_S, 'later than Redisson')


def killed_fair_waiter_of_ours(world):
    seconds, _ = killed_waiter(world, 'fair', 'ours', 'ours', 'redisson')
    check(seconds < SLACK_S, 'late')
    # Redisson's holder does not notice the death; the second waiter of ours does.
    seconds, _ = killed_waiter(world, 'fair', 'redisson', 'ours', 'redisson',
                               'ours')
    check(seconds < LEASE_S + LOOK_S, 'late')
    # In this run no waiter of ours is left, but the deadline of the dead one is near.
    seconds, _ = killed_waiter(world, 'fair', 'redisson', 'ours', 'redisson')
    check(seconds < ALIVE_S + LOOK_S + SLACK_S, 'late')


def deadline_ms(world, side):
    """Returns how long Redisson would wait for this waiter if it were dead."""
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


def each_way(title, run, *args, **more):
    return place.each_way(title, run, *args, theirs='redisson', **more)


CASES = [
    *each_way('killed: {} while it holds an rlock', killed_holder, 'unfair'),
    *each_way('killed: {} while it holds an rfairlock', killed_holder, 'fair'),
    *each_way('killed: {} while it reads', killed_holder, 'read',
              needs='rwlock', wanted='write'),
    *each_way('killed: {} while it writes', killed_holder, 'write',
              needs='rwlock', wanted='read'),
    *each_way('killed: {} while it has a permit', killed_permit_holder,
              needs='semaphore'),
    place.on('killed: redis-py while it holds', killed_holder, 'unfair',
             'redis-py', 'ours, string'),
    place.on('killed: ours while it holds, redis-py waits', killed_holder,
             'unfair', 'ours, string', 'redis-py'),
    place.on('killed: redisson while it waits for an rlock',
             killed_unfair_waiter, 'ours', 'redisson', 'ours'),
    place.on('killed: ours while it waits for an rlock', killed_unfair_waiter,
             'redisson', 'ours', 'redisson'),
    place.on('killed: redisson while it waits for an rfairlock',
             killed_fair_waiter_of_redisson),
    place.on('killed: ours while it waits for an rfairlock',
             killed_fair_waiter_of_ours),
    place.on('killed: for how long redisson waits for a dead waiter',
             fair_deadlines),
    *[place.on(f'gives up: {leaves} on an {what}, held by {holds}', gives_up,
               kind, holds, leaves, holds)
      for kind, what in [('unfair', 'rlock'), ('fair', 'rfairlock')]
      for holds, leaves in [('redisson', 'ours'), ('ours', 'redisson')]],
    place.on('broken: a lock that ours holds, by redisson', ours_is_robbed),
    place.on('broken: a lock that redisson holds, by ours',
             redisson_is_robbed),
]
