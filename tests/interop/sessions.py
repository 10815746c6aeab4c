"""Cases for servers that release a lock when the holder's session ends (zookeeper.py,
etcd.py), and cases that measure speed.
"""

import figures
import places
from contention import EACH, seen, together
from peers import check
from places import FOREVER, LEASE_S, SLACK_S, wait_for

RUN_MS = 1500


def killed_waiter(world, *cast):
    seconds, _ = places.killed_waiter(world, 'fair', *cast)
    check(seconds < LEASE_S + world.late_s + SLACK_S, f'{seconds:.2f} s')


def who(world, theirs, wanted):
    """Inspection by ours must show the other library's holder and waiter."""
    [ours] = world.pool('ours', 1)
    first, second = world.pool(theirs, 2)
    name = world.name()
    first.expect('held', 'hold', 'fair', name, 0, FOREVER)
    wait_for(world, second, 'fair', name)
    answer = ours.ask('who', '-', name)
    world.note(answer)
    check(f'holders=1 waiters=1 {wanted}' in answer, answer)
    first.expect('dropped', 'drop')
    second.expect('held')
    second.expect('dropped', 'drop')


def refused(world, theirs, kind, *wanted):
    """The other library holds a lock of this kind on the name. Our requests for the wanted
    kinds must be refused."""
    other, ours = world.pool(theirs, 1)[0], world.pool('ours', 1)[0]
    name = world.name()
    other.expect('held', 'hold', kind, name, 0, FOREVER, 1)
    for one in wanted:
        ours.expect('failed HF_EMISMATCH', 'hold', one, name, 0, 0, 1)
    other.expect('dropped', 'drop')


class Speed:
    """The speed of one side: pairs of lock and unlock per second, on one lock."""

    def __init__(self, world, side, kind='fair', count=1, run_ms=RUN_MS):
        peers, name = world.pool(side, count), world.name()
        for peer in peers:
            peer.tell('race', kind, name, 1, run_ms)
        seen = [peer.expect('done') for peer in peers]
        pairs = [one['pairs'] for one in seen]
        check(sum(pairs) > 0, f'{side}: not one pair in {run_ms} ms')
        self.rate = sum(pairs) * 1e6 / max(one['us'] for one in seen)
        self.least, self.most = min(pairs), max(pairs)


def speeds(place, theirs, together='8 processes'):
    """Returns cases that compare the speed. They only report it."""
    return [
        place.on(f'figures: {title}', figures.compare, what, theirs,
                 lambda world, side, count=count: Speed(
                     world, side, count=count).rate, least=0, tries=1)
        for title, what, count in [('pairs', 'pair of lock and unlock', 1),
                                   ('8 processes', together, 2 * EACH)]]


def cases(place, theirs, mutex, rwlock):
    """Returns the cases of a library with a fair mutex and a read-write lock. Our requests for
    the kinds in `mutex' and in `rwlock' must be refused on its mutex and on its read-write
    lock."""
    def each_way(title, *args, **more):
        return place.each_way(title, places.killed_holder, *args,
                              theirs=theirs, **more)
    return [
        place.on('a lock that protects nothing is seen', seen, together, 'fair',
                 theirs, total=500, stay_us=2000),
        *each_way('{} is killed while it holds', 'fair'),
        *each_way('{} is killed while it reads', 'read', wanted='write'),
        *each_way('{} is killed while it writes', 'write', wanted='read'),
        *[place.on(f'{dies} is killed while it waits', killed_waiter, holds,
                   dies, holds)
          for dies, holds in [(theirs, 'ours'), ('ours', theirs)]],
        place.on('our others on its mutex', refused, theirs, 'fair', *mutex),
        place.on('our others on its read-write lock', refused, theirs, 'read',
                 *rwlock),
    ]
