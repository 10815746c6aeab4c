"""Ours beside Redisson and redis-py on one server, beside Curator and kazoo on
another, beside Go's packages and etcdctl on others, beside redsync and
node-redlock on five; speed beside Spring Integration and ShedLock on MariaDB.
Prints TAP.

interop.py BUILD_DIRECTORY [PATTERN]
"""

import os
import re
import sys
import time

import contention
import etcd
import faults
import figures
import kinds
import mysql
import redlock
import zookeeper
from peers import JAVA, Failure, Peers, Server, Violation

MOST_AGAIN = 3  # more retried cases than that are not chance
WARM_MS = 500  # Java is slow until it has run its code for a while

CASES = [*contention.CASES, *faults.CASES, *kinds.CASES, *figures.CASES,
         *zookeeper.CASES, *etcd.CASES, *redlock.CASES, *mysql.CASES]


def say(text):
    print(text, flush=True)


class World:
    """The server and the processes that a case uses."""

    def __init__(self, build):
        self.server = Server()
        self.peers = Peers(build, self.server)
        self.pools = {}
        self.names = 0

    def pool(self, side, count, lease_ms=30000):
        """Returns running processes, and replaces those that a case killed."""
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
        """After a failure the state of the processes is unknown."""
        self.pools = {}
        self.peers.end()

    def end(self):
        self.peers.end()
        self.server.end()


def attempt(world, case):
    """Returns what went wrong, or None."""
    try:
        case(world)
    except Exception as e:  # for example, a process died during a command
        world.start_anew()
        return e
    return None


def run(world, number, title, case):
    """Processes of other libraries sometimes hang, even where none of ours
    takes part, and a machine stalls. So a case that failed is tried once more
    with new processes, unless two were inside at once. Returns whether it
    passed, and whether it passed at once."""
    start = time.monotonic()
    why = first = attempt(world, case)
    if first and not isinstance(first, Violation):
        world.note(f'once more: {first!r}')
        why = attempt(world, case)
    say(f'{"not ok" if why else "ok"} {number} - {title}')
    say(f'# {time.monotonic() - start:.1f} s')
    if why:
        say(f'# {why if isinstance(why, Failure) else repr(why)}')
    return why is None, first is None


def main(build, pattern='.'):
    chosen = [(title, case) for kind, title, case in CASES
              if kinds.OURS[kind] and re.search(pattern, title)]
    if not any('figures: ' in title for title, _ in chosen):
        # The second compiler pays off only where speed is measured.
        JAVA.append('-XX:TieredStopAtLevel=1')
    world = World(os.path.abspath(build))
    passed = failed = again = 0
    try:
        for title, case in chosen:
            good, at_once = run(world, passed + failed + 1, title, case)
            passed += good
            failed += not good
            again += good and not at_once
    finally:
        zookeeper.end()
        etcd.end()
        redlock.end()
        mysql.end()
        world.end()
    say(f'1..{len(chosen)}')
    if not chosen:
        failed = 1
    if again:
        say(f'# {again} passed when tried once more')
    if again > MOST_AGAIN:
        passed, failed = passed - again, failed + again
    say(f'{passed} passed, {failed} failed')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
