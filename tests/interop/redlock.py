"""Tests holdfast (`ours') alongside redsync and node-redlock, on the same five servers."""

from contention import seen, together
from peers import check, exclude, wait_until
from places import (FOREVER, Place, World, granted, killed_holder,
                    lease_ended)
from redisson import RedisServer

SERVERS = 5
TOTAL = 1000
SHORT_MS = 1000
PATIENCE_MS = 20000
THEIRS = ('redsync', 'node-redlock 4', 'node-redlock 5')


class Servers:
    def __init__(self):
        self.all = [RedisServer() for _ in range(SERVERS)]
        self.dir = self.all[0].dir
        self.addresses = ','.join(f'127.0.0.1:{one.port}' for one in self.all)

    def values(self, name):
        """Returns the value of the key at each server."""
        return [one.ask('GET', name) for one in self.all]

    def end(self):
        for one in self.all:
            one.end()


class RedlockWorld(World):
    blind = ('ours', *THEIRS)
    least = 1 / 2

    def command(self, side, lease_ms):
        addresses = self.server.addresses
        if side == 'redsync':
            return [f'{self.out}/redsync/redsync-peer', addresses,
                    str(lease_ms)]
        if side.startswith('node-redlock '):
            return ['node', f'{self.out}/node/peer.js', side.split()[1],
                    addresses, str(lease_ms)]
        # max_lease is 0 because these servers have just started and did not lose a key.
        return self.ours(f'redlock://{addresses}?max_lease=0', lease_ms)


def excluded(world, holds, wants):
    """A holder keeps the other client out until it releases the lock."""
    [holder], [other] = world.pool(holds, 1), world.pool(wants, 1)
    name = world.name()
    holder.expect('held', 'hold', 'unfair', name, 0, 0)
    values = world.server.values(name)
    for wait_ms in 0, 300:
        other.expect('busy', 'hold', 'unfair', name, 0, wait_ms)
    check(world.server.values(name) == values, f'{wants} has changed its key')
    other.tell('hold', 'unfair', name, 0, FOREVER)
    exclude(not other.has_answered(), 'two hold it')
    holder.expect('dropped', 'drop')
    other.expect('held')
    holder.expect('busy', 'hold', 'unfair', name, 0, 0)
    other.expect('dropped', 'drop')
    wait_until('its keys are gone',
               lambda: not any(world.server.values(name)))


def expired(world, holds, wants):
    """The holder's lease ends and the other client takes the lock. The late
    release must not release the new hold."""
    [holder], [other] = world.pool(holds, 1), world.pool(wants, 1)
    name = world.name()
    holder.expect('held', 'hold', 'unfair', name, SHORT_MS, 0)
    other.tell('hold', 'unfair', name, 0, PATIENCE_MS)
    lease_ended(world, granted(other), SHORT_MS / 1000)
    values = world.server.values(name)
    answer = holder.ask('drop')
    check(answer.startswith('failed'), f'{holds} released it: {answer}')
    exclude(world.server.values(name) == values, f'{holds} released the '
            f'lock of {wants}')
    holder.expect('busy', 'hold', 'unfair', name, 0, 0)
    other.expect('dropped', 'drop')


place = Place('redlock: ', lambda build: RedlockWorld(build, Servers()))


def each_way(title, run, other):
    return place.each_way(f'{title}, beside {other}', run, theirs=other)


CASES = [
    place.on('a lock that protects nothing is seen', seen, together, 'unfair',
             'redsync', total=500, stay_us=2000),
    *(place.contention_of(other, 'unfair', other, TOTAL) for other in THEIRS),
    *(case for other in THEIRS for case in [
        *each_way('{} keeps the other out', excluded, other),
        *each_way('the lease of {} ends', expired, other)]),
    *place.each_way('{} is killed while it holds, beside redsync',
                    killed_holder, 'unfair', theirs='redsync'),
]
