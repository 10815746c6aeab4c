"""A Redis server of our own, on a socket in a directory of its own."""

import os
import subprocess
import tempfile


class RedisServer:
    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.dir.name, 'socket')
        self.server = subprocess.Popen(
            ['redis-server', '--port', '0', '--unixsocket', self.socket,
             '--save', '', '--dir', self.dir.name],
            stdout=subprocess.DEVNULL)
        while self.call('PING') != 'PONG':
            assert self.server.poll() is None, 'redis-server has ended'

    def call(self, *args):
        done = subprocess.run(['redis-cli', '-s', self.socket, *args],
                              stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.DEVNULL, encoding='utf-8')
        return done.stdout.strip()

    def stop(self):
        self.server.terminate()
        self.server.wait()
