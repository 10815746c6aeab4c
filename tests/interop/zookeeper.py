"""Ours beside Curator and kazoo, on one ZooKeeper server. Commands beside those
of peers.py:

  ask - NAME    asks the holder to release the lock                   asked
  wanted MS     whether another client has asked for it, or does within MS
                                                            wanted, or quiet
  who - NAME    ours: the holder, and how many wait
                                  who holders=N waiters=N host=TEXT owner=TEXT

Kinds: fair, revocable (Curator: a mutex that supports ask), rwlock, read,
write, semaphore.
"""

import logging
import os
import subprocess
import tempfile

import sessions
from contention import PERMITS
from faults import FOREVER, granted
from peers import JAVA, check, dies_with_us, exclude, reserve_port, wait_until

TICK_MS = 100
CLASSPATH = '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar'
SWEEP_OFTEN = '-Dznode.container.checkIntervalMs=300'
MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
logging.getLogger('kazoo').setLevel(logging.CRITICAL)


class Server:
    def __init__(self):
        from kazoo.client import KazooClient
        self.dir = tempfile.TemporaryDirectory(prefix='holdfast-interop.')
        self.reserved, self.port = reserve_port()
        self.hosts = f'127.0.0.1:{self.port}'
        config = os.path.join(self.dir.name, 'config')
        with open(config, 'w', encoding='utf-8') as f:
            f.write(f'tickTime={TICK_MS}\ndataDir={self.dir.name}\n'
                    f'clientPort={self.port}\nmaxClientCnxns=0\n'
                    f'clientPortAddress=127.0.0.1\n'
                    f'maxSessionTimeout=60000\nadmin.enableServer=false\n')
        self.process = subprocess.Popen([*JAVA, SWEEP_OFTEN, '-cp', CLASSPATH,
                                         MAIN, config],
                                        stderr=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL,
                                        preexec_fn=dies_with_us)
        self.client = KazooClient(self.hosts)
        self.client.start(timeout=30)

    def waiting(self, name):
        """How many hold or wait; for a semaphore, its leases and waiters."""
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
        self.process.kill()
        self.process.wait()
        self.reserved.close()
        self.dir.cleanup()


class World(sessions.World):
    warm = ('curator',)
    late_s = TICK_MS / 1000

    def __init__(self, other):
        super().__init__(other, Server())

    def command(self, side, session_ms):
        out = os.path.join(self.build, 'interop')
        here = os.path.dirname(__file__)
        hosts = self.server.hosts
        if side.startswith('curator'):
            return [*JAVA, '-cp',
                    f'{out}/curator-classes:{out}/curator-lib/*',
                    'CuratorPeer', hosts, str(session_ms),
                    *(['mutex'] if 'mutex' in side else [])]
        if side == 'kazoo':
            return [f'{out}/venv/bin/python',
                    os.path.join(here, 'kazoopeer.py'), hosts, str(session_ms)]
        url = f'zk://{hosts}' + ('?dialect=kazoo' if 'kazoo' in side else '')
        return [os.path.join(self.build, 'tests/interop/interop-ours'), url,
                str(session_ms)]


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
    """Step by step, each library waits for the other."""
    theirs, ours = world.pool('kazoo', 1)[0], world.pool('ours, kazoo', 1)[0]
    for one, other in (theirs, ours), (ours, theirs):
        name = world.name()
        one.expect('held', 'hold', kind, name, 0, FOREVER)
        other.expect('busy', 'hold', wanted, name, 0, 300)
        other.tell('hold', wanted, name, 0, FOREVER)
        wait_until('it waits', lambda: world.server.waiting(name) == 2)
        exclude(not other.has_answered(), 'two hold it')
        one.expect('dropped', 'drop')
        check(granted(other).fair_s < 1, 'late')
        other.expect('dropped', 'drop')


def path_stays(world):
    """A Lock object of kazoo's does not create its path again, so a path that
    ours created must not be swept."""
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


place = sessions.Place('curator: ', World)
on, contention_of, end = place.on, place.contention_of, place.end


def each_way(title, run, kind, wanted=None):
    return place.each_way(title, run, kind, theirs='curator',
                          more=[wanted] if wanted else ())


CASES = [
    on('a lock that protects nothing is seen', sessions.seen, 'curator'),
    contention_of('interprocessmutex', 'fair', other='curator'),
    contention_of('interprocessreadwritelock', 'rwlock', other='curator'),
    contention_of('interprocesssemaphorev2', 'semaphore', limit=PERMITS,
                  other='curator'),
    contention_of('interprocesssemaphoremutex', 'semaphore', limit=1,
                  other='curator, mutex'),
    *each_way('{} is killed while it holds', sessions.killed_holder, 'fair'),
    *each_way('{} is killed while it reads', sessions.killed_holder, 'read',
              'write'),
    *each_way('{} is killed while it writes', sessions.killed_holder, 'write',
              'read'),
    *each_way('{} is killed while it has a permit', sessions.killed_holder,
              'semaphore'),
    on('curator is killed while it waits', sessions.killed_waiter, 'fair',
       'ours', 'curator', 'ours'),
    on('ours is killed while it waits', sessions.killed_waiter, 'fair',
       'curator', 'ours', 'curator'),
    on('inspection shows its holder', sessions.who, 'curator',
       'host=127.0.0.1 '),
    on('it asks ours to let go', revoked, 'ours', 'curator'),
    on('ours asks it to let go', revoked, 'curator', 'ours'),
    on('our others on its mutex', sessions.refused, 'curator', 'fair', 'write',
       'read'),
    on('our others on its read-write lock', sessions.refused, 'curator',
       'read', 'fair'),
    on('our others on its semaphore', sessions.refused, 'curator', 'semaphore',
       'fair', 'write'),
    on('lock', kazoo, 'fair', 'fair', begins='kazoo: '),
    on('a reader, a writer', kazoo, 'read', 'write', begins='kazoo: '),
    on('a writer, a reader', kazoo, 'write', 'read', begins='kazoo: '),
    on('its path stays', path_stays, begins='kazoo: '),
    on('figures: pairs', sessions.figures, 'curator',
       'pair of lock and unlock', sessions.speed),
    on('figures: 8 processes', sessions.figures, 'curator',
       '8 processes, fair', sessions.handovers),
]
