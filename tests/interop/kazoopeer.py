"""A process that locks with kazoo.

kazoopeer.py HOSTS SESSION_MS
"""

import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

from serve import held_since, serve

client = KazooClient(sys.argv[1], timeout=int(sys.argv[2]) / 1000)
KINDS = {'fair': client.Lock, 'read': client.ReadLock,
         'write': client.WriteLock}
held = []
made = {}


def hold(kind, name, _lease_ms, wait_ms, *_limit):
    """Keeps one object for each lock, because an object of kazoo creates its path only
    once."""
    if (kind, name) not in made:
        made[kind, name] = KINDS[kind](f'/{name}', 'kazoo')
    lock = made[kind, name]
    before = time.monotonic()
    try:
        lock.acquire(timeout=int(wait_ms) / 1000 if int(wait_ms) >= 0 else None)
    except LockTimeout:
        return 'busy'
    held.append(lock)
    return held_since(before)


def drop():
    held.pop().release()
    return 'dropped'


client.start(timeout=30)
serve({'hold': hold, 'drop': drop})
