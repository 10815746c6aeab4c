"""Tests holdfast (`ours') alongside Redisson and redis-py on one server, Curator and kazoo on
another, Go's packages and etcdctl on others, redsync and node-redlock on five; and compares
its speed with that of Spring Integration and ShedLock on MariaDB. Prints TAP.

interop.py BUILD_DIRECTORY [PATTERN]
"""

import os
import re
import sys
import time

import etcd
import faults
import figures
import kinds
import mysql
import redisson
import redlock
import zookeeper
from peers import JAVA, Failure, Violation
from places import Place

MOST_AGAIN = 3  # more retried cases than this are not chance

CASES = [*redisson.CASES, *faults.CASES, *kinds.CASES, *figures.CASES,
         *zookeeper.CASES, *etcd.CASES, *redlock.CASES, *mysql.CASES]


def say(text):
    print(text, flush=True)


def attempt(build, case):
    """Returns what went wrong, or None."""
    try:
        case(build)
    except Exception as e:  # for example, a process died during a command
        return e
    return None


def run(build, number, title, case):
    """Processes of other libraries sometimes hang, even where none of ours takes part,
    and sometimes a machine stalls. Therefore a case that failed is tried once more
    with new processes, unless two processes were inside at once. Returns whether
    the case passed, and whether it passed at once."""
    start = time.monotonic()
    why = first = attempt(build, case)
    if first and not isinstance(first, Violation):
        say(f'# once more: {first!r}')
        why = attempt(build, case)
    say(f'{"not ok" if why else "ok"} {number} - {title}')
    say(f'# {time.monotonic() - start:.1f} s')
    if why:
        say(f'# {why if isinstance(why, Failure) else repr(why)}')
    return why is None, first is None


def main(build, pattern='.'):
    chosen = [(title, case) for kind, title, case in CASES
              if kinds.OURS[kind] and re.search(pattern, title)]
    if not any('figures: ' in title for title, _ in chosen):
        # Java's second compiler is worth its time only where speed is measured.
        JAVA.append('-XX:TieredStopAtLevel=1')
    passed = failed = again = 0
    try:
        for title, case in chosen:
            good, at_once = run(os.path.abspath(build),
                                passed + failed + 1, title, case)
            passed += good
            failed += not good
            again += good and not at_once
    finally:
        Place.end_all()
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
