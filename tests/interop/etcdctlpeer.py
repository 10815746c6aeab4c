"""A process that locks with `etcdctl lock`.

etcdctlpeer.py HOST:PORT TTL_MS INTEROP_OURS
"""

import os
import signal
import subprocess
import sys
import time

from peers import dies_with_us, numbers
from serve import held_since, serve, us_since

ADDRESS, TTL_MS, OURS = sys.argv[1:]
# A command that prints its pid, and ends when etcdctl ends.
INSIDE = ['setpriv', '--pdeathsig', 'KILL', 'sh', '-c',
          'echo $$; exec sleep infinity']
held = []


def lock(name, *command):
    return subprocess.Popen(
        ['etcdctl', '--endpoints', ADDRESS, 'lock',
         f'--ttl={int(TTL_MS) // 1000}', name, '--', *command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
        preexec_fn=dies_with_us)


def contend(_kind, name, *region):
    """Runs one etcdctl process for each entry."""
    sums = {'entered': 0, 'overlaps': 0, 'longest_us': 0}
    entered = 1
    while entered:
        before = time.monotonic()
        said = lock(name, OURS, 'region', *region).communicate()[0]
        if not said.startswith('done '):
            return f'failed {said!r}'
        entered = numbers(said)['entered']
        sums['entered'] += entered
        sums['overlaps'] += numbers(said)['overlaps']
        sums['longest_us'] = max(sums['longest_us'], us_since(before))
    return 'done stale=0 ' + ' '.join(f'{k}={v}' for k, v in sums.items())


def hold(_kind, name, _lease_ms, _wait_ms, *_limit):
    before = time.monotonic()
    process = lock(name, *INSIDE)
    said = process.stdout.readline().strip()
    if not said.isdigit():
        return f'failed {said!r}'
    held.append((process, int(said)))
    return held_since(before)


def drop():
    process, inside = held.pop()
    os.kill(inside, signal.SIGTERM)
    process.wait()
    return 'dropped'


serve({'contend': contend, 'hold': hold, 'drop': drop})
