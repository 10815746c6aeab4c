"""A MariaDB server of our own, on a socket and a port, in a directory of its
own, with the database `locks`."""

import os
import socket
import subprocess
import tempfile
import time

FAST = ['--innodb-log-file-size=8M', '--innodb-buffer-pool-size=16M',
        '--innodb-flush-method=nosync', '--innodb-use-native-aio=0',
        '--skip-name-resolve']


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Failed(Exception):
    pass


class MysqlServer:
    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.dir.name, 'socket')
        self.port = free_port()
        data = '--datadir=' + os.path.join(self.dir.name, 'data')
        user = ['--user=root'] if os.geteuid() == 0 else []
        with open(os.path.join(self.dir.name, 'log'), 'w') as log:
            subprocess.run(
                ['mariadb-install-db', '--no-defaults', '--skip-test-db',
                 '--auth-root-authentication-method=normal', data, *user,
                 *FAST], check=True, stdout=log, stderr=log)
            self.server = subprocess.Popen(
                ['mariadbd', '--no-defaults', data, '--socket=' + self.socket,
                 '--port=%d' % self.port, '--bind-address=127.0.0.1',
                 '--pid-file=' + os.path.join(self.dir.name, 'pid'), *user,
                 *FAST], stdout=log, stderr=log)
        while True:
            assert self.server.poll() is None, 'mariadbd has ended'
            try:
                self.sql('create database locks', database='')
                break
            except Failed:
                time.sleep(0.05)

    def url(self, user):
        return 'mysql://%s@127.0.0.1:%d/locks' % (user, self.port)

    def sql(self, statements, user='root', database='locks'):
        """The rows of the results, as lists of texts."""
        done = subprocess.run(
            ['mariadb', '--no-defaults', '--socket=' + self.socket, '-u', user,
             '-N', '-B', database], input=statements, encoding='utf-8',
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise Failed(done.stderr)
        return [line.split('\t') for line in done.stdout.splitlines()]

    def number(self, statements):
        return int(self.sql(statements)[-1][0])

    def stop(self):
        self.server.terminate()
        self.server.wait()
