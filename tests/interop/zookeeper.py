"""Tests holdfast (`ours') alongside Curator and kazoo, on one ZooKeeper server. Commands in
addition to those of peers.py:

  ask - NAME    asks the holder to release the lock                   asked
  wanted MS     whether another client has asked for it, or asks within MS
                                                            wanted, or quiet
  who - NAME    ours: the holder, and how many wait
                                  who holders=N waiters=N host=TEXT owner=TEXT

Kinds: fair, revocable (Curator: a mutex that supports ask), rwlock, read,
write, semaphore.
"""

import logging
import os

import sessions
from contention import PERMITS
from peers import JAVA, Server, check, exclude, wait_until
from places import FOREVER, Place, World, granted, killed_holder

TICK_MS = 100
CLASSPATH = '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar'
SWEEP_OFTEN = '-Dznode.container.checkIntervalMs=300'
MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
logging.getLogger('kazoo').setLevel(logging.CRITICAL)


class ZooKeeperServer(Server):
    def __init__(self):
        from kazoo.client import KazooClient
        super().__init__()
        self.hosts = f'127.0.0.1:{self.port}'
        self.client = KazooClient(self.hosts)
        config = os.path.join(self.dir.name, 'config')
        with open(config, 'w', encoding='utf-8') as f:
            f.write(f'tickTime={TICK_MS}\ndataDir={self.dir.name}\n'
                    f'clientPort={self.port}\nmaxClientCnxns=0\n'
                    f'clientPortAddress=127.0.0.1\n'
                    f'maxSessionTimeout=60000\nadmin.enableServer=false\n')
        self.start([*JAVA, SWEEP_OFTEN, '-cp', CLASSPATH, MAIN, config])

    def answers(self):
        self.client.start(timeout=30)
        return True

    def waiting(self, _kind, name):
        """Returns how many clients hold or wait; for a semaphore, its leases and waiters."""
        from kazoo.exceptions import NoNodeError
        count = 0
        for below in f'/{name}', f'/{name}/locks', f'/{name}/leases':
            try:
                count += sum(child not in ('locks', 'leases')
                             for child in self.client.get_children(below))
            except NoNodeError:
                pass
        return count

    def end(self):
        self.client.stop()
        super().end()


class ZooKeeperWorld(World):
    warm = {'curator': 'fair'}
    late_s = TICK_MS / 1000

    def command(self, side, session_ms):
        hosts = self.server.hosts
        if side.startswith('curator'):
            return self.java('curator-', 'CuratorPeer', hosts, session_ms,
                             *(['mutex'] if 'mutex' in side else []))
        if side == 'kazoo':
            return self.python('kazoopeer.py', hosts, session_ms)
        return self.ours(f'zk://{hosts}' + '?dialect=kazoo' * ('kazoo' in side),
                         session_ms)


def revoked(world, holds, asks):
    holder, other = world.pool(holds, 1)[0], world.pool(asks, 1)[0]
    name = world.name()
    kind = 'revocable' if holds == 'curator' else 'fair'
    holder.expect('held', 'hold', kind, name, 0, FOREVER)
    holder.expect('quiet', 'wanted', 200)
    other.expect('asked', 'ask', '-', name)
    holder.expect('wanted', 'wanted', 3000)
    holder.expect('dropped', 'drop')


def kazoo(world, kind, wanted):
    """Each library waits for the other, step by step."""
    theirs, ours = world.pool('kazoo', 1)[0], world.pool('ours, kazoo', 1)[0]
    for one, other in (theirs, ours), (ours, theirs):
        name = world.name()
        one.expect('held', 'hold', kind, name, 0, FOREVER)
        other.expect('busy', 'hold', wanted, name, 0, 300)
        other.tell('hold', wanted, name, 0, FOREVER)
        wait_until('it waits', lambda: world.server.waiting(kind, name) == 2)
        exclude(not other.has_answered(), 'two hold it')
        one.expect('dropped', 'drop')
        check(granted(other).fair_s < 1, 'late')
        other.expect('dropped', 'drop')


def path_stays(world):
    """A Lock object of kazoo creates its path only once. The server must therefore not
    sweep a path that ours created, even while it is empty."""
    theirs, ours = world.pool('kazoo', 1)[0], world.pool('ours, kazoo', 1)[0]
    [other], name = world.pool('ours', 1), world.name()
    for peer in ours, theirs, ours:
        peer.expect('held', 'hold', 'fair', name, 0, FOREVER)
        peer.expect('dropped', 'drop')
    for _ in range(2):
        swept = world.name()
        other.expect('held', 'hold', 'fair', swept, 0, FOREVER)
        other.expect('dropped', 'drop')
        wait_until('a container is swept',
                   lambda path=f'/{swept}': not world.server.client.exists(path))
    theirs.expect('held', 'hold', 'fair', name, 0, FOREVER)
    theirs.expect('dropped', 'drop')


place = Place('curator: ',
              lambda build: ZooKeeperWorld(build, ZooKeeperServer()))


def kazoos(title, run, *args):
    return place.on(title, run, *args, begins='kazoo: ')


CASES = [
    *sessions.cases(place, 'curator', mutex=['write', 'read'],
                    rwlock=['fair']),
    place.contention_of('interprocessmutex', 'fair', 'curator'),
    place.contention_of('interprocessreadwritelock', 'rwlock', 'curator'),
    place.contention_of('interprocesssemaphorev2', 'semaphore', 'curator',
                        limit=PERMITS),
    place.contention_of('interprocesssemaphoremutex', 'semaphore',
                        'curator, mutex', limit=1),
    *place.each_way('{} is killed while it has a permit', killed_holder,
                    'semaphore', theirs='curator'),
    place.on('inspection shows its holder', sessions.who, 'curator',
             'host=127.0.0.1 '),
    place.on('it asks ours to let go', revoked, 'ours', 'curator'),
    place.on('ours asks it to let go', revoked, 'curator', 'ours'),
    place.on('our others on its semaphore', sessions.refused, 'curator',
             'semaphore', 'fair', 'write'),
    kazoos('lock', kazoo, 'fair', 'fair'),
    kazoos('a reader, a writer', kazoo, 'read', 'write'),
    kazoos('a writer, a reader', kazoo, 'write', 'read'),
    kazoos('its path stays', path_stays),
    *sessions.speeds(place, 'curator', '8 processes, fair'),
]
