"""A process that locks with kazoo. It reads one command a line and answers each
with one line; peers.py lists the commands.

kazoopeer.py HOSTS SESSION_MS
"""

import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

client = KazooClient(sys.argv[1], timeout=int(sys.argv[2]) / 1000)
KINDS = {'fair': client.Lock, 'read': client.ReadLock,
         'write': client.WriteLock}
held = []
made = {}


def hold(kind, name, _lease_ms, wait_ms, *_limit):
    """Keeps one object for each lock: kazoo creates its path only once."""
    if (kind, name) not in made:
        made[kind, name] = KINDS[kind](f'/{name}', 'kazoo')
    lock = made[kind, name]
    before = time.monotonic()
    try:
        lock.acquire(timeout=int(wait_ms) / 1000 if int(wait_ms) >= 0 else None)
    except LockTimeout:
        return 'busy'
    held.append(lock)
    return f'held token=0 waited_us={(time.monotonic() - before) * 1e6:.0f}'


def drop():
    held.pop().release()
    return 'dropped'


def obey(verb, *args):
    try:
        return {'hold': hold, 'drop': drop}[verb](*args)
    except Exception as e:
        return f'failed {e!r}'


client.start(timeout=30)
print('ready', flush=True)
for command in sys.stdin:
    print(obey(*command.split()), flush=True)
