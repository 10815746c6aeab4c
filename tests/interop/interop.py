"""Ours beside Redisson and redis-py, on one server: TAP on stdout.

interop.py BUILD_DIRECTORY [PATTERN]
"""

import os
import re
import sys
import time

import contention
import kinds
from peers import Failure, Peers, Server

WARM_MS = 1000  # Java is slow until it has seen some of its code run

CASES = [*contention.CASES, *kinds.CASES]


def say(text):
    print(text, flush=True)


class World:
    """What a case works with."""

    def __init__(self, build):
        self.server = Server()
        self.peers = Peers(build, self.server)
        self.pools = {}
        self.names = 0

    def pool(self, side, count):
        """Processes that stay, for the cases that want many of them warm."""
        have = self.pools.setdefault(side, [])
        new = self.peers.start(side, max(0, count - len(have)))
        if side == 'redisson':
            self.warm(new)
        have += new
        return have[:count]

    def warm(self, peers):
        for peer in peers:
            peer.tell('race', 'unfair', self.name(), 1, WARM_MS)
        for peer in peers:
            peer.expect('done')

    def start(self, side, lease_ms=30000):
        return self.peers.start(side, lease_ms=lease_ms)[0]

    def name(self):
        self.names += 1
        return f'interop-{self.names}'

    def note(self, text):
        say(f'# {text}')

    def end_of_case(self, good):
        kept = [p for pool in self.pools.values() for p in pool] if good else []
        if not good:
            self.pools = {}
        self.peers.end([p for p in self.peers.all if p not in kept])

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
    world.end_of_case(why is None)
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
        world.end()
    say(f'1..{len(chosen)}')
    if not chosen:
        failed = 1
    say(f'{passed} passed, {failed} failed')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
