"""Tests holdfast (`ours') alongside etcd's own Go packages and etcdctl, on Debian's server and
on a current one. In addition to the commands of peers.py there is `who', as in zookeeper.py.
Kinds: fair, rwlock, read, write.
"""

import os
import subprocess

import sessions
from peers import Failure, Server, check, exclude, wait_until
from places import FOREVER, Place, World, granted, wait_for

LONG_MS = 60000  # the TTL of a session that sends no keepalive during a case


class EtcdServer(Server):
    def __init__(self, program):
        super().__init__(ports=2, folder='/dev/shm')
        self.address, other = (f'127.0.0.1:{port}' for port in self.ports)
        client, peer = f'http://{self.address}', f'http://{other}'
        self.start(
            [program, '--name=e', '--data-dir', f'{self.dir.name}/data',
             '--listen-client-urls', client, '--advertise-client-urls', client,
             '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
             '--initial-cluster', f'e={peer}', '--heartbeat-interval=10',
             '--election-timeout=100', '--logger=zap', '--log-level=error'],
            seconds=30)

    def ctl(self, *args):
        return subprocess.run(['etcdctl', '--endpoints', self.address, *args],
                              stdout=subprocess.PIPE, encoding='utf-8',
                              stderr=subprocess.DEVNULL, check=True).stdout

    def answers(self):
        try:
            self.ctl('get', 'x')
        except subprocess.CalledProcessError:
            return False
        return True

    def keys(self, name):
        """Returns the keys of holders and waiters, the oldest first."""
        return self.ctl('get', f'{name}/', '--prefix', '--keys-only',
                        '--sort-by=CREATE', '--order=ASCEND').split()

    def waiting(self, _kind, name):
        return len(self.keys(name))


class EtcdWorld(World):
    late_s = 1.5  # leases have whole seconds and are checked twice a second

    def command(self, side, session_ms):
        address = self.server.address
        ours = self.ours(f'etcd://{address}', session_ms)
        if side == 'go':
            return [f'{self.out}/etcd/go-peer', address, str(session_ms)]
        if side == 'etcdctl':
            return self.python('etcdctlpeer.py', address, session_ms, ours[0])
        return ours


def nested(world, side):
    """Go's mutex waits for every key below its name, ours only for its own keys."""
    [below] = world.pool(side, 1)
    [go], [ours] = world.pool('go', 1, LONG_MS), world.pool('ours', 1, LONG_MS)
    name = world.name()
    below.expect('held', 'hold', 'fair', f'{name}/1001', 0, FOREVER)
    go.expect('busy', 'hold', 'fair', name, 0, 500)
    ours.expect('held', 'hold', 'fair', name, 0, 0)
    go.tell('hold', 'fair', name, 0, FOREVER)
    wait_until('Go waits', lambda: world.server.waiting('fair', name) == 3)
    ours.expect('dropped', 'drop')
    check(not go.has_answered(), 'Go does not wait for what is below its name')
    below.expect('dropped', 'drop')
    check(granted(go).fair_s < 1, 'late')
    # Ours can have a lock below the name that Go holds.
    ours.expect('held', 'hold', 'fair', f'{name}/1001', 0, 0)
    ours.expect('dropped', 'drop')
    go.expect('dropped', 'drop')


def revoked_waiter(world, side):
    """An administrator revokes the lease of the first of two waiters. Returns both
    waiters once the second one holds the lock."""
    [holder], [next_] = world.pool('go', 1), world.pool('go', 1, LONG_MS)
    [waiter], name = world.pool(side, 1, 2 * LONG_MS), world.name()
    holder.expect('held', 'hold', 'fair', name, 0, FOREVER)
    wait_for(world, waiter, 'fair', name)
    wait_for(world, next_, 'fair', name)
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
        answer = 'nothing'  # it waits after the other waiter
    exclude(not answer.startswith('held'), 'two hold it')
    world.note(f'ours has answered: {answer}')
    next_.expect('dropped', 'drop')
    if answer == 'nothing':
        waiter.expect('held')
        waiter.expect('dropped', 'drop')


def revoked_waiter_of_theirs(world, side, expected):
    """Checks that the other library behaves as our documents say."""
    waiter, next_ = revoked_waiter(world, side)
    answer = waiter.answer()
    world.note(f'{side} has answered: {answer}')
    check(answer.startswith(expected), answer)
    next_.expect('dropped', 'drop')
    waiter.kill()


debian = Place('etcd: ', lambda build: EtcdWorld(build, EtcdServer('etcd')))
newer = Place('current etcd: ', lambda build: EtcdWorld(
    build, EtcdServer(os.path.join(build, 'interop/etcd/etcd'))))


def cases_of(place):
    return [
        place.contention_of('concurrency.mutex', 'fair', 'go'),
        place.contention_of('rwmutex', 'rwlock', 'go'),
        place.contention_of('etcdctl lock', 'fair', 'etcdctl'),
        place.on('names below a name of ours', nested, 'ours'),
        place.on('names below a name of go', nested, 'go'),
        place.on('ours waits, its lease is revoked', revoked_waiter_of_ours),
        *sessions.speeds(place, 'go'),
    ]


CASES = [
    *sessions.cases(debian, 'go', mutex=['write', 'read', 'semaphore'],
                    rwlock=['fair', 'semaphore']),
    *cases_of(debian),
    debian.on('inspection shows its holder', sessions.who, 'go', ''),
    debian.on('go waits, its lease is revoked', revoked_waiter_of_theirs, 'go',
              'failed'),
    debian.on('etcdctl waits, its lease is revoked', revoked_waiter_of_theirs,
              'etcdctl', 'held'),
    *cases_of(newer),
]
