"""Where cases run: a server, and processes of several libraries. Also the steps that the
cases of several servers have in common.
"""

import os
import sys

import contention
from contention import EACH
from peers import JAVA, Peer, Watch, check, exclude, wait_until

LEASE_MS = 3000
LEASE_S = LEASE_MS / 1000
SLACK_S = 1      # for the server's tick, and as all processes share two cores
FOREVER = -1
WARM_MS = 500    # Java is slow until it has run its code for a while


class World:
    """A subclass has command(side, lease_ms), which returns the command of a process."""

    warm = {}   # the sides that need to warm up, with the kind of their lock
    blind = ()  # sides whose waiters the server does not show
    late_s = 0  # how late the server may end a lease
    least = 0   # the least part of its lease that a killed holder still had

    def __init__(self, build, server):
        self.build, self.server = build, server
        self.out = os.path.join(build, 'interop')
        self.pools, self.all, self.names = {}, [], 0

    def ours(self, url, lease_ms):
        return [os.path.join(self.build, 'tests/interop/interop-ours'), url,
                str(lease_ms)]

    def java(self, folder, main, *args):
        return [*JAVA, '-cp',
                f'{self.out}/{folder}classes:{self.out}/{folder}lib/*', main,
                *map(str, args)]

    def python(self, file, *args):
        here = os.path.dirname(__file__)
        return [sys.executable, '-B', os.path.join(here, file),
                *map(str, args)]

    def pool(self, side, count, lease_ms=30000):
        """Returns count running processes; replaces those that a case has killed."""
        pool = self.pools.setdefault((side, lease_ms), [])
        pool[:] = [peer for peer in pool if peer.process.poll() is None]
        new = [Peer(side, self.command(side, lease_ms))
               for _ in range(count - len(pool))]
        self.all += new
        for peer in new:
            peer.expect('ready')
        if side in self.warm:
            for peer in new:
                peer.tell('race', self.warm[side], self.name(), 1, WARM_MS)
            for peer in new:
                peer.expect('done')
        pool += new
        return pool[:count]

    def name(self):
        self.names += 1
        return f'interop-{self.names}'

    @staticmethod
    def note(text):
        print(f'# {text}', flush=True)

    def start_anew(self):
        """Ends all processes. After a failure, their state is unknown."""
        for peer in self.all:
            peer.end()
        self.pools, self.all = {}, []

    def end(self):
        self.start_anew()
        self.server.end()


class Place:
    """Creates its world when its first case runs. The titles of its cases begin with
    `begins'."""

    all = []

    def __init__(self, begins, make):
        self.begins, self.make, self.world = begins, make, None
        self.all.append(self)

    def on(self, title, run, *args, needs='mutex', begins=None, **more):
        """Returns a case, a tuple: the kind that ours must support, the title, and a function of
        the build directory that calls run(world, *args, **more)."""
        def case(build):
            self.world = self.world or self.make(build)
            try:
                run(self.world, *args, **more)
            except BaseException:
                self.world.start_anew()
                raise
        return needs, (self.begins if begins is None else begins) + title, case

    def each_way(self, title, run, *args, theirs, **more):
        """Returns two cases: in one the fault happens to `theirs', in the other to ours."""
        return [self.on(title.format(one), run, *args, one, other, **more)
                for one, other in [(theirs, 'ours'), ('ours', theirs)]]

    def contention_of(self, what, kind, other, total=contention.FEW,
                      run=contention.together, **more):
        return self.on(f'{what} {EACH}+{EACH} processes, {total} acquisitions',
                       run, kind, other, total=total, **more)

    @classmethod
    def end_all(cls):
        for place in cls.all:
            if place.world:
                place.world.end()


def cast(world, *sides):
    """Returns one process for each given side, with a short lease."""
    pools = {side: list(world.pool(side, sides.count(side), LEASE_MS))
             for side in set(sides)}
    return [pools[side].pop() for side in sides]


def wait_for(world, peer, kind, name, wait_ms=FOREVER):
    """Makes a peer wait; returns once the server knows the waiter."""
    can_see = peer.side not in world.blind
    before = can_see and world.server.waiting(kind, name)
    peer.tell('hold', kind, name, 0, wait_ms, 1)
    if can_see:
        wait_until(f'{peer.side} waits',
                   lambda: world.server.waiting(kind, name) > before)


def granted(peer):
    watch = Watch()
    peer.expect('held')
    return watch.stop()


def lease_ended(world, took, lease_s=LEASE_S):
    """Checks the time at which a waiter was granted a lock that its holder did not release: not
    before the lease could end, and soon after it."""
    world.note(f'granted after {took.seconds:.2f} s, of a lease of '
               f'{lease_s:.0f} s')
    exclude(took.seconds > lease_s * world.least, 'before the lease was over')
    check(took.fair_s < lease_s + world.late_s + SLACK_S, 'late')


def killed_holder(world, kind, dies, waits, wanted=None, name=None,
                  lease_ms=0):
    """Kills the holder of a lock of this kind. The waiter requests `wanted', or the same kind
    if that is None."""
    holder, waiter = cast(world, dies, waits)
    name = name or world.name()
    holder.expect('held', 'hold', kind, name, lease_ms, FOREVER, 1)
    wait_for(world, waiter, wanted or kind, name)
    exclude(not waiter.has_answered(), 'two hold it')
    holder.kill()
    took = granted(waiter)
    waiter.expect('dropped', 'drop')
    lease_ended(world, took)


def killed_waiter(world, kind, holds, dies, *behind, wait_ms=FOREVER,
                  look=lambda name: None):
    """Kills the first waiter. Returns the seconds from the release until the next
    waiter holds the lock, and what look(name) returned just before the release."""
    holder, waiter, second, *others = cast(world, holds, dies, *behind)
    name = world.name()
    holder.expect('held', 'hold', kind, name, 0, FOREVER, 1)
    wait_for(world, waiter, kind, name, wait_ms)
    for peer in second, *others:
        wait_for(world, peer, kind, name)
    waiter.kill()
    seen = look(name)
    holder.expect('dropped', 'drop')
    seconds = granted(second).fair_s
    world.note(f'{holds} lets go, a waiter of {dies} is dead, {behind[0]} has '
               f'it after {seconds:.2f} s')
    for peer in others:
        second.expect('dropped', 'drop')
        peer.expect('held')
        second = peer
    second.expect('dropped', 'drop')
    return seconds, seen
