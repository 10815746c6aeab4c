"""Gives the lab wrong input or a user's servers, or interrupts it. The error message must be
clear. The lab must stop its own servers, and must leave nothing in a user's databases.

input.py HOLDFAST, started by with_servers redis,redlock,mariadb,etcd
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                '..', 'docs'))
import cases  # noqa: E402
import traces  # noqa: E402

command = os.path.abspath(sys.argv[1])
redis, mariadb = os.environ['LAB_REDIS'], os.environ['LAB_MARIADB']
etcd = os.environ['LAB_ETCD']
redlock = os.environ['LAB_REDLOCK']
USAGE, UNAVAILABLE, OSERR, NOPERM = 64, 69, 71, 77
SMALL = ['--workers', '4', '--stock', '20', '--buyers', '40']


def lab(*arguments, place=None, **more):
    environment = place.environment if place else {
        name: value for name, value in os.environ.items()
        if name != 'HOLDFAST_URL'}
    return subprocess.run([command, 'lab', *arguments], encoding='utf-8',
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(environment, **more))


def refused(status, text, *arguments, **more):
    with traces.Place() as place:
        run = lab(*arguments, place=place, **more)
        assert run.returncode == status, (arguments, run)
        assert re.search(text, run.stderr), (arguments, run.stderr)
        assert len(run.stderr.splitlines()) <= 4, run.stderr
        assert place.is_clean()
    return run


def test_what_is_not_there_is_named():
    refused(USAGE, "no scenario is called `oversel'; did you mean oversell",
            'oversel')
    refused(USAGE, "no scenario is called `xyzzy'.*lab list", 'xyzzy')
    refused(USAGE, "no strategy `sql-updat'", 'oversell', '--strategy',
            'none,sql-updat')
    refused(USAGE, "no backend is called `etcdd'.*shm, redis, redlock, zk, etcd "
            'and mariadb', 'oversell', '--backends', 'shm,etcdd')
    refused(USAGE, "no store is called `ram'.*file, redis and mariadb",
            'oversell', '--stores', 'ram')
    refused(USAGE, 'file is a store, not a backend', 'oversell',
            '--backends', 'file')
    for backend in 'redlock', 'zk', 'etcd':
        refused(USAGE, backend + ' is a backend, not a store', 'oversell',
                '--stores', backend)


def test_what_does_not_fit_is_named():
    refused(USAGE, '--stock takes a number from 1 to', 'oversell', '--stock', '0')
    refused(USAGE, '--workers takes a number from 2 to', 'oversell', '--workers',
            'x')
    refused(USAGE, '--ttl takes a duration', 'crash', '--ttl', '1ms')
    refused(USAGE, '--seconds takes a duration of 50ms to 60s', 'tickets', '--seconds', '2m')
    refused(USAGE, 'crash takes no --stock', 'crash', '--stock', '3')
    refused(USAGE, '--strategy needs one scenario', 'all', '--strategy', 'none')
    refused(USAGE, 'one scenario at a time', 'crash', 'stall')
    refused(USAGE, 'name a scenario', '--json')


def test_what_a_scenario_needs_is_told():
    refused(USAGE, 'sql needs a MariaDB: --servers, or --stores mariadb://',
            'sql')
    refused(USAGE, 'script needs a Redis: --servers, or --stores redis://',
            'misdelete', '--strategy', 'script')
    refused(USAGE, 'failover breaks servers, so it needs its own: --servers',
            'failover', '--stores', 'redis://127.0.0.1:1')
    refused(USAGE, 'redis: which server\\? Give its URL, or --servers',
            'oversell', '--backends', 'redis')
    refused(USAGE, 'sql-update needs MariaDB', 'oversell', '--strategy',
            'sql-update')


def test_all_tells_what_it_did_not_run():
    # If a backend cannot be reached, the run ends at once.
    run = lab('all', '--json', '--backends', 'redis://127.0.0.1:1')
    assert run.returncode == UNAVAILABLE, run
    assert '127.0.0.1' in run.stderr, run.stderr


def test_a_server_that_is_not_there():
    refused(UNAVAILABLE, '127.0.0.1', 'oversell', '--strategy',
            'lock', '--backends', 'redis://127.0.0.1:1')
    refused(UNAVAILABLE, '127.0.0.1', 'oversell', '--strategy', 'redis-spin',
            '--stores', 'redis://127.0.0.1:1')
    refused(UNAVAILABLE, '127.0.0.1', 'oversell', '--strategy', 'sql-update',
            '--stores', 'mariadb://root:s3cret@127.0.0.1:1/lab')


def test_no_password_is_shown():
    for url in ('redis://u:s3cret@127.0.0.1:1', 'redis://u:s3cret@x',
                'mariadb://u:s3cret@127.0.0.1:1/d',
                mariadb.replace('root:', 'root:s3cret')):
        for option in ('--stores', '--backends', '--stock', '--html',
                       '--nonsense'):
            run = lab('oversell', option, url)
            assert run.returncode not in (0, 1), run
            assert 's3cret' not in run.stdout + run.stderr, run.stderr


def test_a_server_that_is_not_installed():
    with traces.Place() as place:
        # With this PATH, neither the command nor the servers that it starts are found.
        for scenario, package in (('misdelete', 'redis-server'),
                                  ('sql', 'mariadb-server')):
            run = lab(scenario, '--servers', place=place, PATH='/nonexistent')
            assert run.returncode == UNAVAILABLE, run
            assert 'apt install ' + package in run.stderr, run.stderr
        run = lab('all', '--servers', '--json', place=place,
                  PATH='/nonexistent')
        assert run.returncode == UNAVAILABLE and run.stdout == '', run
        assert ('apt install redis-server openjdk-17-jre-headless '
                'etcd-server mariadb-server') in run.stderr, run.stderr
        assert place.is_clean()


# ---- given databases ---------------------------------------------------------


def ask_redis(*words):
    password, port = re.fullmatch(r'redis://:(\w+)@127.0.0.1:(\d+)',
                                  redis).groups()
    return ask_one(password, port, *words)


def ask_one(password, port, *words):
    return subprocess.run(['redis-cli', '-p', port, *words], check=True,
                          env=dict(os.environ, REDISCLI_AUTH=password),
                          encoding='utf-8', stdout=subprocess.PIPE).stdout


def ask_mariadb(statement):
    match = re.fullmatch(r'mariadb://(\w+):([^@]*)@([\d.]+):(\d+)/(\w+)',
                         mariadb)
    user, password, host, port, database = match.groups()
    return subprocess.run(['mariadb', '-u', user, '-h', host, '-P', port, '-N',
                           '--skip-ssl', '-e', statement, database], check=True,
                          env=dict(os.environ, MYSQL_PWD=password),
                          encoding='utf-8', stdout=subprocess.PIPE).stdout


def are_empty():
    return ask_redis('keys', '*').strip() == '' and ask_mariadb(
        'SHOW TABLES') == ''


def test_given_databases_are_used_and_left_clean():
    with traces.Place() as place:
        run = lab('oversell', '--json', '--backends', 'shm,' + redis,
                  '--stores', 'file,%s,%s' % (redis, mariadb), *SMALL,
                  place=place)
        assert run.returncode == 0, run
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        used = {(row.get('backend'), row.get('store')) for row in rows}
        assert ('redis', 'mariadb') in used, used
        assert (None, 'redis') in used, used
        assert place.is_clean()
    assert are_empty(), (ask_redis('keys', '*'), ask_mariadb('SHOW TABLES'))


def test_a_given_etcd_is_used_and_left_clean():
    keys = ['etcdctl', '--endpoints', etcd[len('etcd://'):], 'get', '',
            '--prefix', '--keys-only']
    with traces.Place() as place:
        for arguments in (['oversell', '--strategy', 'lock', *SMALL],
                          ['limiter'], ['door']):
            run = lab(*arguments, '--json', '--backends', etcd, place=place)
            assert run.returncode == 0, run
            assert '"backend":"etcd"' in run.stdout, run.stdout
        assert place.is_clean()
    assert subprocess.check_output(
        keys, env=dict(os.environ, ETCDCTL_API='3')) == b''


def test_a_given_redlock_is_used_and_left_clean():
    password = re.match(r'redlock://:(\w+)@', redlock)[1]
    ports = re.findall(r'127.0.0.1:(\d+)', redlock)
    assert len(ports) == 5
    with traces.Place() as place:
        run = lab('oversell', '--strategy', 'lock', *SMALL, '--json',
                  '--backends', 'shm,' + redlock, place=place)
        assert run.returncode == 0, run
        assert '"backend":"redlock"' in run.stdout, run.stdout
        run = lab('crash', '--json', '--backends', redlock + '&tls=yes',
                  place=place)
        assert run.returncode == USAGE, run
        assert 'have no TLS' in run.stderr, run.stderr
        assert place.is_clean()
    for port in ports:
        assert ask_one(password, port, 'keys', '*').strip() == ''
        counts = ask_one(password, port, 'info', 'commandstats')
        assert 'cmdstat_evalsha' in counts, counts


def test_a_given_mariadb_is_used_for_locks_and_left_clean():
    ask_mariadb('CREATE TABLE stranger (a INT)')
    with traces.Place() as place:
        for arguments in (['oversell', '--strategy', 'lock', *SMALL],
                          ['limiter'], ['door']):
            run = lab(*arguments, '--json', '--backends', mariadb, place=place)
            assert run.returncode == 0, run
            assert '"backend":"mariadb"' in run.stdout, run.stdout
        run = lab('crash', '--json', '--backends', mariadb + '?tls=yes',
                  place=place)
        assert run.returncode == USAGE, run
        assert 'have no TLS' in run.stderr, run.stderr
        assert place.is_clean()
    tables = ask_mariadb('SHOW TABLES').split()
    ours = ['holdfast_holds', 'holdfast_locks', 'holdfast_requests',
            'holdfast_values']
    assert tables == [*ours, 'stranger'], tables
    for table in ours:
        assert ask_mariadb('SELECT COUNT(*) FROM ' + table) == '0\n', table
    ask_mariadb('DROP TABLE ' + ', '.join(tables))


def test_a_store_without_rights():
    ask_mariadb("CREATE USER IF NOT EXISTS weak@'%' IDENTIFIED BY 'weak'; "
                "GRANT SELECT ON lab.* TO weak@'%'")
    weak = re.sub('//[^@]*@', '//weak:weak@', mariadb)
    refused(NOPERM, 'denied.*CREATE', 'oversell',
            '--strategy', 'sql-update', '--stores', weak)
    assert are_empty()


# ---- interrupted runs --------------------------------------------------------


class Started:
    """A run of the lab that the test interrupts."""

    def __init__(self, place, *arguments):
        self.place = place
        self.process = subprocess.Popen(
            [command, 'lab', *arguments], encoding='utf-8',
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=place.environment, start_new_session=True,
            # Under nohup(1) the test ignores SIGHUP, and a child would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    def has_servers(self):
        assert traces.wait_for(lambda: self.place.processes()
                               or self.process.poll() is not None)
        assert self.process.poll() is None, self.end()

    def runner(self):
        with open('/proc/{0}/task/{0}/children'.format(self.process.pid),
                  encoding='utf-8') as file:
            return int(file.read().split()[0])

    def end(self):
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err


SLOW = ['contention', '--servers', '--backends', 'shm,redis', '--stores',
        'file,redis', '--seconds', '5']


def ends_clean(end, number, text):
    """Starts a run that has servers, and ends the run by end(run). The run must report the
    signal, and must leave nothing behind."""
    with traces.Place() as place:
        run = Started(place, *SLOW)
        run.has_servers()
        end(run)
        status, _, err = run.end()
        assert status == 128 + number and text in err, (status, err)
        assert place.is_clean()


def control_c(run):
    os.killpg(run.process.pid, signal.SIGINT)


def kill_runner(run):
    os.kill(run.runner(), signal.SIGKILL)


def test_control_c_stops_the_servers():
    ends_clean(control_c, signal.SIGINT, 'interrupted')


def test_a_signal_to_the_supervisor_stops_the_servers():
    for number in signal.SIGTERM, signal.SIGHUP:
        ends_clean(lambda run, number=number: run.process.send_signal(number),
                   number, 'interrupted; servers are stopped, nothing is left')


def test_a_reader_that_goes_away_ends_it_quietly():
    with traces.Place() as place:
        read, write = os.pipe()
        os.close(read)
        run = subprocess.run([command, 'lab', 'oversell', '--json', *SMALL],
                             stdout=write, stderr=subprocess.PIPE,
                             encoding='utf-8', env=place.environment)
        os.close(write)
        assert run.returncode == 128 + signal.SIGPIPE, run
        assert run.stderr == '', run
        assert place.is_clean()


def test_what_is_ignored_or_closed_does_no_harm():
    with traces.Place() as place:
        run = subprocess.run(
            ['sh', '-c', 'trap "" CHLD INT HUP; exec "$@" >&- <&-', 'sh',
             command, 'lab', 'oversell', *SMALL], env=place.environment,
            stderr=subprocess.PIPE, encoding='utf-8')
        assert run.returncode in (0, 1), run
        assert 'signal' not in run.stderr, run
        assert place.is_clean()


def test_a_redis_that_does_not_answer_is_told():
    with socket.create_server(('127.0.0.1', 0)) as server:
        url = 'redis://127.0.0.1:%d' % server.getsockname()[1]
        refused(UNAVAILABLE, 'Redis does not answer', 'oversell', '--strategy',
                'redis-spin', '--stores', url)


def test_a_kill_of_the_supervisor_stops_the_servers():
    with traces.Place() as place:
        run = Started(place, *SLOW)
        run.has_servers()
        run.process.kill()
        run.end()
        assert place.becomes_clean()


def test_a_kill_of_the_runner_stops_the_servers():
    ends_clean(kill_runner, signal.SIGKILL, 'killed by signal 9')


def test_control_c_leaves_given_databases_clean():
    for end in control_c, kill_runner:
        with traces.Place() as place:
            run = Started(place, 'oversell', '--backends', redis, '--stores',
                          redis + ',' + mariadb, '--buyers', '1000000',
                          '--stock', '1000000')
            assert traces.wait_for(lambda: not are_empty()), 'nothing is done'
            end(run)
            run.end()
            assert place.is_clean()
            assert are_empty(), (ask_redis('keys', '*'),
                                 ask_mariadb('SHOW TABLES'))


# ---- output ------------------------------------------------------------------


def test_a_page_that_cannot_be_written_is_told_at_once():
    refused(OSERR, 'cannot write /nonexistent/page.html', 'all', '--servers',
            '--html', '/nonexistent/page.html')
    refused(OSERR, 'cannot write /tmp: Is a directory', 'all', '--servers',
            '--html', '/tmp')


def test_a_full_disk_is_told():
    run = lab('oversell', '--html', '/dev/full', *SMALL)
    assert run.returncode == OSERR, run
    assert 'cannot write /dev/full: No space' in run.stderr, run.stderr
    with open('/dev/full', 'w', encoding='utf-8') as full:
        run = subprocess.run([command, 'lab', 'oversell', *SMALL], stdout=full,
                             stderr=subprocess.PIPE, encoding='utf-8')
    assert run.returncode == 1 and 'standard output' in run.stderr, run


def test_the_table_has_bars_and_json_has_lines():
    table = lab('oversell', *SMALL, LC_ALL='C.UTF-8').stdout
    assert '\u2588' in table and 'sold exactly 20' in table, table
    table = lab('oversell', *SMALL, LC_ALL='C').stdout
    assert '###' in table and table.isascii(), table
    rows = lab('oversell', '--json', *SMALL).stdout.splitlines()
    assert {row['strategy'] for row in map(json.loads, rows)} == {
        'none', 'local-mutex', 'local-mutex-each', 'lock'}
    for key in ('strategy backend store sold left oversold attempts retries '
                'per_s p50_us p99_us cpu_ms server_cpu_ms verdict').split():
        assert key in json.loads(rows[0]), key


def test_the_list_has_every_scenario():
    names = [json.loads(line)['scenario']
             for line in lab('list', '--json').stdout.splitlines()]
    shown = lab('list').stdout
    for name in names:
        assert re.search('^  %s ' % name, shown, re.MULTILINE), name
        help_text = lab(name, '--help')
        assert help_text.returncode == 0, help_text
        assert 'usage: holdfast lab %s ' % name in help_text.stdout
        assert '\n\n\n' not in help_text.stdout, help_text
    assert '\n  none  ' in lab('oversell', '--help').stdout
    assert len(names) >= 16, names


def test_a_terminal_sees_a_live_line():
    run = subprocess.run(
        ['script', '-qec', ' '.join([command, 'lab', 'oversell', *SMALL]),
         '/dev/null'], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        env=dict(os.environ, TERM='xterm'))
    assert run.returncode == 0, run
    assert b'oversell: lock' in run.stdout, run.stdout
    assert b'\r\x1b[K' in run.stdout, run.stdout


assert shutil.which('redis-cli') and shutil.which('mariadb')
chosen = sys.argv[2:]
sys.exit(cases.run(cases.of(globals(), sys.argv[2:])))
