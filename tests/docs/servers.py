"""Servers that the tests start, each in its own directory. They are stopped when the
program ends.
"""

import atexit
import os
import socket
import subprocess
import tempfile

import cases


class Server:
    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.socket = self.path('socket')

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def start(self, command, answers, **output):
        """Starts the server; returns once the server answers."""
        process = subprocess.Popen(command, **output)
        atexit.register(self.stop, process)

        def has_answer():
            assert process.poll() is None, command[0] + ' has ended'
            return answers()
        cases.until(has_answer)

    @staticmethod
    def stop(process):
        process.terminate()
        process.wait()


class Redis(Server):
    """A Redis server that listens only on a socket."""

    def __init__(self):
        super().__init__()
        self.start(['redis-server', '--port', '0', '--unixsocket', self.socket,
                    '--save', '', '--dir', self.dir.name],
                   lambda: self.call('PING') == 'PONG',
                   stdout=subprocess.DEVNULL)

    def call(self, *args):
        done = subprocess.run(['redis-cli', '-s', self.socket, *args],
                              capture_output=True, check=False,
                              encoding='utf-8')
        return done.stdout.strip()


class Failed(Exception):
    pass


class Mysql(Server):
    """A MariaDB server with the database `locks`, on a socket and a port."""

    def __init__(self):
        super().__init__()
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        options = ['--datadir=' + self.path('data'),
                   *(['--user=root'] if os.geteuid() == 0 else []),
                   '--innodb-log-file-size=8M', '--innodb-buffer-pool-size=16M',
                   '--innodb-flush-method=nosync', '--innodb-use-native-aio=0',
                   '--skip-name-resolve']
        with open(self.path('log'), 'w') as log:
            subprocess.run(
                ['mariadb-install-db', '--no-defaults', '--skip-test-db',
                 '--auth-root-authentication-method=normal', *options],
                check=True, stdout=log, stderr=log)
            self.start(
                ['mariadbd', '--no-defaults', '--socket=' + self.socket,
                 '--port=%d' % self.port, '--bind-address=127.0.0.1',
                 '--pid-file=' + self.path('pid'), *options],
                self.has_database, stdout=log, stderr=log)

    def has_database(self):
        try:
            self.sql('create database locks', database='')
            return True
        except Failed:
            return False

    def url(self, user, database='locks'):
        return 'mysql://%s@127.0.0.1:%d/%s' % (user, self.port, database)

    def client(self, statements, *options, user='root', database='locks'):
        """Returns what the command-line client prints."""
        done = subprocess.run(
            ['mariadb', '--no-defaults', '--socket=' + self.socket, '-u', user,
             *options, database], input=statements, encoding='utf-8',
            capture_output=True, check=False)
        if done.returncode:
            raise Failed(done.stderr)
        return done.stdout

    def sql(self, statements, **how):
        """Returns the rows of the results, as lists of strings."""
        said = self.client(statements, '-N', '-B', **how)
        return [line.split('\t') for line in said.splitlines()]

    def number(self, statements):
        return int(self.sql(statements)[-1][0])
