"""Ours beside Curator and kazoo, on one ZooKeeper server. Beside what peers.py
lists:

  ask - NAME    asks the holder to let go                             asked
  wanted MS     whether the holder has been asked, or is within that time
                                                            wanted, or quiet
  who - NAME    ours: who holds it, how many wait
                                  who holders=N waiters=N host=TEXT owner=TEXT

Kinds: fair, revocable (Curator: a mutex that can be asked for), rwlock, read,
write, semaphore.
"""

import logging
import os
import statistics
import subprocess
import tempfile

import contention
from contention import EACH, FEW, PERMITS, contend
from faults import FOREVER, granted
from peers import (Failure, Peer, check, dies_with_us, exclude, reserve_port,
                   wait_until)

LEASE_MS = 3000
TICK_MS = 100
CLASSPATH = '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar'
JAVA = ['java', '-XX:+UseSerialGC', '-XX:-UsePerfData', '-Xmx256m']
SWEEP_OFTEN = '-Dznode.container.checkIntervalMs=300'
MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
WARM_MS = 500
logging.getLogger('kazoo').setLevel(logging.CRITICAL)
RUN_MS = 1500
ROUNDS = 3


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
        """How many hold or wait; of a semaphore, its leases and who wants
        one."""
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


class World:
    """As that of interop.py, with processes of other libraries."""

    def __init__(self, other):
        self.build, self.note = other.peers.build, other.note
        self.server = Server()
        self.pools, self.all, self.names = {}, [], 0

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

    def pool(self, side, count, session_ms=30000):
        pool = self.pools.setdefault((side, session_ms), [])
        pool[:] = [peer for peer in pool if peer.process.poll() is None]
        new = [Peer(side, self.command(side, session_ms))
               for _ in range(count - len(pool))]
        self.all += new
        for peer in new:
            peer.expect('ready')
        if side == 'curator':
            for peer in new:
                peer.tell('race', 'fair', self.name(), 1, WARM_MS)
            for peer in new:
                peer.expect('done')
        pool += new
        return pool[:count]

    def name(self):
        self.names += 1
        return f'interop-{self.names}'

    def start_anew(self):
        for peer in self.all:
            peer.end()
        self.pools, self.all = {}, []


def cast(world, *sides):
    pools = {side: list(world.pool(side, sides.count(side), LEASE_MS))
             for side in set(sides)}
    return [pools[side].pop() for side in sides]


def together(world, kind, other='curator', ours='ours', limit=0):
    sides = {side: world.pool(side, EACH) for side in (other, ours)}
    contend(world, kind, sides, total=FEW, limit=limit)


def seen(world):
    """A harness that never fails proves nothing."""
    sides = {side: world.pool(side, EACH) for side in ('curator', 'ours')}
    try:
        contend(world, 'fair', sides, total=500, split=True)
    except contention.Violation:
        return
    raise Failure('two locks protect as well as one')


def wait_for(world, peer, kind, name):
    before = world.server.waiting(name)
    peer.tell('hold', kind, name, 0, FOREVER, 1)
    wait_until(f'{peer.side} waits',
               lambda: world.server.waiting(name) > before)


def killed_holder(world, kind, dies, waits, wanted=None):
    holder, waiter = cast(world, dies, waits)
    name = world.name()
    holder.expect('held', 'hold', kind, name, 0, FOREVER, 1)
    wait_for(world, waiter, wanted or kind, name)
    exclude(not waiter.has_answered(), 'two hold it')
    holder.kill()
    took = granted(waiter)
    waiter.expect('dropped', 'drop')
    world.note(f'granted after {took.seconds:.2f} s, of a session of '
               f'{LEASE_MS / 1000:.0f} s')
    check(took.fair_s < (LEASE_MS + TICK_MS) / 1000 + 1, 'late')


def killed_waiter(world, kind, holds, dies, waits):
    holder, waiter, second = cast(world, holds, dies, waits)
    name = world.name()
    holder.expect('held', 'hold', kind, name, 0, FOREVER, 1)
    wait_for(world, waiter, kind, name)
    wait_for(world, second, kind, name)
    waiter.kill()
    holder.expect('dropped', 'drop')
    seconds = granted(second).fair_s
    second.expect('dropped', 'drop')
    check(seconds < (LEASE_MS + TICK_MS) / 1000 + 1, f'{seconds:.2f} s')


def who(world):
    """Inspection shows the other library's holder, and its waiters."""
    [ours] = world.pool('ours', 1)
    first, second = world.pool('curator', 2)
    name = world.name()
    first.expect('held', 'hold', 'fair', name, 0, FOREVER)
    wait_for(world, second, 'fair', name)
    answer = ours.ask('who', '-', name)
    world.note(answer)
    check('holders=1 waiters=1' in answer, answer)
    check('host=127.0.0.1 ' in answer, answer)
    first.expect('dropped', 'drop')
    second.expect('held')
    second.expect('dropped', 'drop')


def revoked(world, holds, asks):
    holder, other = world.pool(holds, 1)[0], world.pool(asks, 1)[0]
    name = world.name()
    kind = 'revocable' if holds == 'curator' else 'fair'
    holder.expect('held', 'hold', kind, name, 0, FOREVER)
    holder.expect('quiet', 'wanted', 200)
    other.expect('asked', 'ask', '-', name)
    holder.expect('wanted', 'wanted', 3000)
    holder.expect('dropped', 'drop')


def refused(world, kind, *wanted):
    """Curator uses the name as kind: what of ours is wanted is refused."""
    curator, ours = world.pool('curator', 1)[0], world.pool('ours', 1)[0]
    name = world.name()
    curator.expect('held', 'hold', kind, name, 0, FOREVER, 1)
    for one in wanted:
        ours.expect('failed HF_EMISMATCH', 'hold', one, name, 0, 0, 1)
    curator.expect('dropped', 'drop')


def kazoo(world, kind, wanted):
    """A few steps, one at a time: each waits for the other."""
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
    """A Lock object of kazoo's does not make its path again: what ours has made
    is not swept."""
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


def speed(world, side, kind='fair'):
    [peer] = world.pool(side, 1)
    seen_ = peer.expect('done', 'race', kind, world.name(), 1, RUN_MS)
    return seen_['pairs'] * 1e6 / seen_['us']


def handovers(world, side):
    total = 1000
    _, seconds = contend(world, 'fair', {side: world.pool(side, 2 * EACH)},
                         total, stay_us=0, quiet=True)
    return total / seconds


def figures(world, what, measure):
    rounds = [{side: measure(world, side) for side in ('curator', 'ours')}
              for _ in range(ROUNDS + 1)]
    ours, curator = (statistics.median(one[side] for one in rounds[1:])
                     for side in ('ours', 'curator'))
    world.note(f'{what}: ours {ours:.0f}/s, curator {curator:.0f}/s, '
               f'{ours / curator:.2f} times')


made = []


def on(title, run, *args, ours='mutex', begins='curator: '):
    """A case on the server of this file, which the first one starts."""
    def case(other):
        if not made:
            made.append(World(other))
        try:
            run(made[0], *args)
        except BaseException:
            made[0].start_anew()
            raise
    return ours, begins + title, case


def end():
    for world in made:
        world.start_anew()
        world.server.end()
    made.clear()


def each_way(title, run, *args, ours='mutex', more=()):
    return [on(title.format(one), run, *args, one, other, *more, ours=ours)
            for one, other in [('curator', 'ours'), ('ours', 'curator')]]


def contention_of(what, kind, **more):
    def case(world):
        together(world, kind, **more)
    return on(f'{what} {EACH}+{EACH} processes, {FEW} acquisitions', case)


CASES = [
    on('a lock that protects nothing is seen', seen),
    contention_of('interprocessmutex', 'fair'),
    contention_of('interprocessreadwritelock', 'rwlock'),
    contention_of('interprocesssemaphorev2', 'semaphore', limit=PERMITS),
    contention_of('interprocesssemaphoremutex', 'semaphore', limit=1,
                  other='curator, mutex'),
    *each_way('{} is killed while it holds', killed_holder, 'fair'),
    *each_way('{} is killed while it reads', killed_holder, 'read',
              more=['write']),
    *each_way('{} is killed while it writes', killed_holder, 'write',
              more=['read']),
    *each_way('{} is killed while it has a permit', killed_holder,
              'semaphore'),
    on('curator is killed while it waits', killed_waiter, 'fair', 'ours',
       'curator', 'ours'),
    on('ours is killed while it waits', killed_waiter, 'fair', 'curator',
       'ours', 'curator'),
    on('inspection shows its holder', who),
    on('it asks ours to let go', revoked, 'ours', 'curator'),
    on('ours asks it to let go', revoked, 'curator', 'ours'),
    on('our others on its mutex', refused, 'fair', 'write', 'read'),
    on('our others on its read-write lock', refused, 'read', 'fair'),
    on('our others on its semaphore', refused, 'semaphore', 'fair', 'write'),
    on('lock', kazoo, 'fair', 'fair', begins='kazoo: '),
    on('a reader, a writer', kazoo, 'read', 'write', begins='kazoo: '),
    on('a writer, a reader', kazoo, 'write', 'read', begins='kazoo: '),
    on('its path stays', path_stays, begins='kazoo: '),
    on('figures: pairs', figures, 'pair of lock and unlock', speed),
    on('figures: 8 processes', figures, '8 processes, fair', handovers),
]
