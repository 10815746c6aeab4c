"""Compares the speed with Spring Integration's JdbcLockRegistry and ShedLock, on one
MariaDB server with its default durability. Each library has its own tables, so they do
not exclude each other.
"""

import os
import secrets
import statistics
import subprocess

from peers import Server
from places import Place, World
from sessions import Speed

CONTENDERS = 8
ROUNDS = 3
ASKED = 3           # the wanted ratio to each other library; only reported
WARM_MS = 4000      # Java gets faster for a while: warm up until it does not
WARM_RUNS = 12
ALONE_MS, TOGETHER_MS = 1500, 3000
THEIRS = {'spring': 'Spring Integration', 'shedlock': 'ShedLock'}
# The other libraries are unfair: a process may acquire again before all others.
OURS = {'ours': 'unfair', 'ours, fair': 'fair'}

# The tables of the other libraries are those of their documentation; our library creates its own.
SETUP = [
    'CREATE DATABASE holdfast',
    "CREATE USER holdfast@'127.0.0.1' IDENTIFIED BY '{password}'",
    "GRANT ALL ON holdfast.* TO holdfast@'127.0.0.1'",
    'CREATE TABLE holdfast.INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, '
    'REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), '
    'CREATED_DATE DATETIME(6) NOT NULL, '
    'CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)) ENGINE=InnoDB',
    'CREATE TABLE holdfast.shedlock (name VARCHAR(64) NOT NULL, '
    'lock_until TIMESTAMP(3) NOT NULL, '
    'locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), '
    'locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))',
]


class MariaDbServer(Server):
    def __init__(self):
        super().__init__()
        self.password = secrets.token_hex(16)
        where = [f'--datadir={self.dir.name}/data',
                 *(['--user=root'] if os.geteuid() == 0 else [])]
        subprocess.run(['mariadb-install-db', '--no-defaults',
                        '--auth-root-authentication-method=normal',
                        '--skip-test-db', *where],
                       stdout=subprocess.DEVNULL, check=True)
        init = os.path.join(self.dir.name, 'init.sql')
        with open(init, 'w', encoding='ascii') as f:
            for statement in SETUP:
                f.write(statement.format(password=self.password) + ';\n')
        self.start(
            ['mariadbd', '--no-defaults', *where, '--socket=socket',
             '--bind-address=127.0.0.1', f'--port={self.port}',
             '--skip-name-resolve', f'--init-file={init}'], seconds=60)

    def answers(self):
        return subprocess.run(
            ['mariadb', '--no-defaults', '--host=127.0.0.1',
             f'--port={self.port}', '--user=holdfast', '--execute=DO 1',
             'holdfast'], env={**os.environ, 'MYSQL_PWD': self.password},
            stderr=subprocess.DEVNULL, check=False).returncode == 0


class MariaDbWorld(World):
    def command(self, side, lease_ms):
        password, at = self.server.password, f'127.0.0.1:{self.server.port}'
        if side in THEIRS:
            return self.java('jdbc-', 'JdbcPeer', side,
                             f'jdbc:mariadb://{at}/holdfast?user=holdfast'
                             f'&password={password}', lease_ms)
        return self.ours(f'mysql://holdfast:{password}@{at}/holdfast', lease_ms)


def speed(world, side, count, run_ms):
    return Speed(world, side, OURS.get(side, 'unfair'), count, run_ms)


def warm(world, side, count):
    best, in_vain = 0, 0
    for _ in range(WARM_RUNS):
        rate = speed(world, side, count, WARM_MS).rate
        in_vain = in_vain + 1 if rate < 1.1 * best else 0
        best = max(best, rate)
        if in_vain == 2:
            return


def tell(world, what, side, rounds):
    middle = sorted((one[side] for one in rounds),
                    key=lambda speed: speed.rate)[ROUNDS // 2]
    each = f', each process {middle.least} to {middle.most} times' \
        if middle.least < middle.most else ''
    world.note(f'{what}: {THEIRS.get(side, side)} {middle.rate:.0f}/s, '
               f'{1e6 / middle.rate:.0f} us{each}')


def compare_warm(world, what, count, run_ms):
    """Reports the ratios of ours to theirs. The sides take turns, so that other load on
    the machine affects all of them."""
    sides = [*THEIRS, *OURS]
    rounds = [{side: speed(world, side, count, run_ms) for side in sides}
              for _ in range(ROUNDS)]
    for side in sides:
        tell(world, what, side, rounds)
    ratios = {(ours, other): statistics.median(
        one[ours].rate / one[other].rate for one in rounds)
        for ours in OURS for other in THEIRS}
    for (ours, other), ratio in ratios.items():
        world.note(f'{what}: {ours} : {THEIRS[other]} {ratio:.2f}, asked >= '
                   f'{ASKED} {"ok" if ratio >= ASKED else "MISSED"}')


def compare(world, what, count, run_ms):
    """Reports the ratios. None of them makes the case fail, because the load that other
    programs put on the disk changes them."""
    for side in THEIRS:
        warm(world, side, count)
    compare_warm(world, what, count, run_ms)


place = Place('mysql: ', lambda build: MariaDbWorld(build, MariaDbServer()))

CASES = [
    place.on('figures: lock and unlock, alone', compare,
             'lock and unlock, alone', 1, ALONE_MS),
    # ShedLock has no call that waits; its peer tries again after 10 ms.
    place.on('figures: 8 processes', compare,
             '8 processes (ShedLock: retried after 10 ms)', CONTENDERS,
             TOGETHER_MS),
]
