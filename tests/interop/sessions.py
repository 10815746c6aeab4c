"""Common parts for servers that release a lock when the holder's session ends
(zookeeper.py, etcd.py): processes of several libraries, and the cases that are
the same for all of them."""

import statistics

import contention
from contention import EACH, FEW, contend
from faults import FOREVER, granted
from peers import Failure, Peer, check, exclude, wait_until

LEASE_MS = 3000
WARM_MS = 500
RUN_MS = 1500
ROUNDS = 3


class World:
    """Like the World of interop.py, on another server. A subclass has
    command(side, session_ms), and late_s: how late a session may end."""

    warm = ()  # sides that need to warm up

    def __init__(self, other, server):
        self.build, self.note = other.peers.build, other.note
        self.server = server
        self.pools, self.all, self.names = {}, [], 0

    def pool(self, side, count, session_ms=30000):
        pool = self.pools.setdefault((side, session_ms), [])
        pool[:] = [peer for peer in pool if peer.process.poll() is None]
        new = [Peer(side, self.command(side, session_ms))
               for _ in range(count - len(pool))]
        self.all += new
        for peer in new:
            peer.expect('ready')
        if side in self.warm:
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

    def end(self):
        self.start_anew()
        self.server.end()


class Place:
    """Creates its world when its first case runs."""

    def __init__(self, begins, make):
        self.begins, self.make, self.world = begins, make, None

    def on(self, title, run, *args, ours='mutex', begins=None):
        def case(other):
            self.world = self.world or self.make(other)
            try:
                run(self.world, *args)
            except BaseException:
                self.world.start_anew()
                raise
        return ours, (begins or self.begins) + title, case

    def each_way(self, title, run, *args, theirs, ours='mutex', more=()):
        return [self.on(title.format(one), run, *args, one, other, *more,
                        ours=ours)
                for one, other in [(theirs, 'ours'), ('ours', theirs)]]

    def contention_of(self, what, kind, **more):
        def case(world):
            together(world, kind, **more)
        return self.on(f'{what} {EACH}+{EACH} processes, {FEW} acquisitions',
                       case)

    def end(self):
        if self.world:
            self.world.end()
        self.world = None


def cast(world, *sides):
    pools = {side: list(world.pool(side, sides.count(side), LEASE_MS))
             for side in set(sides)}
    return [pools[side].pop() for side in sides]


def together(world, kind, other, ours='ours', limit=0):
    sides = {side: world.pool(side, EACH) for side in (other, ours)}
    return contend(world, kind, sides, total=FEW, limit=limit)


def seen(world, other, kind='fair'):
    """A harness that never fails proves nothing."""
    sides = {side: world.pool(side, EACH) for side in (other, 'ours')}
    try:
        contend(world, kind, sides, total=500, stay_us=2000, split=True)
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
    check(took.fair_s < LEASE_MS / 1000 + world.late_s + 1, 'late')


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
    check(seconds < LEASE_MS / 1000 + world.late_s + 1, f'{seconds:.2f} s')


def who(world, theirs, wanted):
    """Inspection shows the other library's holder, and its waiters."""
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
    """The other library uses the name as kind: our requests are refused."""
    other, ours = world.pool(theirs, 1)[0], world.pool('ours', 1)[0]
    name = world.name()
    other.expect('held', 'hold', kind, name, 0, FOREVER, 1)
    for one in wanted:
        ours.expect('failed HF_EMISMATCH', 'hold', one, name, 0, 0, 1)
    other.expect('dropped', 'drop')


def speed(world, side, count=1):
    """Pairs of lock and unlock per second, on one lock."""
    peers, name = world.pool(side, count), world.name()
    for peer in peers:
        peer.tell('race', 'fair', name, 1, RUN_MS)
    seen_ = [peer.expect('done') for peer in peers]
    return sum(one['pairs'] for one in seen_) * 1e6 / \
        max(one['us'] for one in seen_)


def handovers(world, side):
    return speed(world, side, 2 * EACH)


def figures(world, theirs, what, measure):
    rounds = [{side: measure(world, side) for side in (theirs, 'ours')}
              for _ in range(ROUNDS + 1)]
    ours, other = (statistics.median(one[side] for one in rounds[1:])
                   for side in ('ours', theirs))
    world.note(f'{what}: ours {ours:.0f}/s, {theirs} {other:.0f}/s, '
               f'{ours / other:.2f} times')
