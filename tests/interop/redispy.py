"""A process that locks with redis-py's Lock.

redispy.py PORT TIMEOUT_MS
"""

import mmap
import os
import struct
import sys
import time

import redis
from redis.lock import Lock

from serve import held_since, serve, us_since


class Region:
    """The region that the lock protects. region.h explains it."""
    OWNER, ENTRIES = 0, 8

    def __init__(self, file, total, stay_us):
        with open(file, 'r+b') as f:
            self.words = mmap.mmap(f.fileno(), 64)
        self.me = os.getpid()
        self.total, self.stay_s = int(total), int(stay_us) / 1e6
        self.entered = self.overlaps = 0

    def get(self, at):
        return struct.unpack_from('=q', self.words, at)[0]

    def set(self, at, value):
        struct.pack_into('=q', self.words, at, value)

    def exclusive(self):
        entries = self.get(self.ENTRIES)
        if entries >= self.total:
            return False
        self.overlaps += self.get(self.OWNER) != 0
        self.set(self.OWNER, self.me)
        end = time.monotonic() + self.stay_s
        while time.monotonic() < end:
            pass
        self.set(self.ENTRIES, entries + 1)
        self.overlaps += self.get(self.OWNER) != self.me
        self.set(self.OWNER, 0)
        self.entered += 1
        return True


class Peer:
    def __init__(self, port, timeout_ms):
        self.client = redis.Redis(port=int(port))
        self.timeout = int(timeout_ms) / 1000
        self.held = None

    # redis-py polls every 100 ms, its default.
    def lock(self, name, timeout, wait_ms=-1):
        return Lock(self.client, name, timeout=timeout,
                    blocking_timeout=wait_ms / 1000 if wait_ms >= 0 else None)

    def contend(self, _kind, name, file, total, stay_us, _limit):
        region = Region(file, total, stay_us)
        lock = self.lock(name, self.timeout)
        longest, more = 0, True
        while more:
            before = time.monotonic()
            assert lock.acquire()
            longest = max(longest, us_since(before))
            more = region.exclusive()
            lock.release()
        return (f'done entered={region.entered} overlaps={region.overlaps} '
                f'stale=0 longest_us={longest}')

    def hold(self, _kind, name, lease_ms, wait_ms, *_limit):
        lock = self.lock(name, int(lease_ms) / 1000 or self.timeout,
                         int(wait_ms))
        before = time.monotonic()
        if not lock.acquire():
            return 'busy'
        self.held = lock
        return held_since(before)

    def drop(self):
        self.held.release()
        return 'dropped'


peer = Peer(sys.argv[1], sys.argv[2])
serve({'contend': peer.contend, 'hold': peer.hold, 'drop': peer.drop})
