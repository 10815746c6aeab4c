"""Ours beside redsync and node-redlock, on the same five servers."""

import os
import tempfile

import peers
import sessions
from contention import EACH, contend
from faults import FOREVER, granted
from peers import check, exclude, wait_until

SERVERS = 5
TOTAL = 1000
SHORT_MS = 1000
SLACK_S = 1
PATIENCE_MS = 20000
THEIRS = ('redsync', 'node-redlock 4', 'node-redlock 5')


class Servers:
    def __init__(self):
        self.dir = tempfile.TemporaryDirectory(prefix='holdfast-interop.',
                                               dir='/dev/shm')
        self.all = [peers.Server() for _ in range(SERVERS)]
        self.addresses = ','.join(f'127.0.0.1:{one.port}' for one in self.all)

    def values(self, name):
        """The value of the key at each server."""
        return [one.ask('GET', name) for one in self.all]

    def end(self):
        for one in self.all:
            one.end()
        self.dir.cleanup()


class World(sessions.World):
    def command(self, side, lease_ms):
        out, addresses = os.path.join(self.build, 'interop'), \
            self.server.addresses
        if side == 'redsync':
            return [f'{out}/redsync/redsync-peer', addresses, str(lease_ms)]
        if side.startswith('node-redlock '):
            return ['node', f'{out}/node/peer.js', side.split()[1], addresses,
                    str(lease_ms)]
        # A server that has just started did not lose a key.
        return [os.path.join(self.build, 'tests/interop/interop-ours'),
                f'redlock://{addresses}?max_lease=0', str(lease_ms)]


def together(world, other):
    sides = {side: world.pool(side, EACH) for side in (other, 'ours')}
    contend(world, 'unfair', sides, total=TOTAL)


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
    took = granted(other)
    world.note(f'{wants}: granted after {took.seconds:.2f} s, of a lease of '
               f'{SHORT_MS / 1000:.0f} s')
    exclude(took.seconds > SHORT_MS / 2000, 'before the lease was over')
    check(took.fair_s < SHORT_MS / 1000 + SLACK_S, 'late')
    values = world.server.values(name)
    answer = holder.ask('drop')
    check(answer.startswith('failed'), f'{holds} released it: {answer}')
    exclude(world.server.values(name) == values, f'{holds} released the '
            f'lock of {wants}')
    holder.expect('busy', 'hold', 'unfair', name, 0, 0)
    other.expect('dropped', 'drop')


def killed(world, dies, waits):
    holder, waiter = sessions.cast(world, dies, waits)
    name, lease_s = world.name(), sessions.LEASE_MS / 1000
    holder.expect('held', 'hold', 'unfair', name, 0, 0)
    waiter.tell('hold', 'unfair', name, 0, FOREVER)
    holder.kill()
    took = granted(waiter)
    waiter.expect('dropped', 'drop')
    world.note(f'granted after {took.seconds:.2f} s, of a lease of '
               f'{lease_s:.0f} s')
    exclude(took.seconds > lease_s / 2, 'before the lease was over')
    check(took.fair_s < lease_s + SLACK_S, 'late')


place = sessions.Place('redlock: ', lambda other: World(other, Servers()))


def each_way(title, run, other):
    return place.each_way(f'{title}, beside {other}', run, theirs=other)


CASES = [
    place.on('a lock that protects nothing is seen', sessions.seen, 'redsync',
             'unfair'),
    *(place.on(f'{other} {EACH}+{EACH} processes, {TOTAL} acquisitions',
               together, other) for other in THEIRS),
    *(case for other in THEIRS for case in [
        *each_way('{} keeps the other out', excluded, other),
        *each_way('the lease of {} ends', expired, other)]),
    *each_way('{} is killed while it holds', killed, 'redsync'),
]


def end():
    place.end()
