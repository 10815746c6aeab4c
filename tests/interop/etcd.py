"""Ours beside etcd's own Go packages and etcdctl, on Debian's server and on a
current one. Beside the commands of peers.py: `who` as in zookeeper.py. Kinds:
fair, rwlock, read, write.
"""

import os
import subprocess
import sys
import tempfile

import sessions
from faults import FOREVER, granted
from peers import (Failure, check, dies_with_us, exclude, reserve_port,
                   wait_until)

LONG_MS = 60000  # a session that does not send a keepalive during a case


class Server:
    def __init__(self, program):
        self.dir = tempfile.TemporaryDirectory(prefix='holdfast-interop.',
                                               dir='/dev/shm')
        (self.reserved, port), (self.other, peer) = reserve_port(), \
            reserve_port()
        self.address = f'127.0.0.1:{port}'
        client, peer = f'http://{self.address}', f'http://127.0.0.1:{peer}'
        self.process = subprocess.Popen(
            [program, '--name=e', '--data-dir', f'{self.dir.name}/data',
             '--listen-client-urls', client, '--advertise-client-urls', client,
             '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
             '--initial-cluster', f'e={peer}', '--heartbeat-interval=10',
             '--election-timeout=100', '--logger=zap', '--log-level=error'],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=dies_with_us)
        wait_until('etcd answers', self.answers, 30)

    def ctl(self, *args):
        return subprocess.run(['etcdctl', '--endpoints', self.address, *args],
                              stdout=subprocess.PIPE, encoding='utf-8',
                              stderr=subprocess.DEVNULL, check=True).stdout

    def answers(self):
        check(self.process.poll() is None, 'etcd has ended')
        try:
            self.ctl('get', 'x')
        except subprocess.CalledProcessError:
            return False
        return True

    def keys(self, name):
        """The keys of holders and waiters, the oldest first."""
        return self.ctl('get', f'{name}/', '--prefix', '--keys-only',
                        '--sort-by=CREATE', '--order=ASCEND').split()

    def waiting(self, name):
        return len(self.keys(name))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reserved.close()
        self.other.close()
        self.dir.cleanup()


class World(sessions.World):
    late_s = 1.5  # leases have whole seconds and are checked twice a second

    def command(self, side, session_ms):
        out, address = os.path.join(self.build, 'interop'), self.server.address
        ours = os.path.join(self.build, 'tests/interop/interop-ours')
        if side == 'go':
            return [f'{out}/etcd/go-peer', address, str(session_ms)]
        if side == 'etcdctl':
            here = os.path.dirname(__file__)
            return [sys.executable, '-B', os.path.join(here, 'etcdctlpeer.py'),
                    address, str(session_ms), ours]
        return [ours, f'etcd://{address}', str(session_ms)]


def current(build):
    return os.path.join(build, 'interop/etcd/etcd')


def nested(world, side):
    """Go's mutex waits for every key below its name, ours only for its own."""
    [below] = world.pool(side, 1)
    [go], [ours] = world.pool('go', 1, LONG_MS), world.pool('ours', 1, LONG_MS)
    name = world.name()
    below.expect('held', 'hold', 'fair', f'{name}/1001', 0, FOREVER)
    go.expect('busy', 'hold', 'fair', name, 0, 500)
    ours.expect('held', 'hold', 'fair', name, 0, 0)
    go.tell('hold', 'fair', name, 0, FOREVER)
    wait_until('Go waits', lambda: world.server.waiting(name) == 3)
    ours.expect('dropped', 'drop')
    check(not go.has_answered(), 'Go does not wait for what is below its name')
    below.expect('dropped', 'drop')
    check(granted(go).fair_s < 1, 'late')
    # A lock below the name that Go holds.
    ours.expect('held', 'hold', 'fair', f'{name}/1001', 0, 0)
    ours.expect('dropped', 'drop')
    go.expect('dropped', 'drop')


def revoked_waiter(world, side):
    """An administrator revokes the lease of the first of two waiters. Returns
    both once the second one holds the lock."""
    [holder], [next_] = world.pool('go', 1), world.pool('go', 1, LONG_MS)
    [waiter], name = world.pool(side, 1, 2 * LONG_MS), world.name()
    holder.expect('held', 'hold', 'fair', name, 0, FOREVER)
    sessions.wait_for(world, waiter, 'fair', name)
    sessions.wait_for(world, next_, 'fair', name)
    key = world.server.keys(name)[1]
    world.server.ctl('lease', 'revoke', key.rsplit('/', 1)[1])
    check(key not in world.server.keys(name), 'its key is still there')
    holder.expect('dropped', 'drop')
    next_.expect('held')
    return waiter, next_


def revoked_waiter_of_ours(world):
    waiter, next_ = revoked_waiter(world, 'ours')
    try:
        answer = waiter.answer(1)
    except Failure:
        answer = 'nothing'  # it waits behind the other one
    exclude(not answer.startswith('held'), 'two hold it')
    world.note(f'ours has answered: {answer}')
    next_.expect('dropped', 'drop')
    if answer == 'nothing':
        waiter.expect('held')
        waiter.expect('dropped', 'drop')


def revoked_waiter_of_theirs(world, side, expected):
    """The other library's behaviour, which our documents describe."""
    waiter, next_ = revoked_waiter(world, side)
    answer = waiter.answer()
    world.note(f'{side} has answered: {answer}')
    check(answer.startswith(expected), answer)
    next_.expect('dropped', 'drop')
    waiter.kill()


debian = sessions.Place('etcd: ', lambda other: World(other, Server('etcd')))
newer = sessions.Place('current etcd: ', lambda other: World(
    other, Server(current(other.peers.build))))


def cases_of(place):
    return [
        place.contention_of('concurrency.mutex', 'fair', other='go'),
        place.contention_of('rwmutex', 'rwlock', other='go'),
        place.contention_of('etcdctl lock', 'fair', other='etcdctl'),
        place.on('names below a name of ours', nested, 'ours'),
        place.on('names below a name of go', nested, 'go'),
        place.on('ours waits, its lease is revoked', revoked_waiter_of_ours),
        place.on('figures: pairs', sessions.figures, 'go',
                 'pair of lock and unlock', sessions.speed),
        place.on('figures: 8 processes', sessions.figures, 'go',
                 '8 processes', sessions.handovers),
    ]


def each_way(title, kind, wanted=None):
    return debian.each_way(title, sessions.killed_holder, kind, theirs='go',
                           more=[wanted] if wanted else ())


CASES = [
    debian.on('a lock that protects nothing is seen', sessions.seen, 'go'),
    *cases_of(debian),
    *each_way('{} is killed while it holds', 'fair'),
    *each_way('{} is killed while it reads', 'read', 'write'),
    *each_way('{} is killed while it writes', 'write', 'read'),
    debian.on('go is killed while it waits', sessions.killed_waiter, 'fair',
              'ours', 'go', 'ours'),
    debian.on('ours is killed while it waits', sessions.killed_waiter, 'fair',
              'go', 'ours', 'go'),
    debian.on('inspection shows its holder', sessions.who, 'go', ''),
    debian.on('our others on its mutex', sessions.refused, 'go', 'fair',
              'write', 'read', 'semaphore'),
    debian.on('our others on its read-write lock', sessions.refused, 'go',
              'read', 'fair', 'semaphore'),
    debian.on('go waits, its lease is revoked', revoked_waiter_of_theirs, 'go',
              'failed'),
    debian.on('etcdctl waits, its lease is revoked', revoked_waiter_of_theirs,
              'etcdctl', 'held'),
    *cases_of(newer),
]


def end():
    debian.end()
    newer.end()
