#!/usr/bin/env python3
"""The server of src/backends/example, whose head describes the protocol.

example_server.py PORT: serves on loopback until it is killed. A restart loses
all its state. Tests may also send these lines, on a connection without HELLO:

    COUNT          replies COUNT holds places
    BREAK          ends all holds; replies as to COUNT
"""

import asyncio
import sys
import time

OFFER_S = 1.0  # a waiter that misses its turn by this much leaves the queue
LINE_MAX = 4096


class Lock:
    """A lock, held or free. While waiters exist, only the first of them can take
    a free lock. Holder and waiters are identified by (client, hold)."""

    def __init__(self, name):
        self.name = name
        self.holder = None
        self.token = 0
        self.queue = []
        self.timer = None  # of the lease, or of the turn


class Server:
    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.locks = {}  # by name
        self.holds = {}  # (client, hold) -> Lock
        self.places = {}  # of waiters: (client, hold) -> Lock
        self.writers = {}  # client -> its connection
        self.tokens = time.time_ns() // 1000  # higher than before a restart

    def clock(self):
        return int(self.loop.time() * 1000)

    def say(self, key, word):
        writer = self.writers.get(key[0])
        if writer:
            writer.write(b'%s %d\n' % (word, key[1]))

    def set_timer(self, lock, seconds, do):
        if lock.timer:
            lock.timer.cancel()
        lock.timer = self.loop.call_later(seconds, do, lock) if do else None

    def grant(self, lock, key):
        self.tokens += 1
        lock.holder, lock.token = key, self.tokens
        self.holds[key] = lock

    def free(self, lock):
        del self.holds[lock.holder]
        lock.holder = None
        self.turn(lock)

    def turn(self, lock):
        """Called when the lock has become free or its first waiter has changed."""
        if lock.holder:
            return
        self.set_timer(lock, OFFER_S, self.pass_over if lock.queue else None)
        if lock.queue:
            self.say(lock.queue[0], b'TURN')
        else:
            del self.locks[lock.name]

    def pass_over(self, lock):
        self.leave(lock.queue[0])

    def leave(self, key):
        lock = self.places.pop(key, None)
        if not lock:
            return
        was_first = lock.queue[0] == key
        lock.queue.remove(key)
        if was_first:
            self.turn(lock)

    def expire(self, lock):
        key = lock.holder
        self.free(lock)
        self.say(key, b'LOST')

    def take(self, key, lease_ms, may_queue, name):
        lock = self.holds.get(key)
        if not lock:
            lock = self.locks.setdefault(name, Lock(name))
            if not lock.holder and (not lock.queue or lock.queue[0] == key):
                if self.places.pop(key, None):
                    lock.queue.pop(0)
                self.grant(lock, key)
        if lock.holder == key:
            self.set_timer(lock, lease_ms / 1000, self.expire)
            return b'GRANTED %d %d' % (key[1], lock.token)
        if not may_queue:
            self.leave(key)
            return b'BUSY %d' % key[1]
        if key not in self.places:
            self.places[key] = lock
            lock.queue.append(key)
        return b'QUEUED %d' % key[1]

    def drop(self, key):
        lock = self.holds.get(key)
        if lock:
            self.free(lock)
        self.leave(key)
        return b'DROPPED %d %d' % (key[1], lock is not None)

    def keep(self, key, lease_ms, until):
        lock = self.holds.get(key)
        late = until and self.clock() >= until
        if lock and not late:
            self.set_timer(lock, lease_ms / 1000, self.expire)
        return b'KEPT %d %d' % (key[1], 2 if late else lock is not None)

    def hello(self, client, writer):
        former = self.writers.get(client)
        if former:
            former.transport.abort()
            self.forget(client)
        self.writers[client] = writer
        return b'WELCOME %d' % self.clock()

    def forget(self, client):
        """Removes the client, whose connection has closed, and its places in queues."""
        del self.writers[client]
        for key in [key for key in self.places if key[0] == client]:
            self.leave(key)

    def admin(self, word):
        if word == b'BREAK':
            for lock in list(self.holds.values()):
                self.expire(lock)
        elif word != b'COUNT':
            raise ValueError(word)
        return b'COUNT %d %d' % (len(self.holds), len(self.places))

    def answer(self, client, line):
        word, *field = line.split()
        if client is None:
            return self.admin(word)
        key = (client, int(field[0]))
        if word == b'TAKE':
            return self.take(key, int(field[1]), field[2] == b'1', field[3])
        if word == b'DROP':
            return self.drop(key)
        if word == b'KEEP':
            return self.keep(key, int(field[1]), int(field[2]))
        raise ValueError(word)

    async def serve(self, reader, writer):
        client = None
        try:
            while line := await reader.readline():
                if client is not None and self.writers.get(client) != writer:
                    break  # the client has a newer connection
                if line.startswith(b'HELLO '):
                    client = int(line.split()[1])
                    text = self.hello(client, writer)
                else:
                    text = self.answer(client, line)
                writer.write(text + b'\n')
                await writer.drain()
        except (ConnectionError, ValueError, IndexError):
            pass
        if client is not None and self.writers.get(client) == writer:
            self.forget(client)
        writer.close()


async def main(port):
    server = Server()
    listener = await asyncio.start_server(server.serve, '127.0.0.1', port,
                                          limit=LINE_MAX, backlog=1024)
    await listener.serve_forever()


asyncio.run(main(int(sys.argv[1])))
