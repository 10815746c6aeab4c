"""Ours beside Redisson and redis-py on one server, beside Curator and kazoo on
another: TAP on stdout.

interop.py BUILD_DIRECTORY [PATTERN]
"""

import os
import re
import sys
import time

import contention
import faults
import figures
import kinds
import zookeeper
from peers import Failure, Peers, Server

WARM_MS = 500  # Java is slow until it has seen some of its code run

CASES = [*contention.CASES, *faults.CASES, *kinds.CASES, *figures.CASES,
         *zookeeper.CASES]


def say(text):
    print(text, flush=True)


class World:
    """What a case works with."""

    def __init__(self, build):
        self.server = Server()
        self.peers = Peers(build, self.server)
        self.pools = {}
        self.names = 0

    def pool(self, side, count, lease_ms=30000):
        """Processes that stay, but for those that a case has killed."""
        pool = self.pools.setdefault((side, lease_ms), [])
        pool[:] = [peer for peer in pool if peer.process.poll() is None]
        new = self.peers.start(side, max(0, count - len(pool)), lease_ms)
        if side == 'redisson':
            self.warm(new)
        pool += new
        return pool[:count]

    def warm(self, peers):
        for peer in peers:
            peer.tell('race', 'unfair', self.name(), 1, WARM_MS)
        for peer in peers:
            peer.expect('done')

    def name(self):
        self.names += 1
        return f'interop-{self.names}'

    def note(self, text):
        say(f'# {text}')

    def start_anew(self):
        """Nobody knows what they do after a failure."""
        self.pools = {}
        self.peers.end()

    def end(self):
        self.peers.end()
        self.server.end()


def run(world, number, title, case):
    start = time.monotonic()
    try:
        case(world)
        why = None
    except Failure as e:
        why = str(e)
    except Exception as e:  # a process that has died under its command, say
        why = repr(e)
    if why:
        world.start_anew()
    say(f'{"not ok" if why else "ok"} {number} - {title}')
    say(f'# {time.monotonic() - start:.1f} s')
    if why:
        say(f'# {why}')
    return why is None


def main(build, pattern='.'):
    chosen = [(title, case) for kind, title, case in CASES
              if kinds.OURS[kind] and re.search(pattern, title)]
    world = World(os.path.abspath(build))
    passed = failed = 0
    try:
        for title, case in chosen:
            if run(world, passed + failed + 1, title, case):
                passed += 1
            else:
                failed += 1
    finally:
        zookeeper.end()
        world.end()
    say(f'1..{len(chosen)}')
    if not chosen:
        failed = 1
    say(f'{passed} passed, {failed} failed')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
