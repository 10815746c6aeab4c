"""Tests docs/mysql.md: mysql.py ROOT COMMAND.

The statements are extracted from the page. Its tables are compared with those that
the library creates. The rights, the queries and the statements that change rows
are tried while `holdfast run' works on the same MariaDB server.
"""

import os
import re
import signal
import subprocess
import sys
import time

import cases
from servers import Mysql
from snippet import snippets

root, command = (os.path.abspath(path) for path in sys.argv[1:3])
page = os.path.join(root, 'docs', 'mysql.md')
(setup, tables, rights, right_to_create, held, waiting, left_behind, break_mutex,
 delete_old) = snippets(page, 'mysql')


def start(*arguments, user='shop', database='locks', query=''):
    return subprocess.Popen(
        [command, 'run', '-b', server.url(user, database) + query, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, encoding='utf-8')


def run(*arguments, **how):
    process = start(*arguments, **how)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


class Holder:
    """Holds a name until the end of the block."""

    def __init__(self, *arguments, **how):
        self.process = start(*arguments, '--', 'sh', '-c', 'echo in; sleep 60',
                             **how)

    def __enter__(self):
        assert self.process.stdout.readline() == 'in\n', (
            self.process.communicate())
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.communicate(timeout=30)


def bare(text):
    return re.sub(r'\s+', '', text)


def test_first_setup_is_enough():
    """Runs the statements, then the lines of the shell, with other names for the
    database and the user."""
    def ours(text):
        return text.replace('locks', 'first').replace('shop', 'newcomer')

    server.sql(ours(setup), database='')
    (shell,) = snippets(page, 'sh')
    shell = ours(shell).replace('@db1/', '@127.0.0.1:%d/' % server.port)
    done = subprocess.run(
        ['sh', '-e', '-c', shell.replace('holdfast doctor',
                                         'holdfast doctor || [ $? -eq 1 ]')
         .replace('./backup', 'printenv HOLDFAST_NAME')],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8',
        env=dict(os.environ, PATH=os.path.dirname(command) + ':' +
                 os.environ['PATH']), check=False, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.endswith('\nnightly\n'), done.stdout
    assert len(server.sql('show tables', database='first')) == 4


def test_tables_are_those_of_the_library():
    server.sql('create database shown; create database made; '
               "create user maker@'%'; grant all on made.* to maker@'%'")
    server.sql(tables, database='shown')
    status, _, err = run('a', '--', 'true', user='maker', database='made')
    assert status == 0, err
    shown, made = (
        [server.sql('show create table ' + name, database=database)
         for (name,) in server.sql('show tables', database=database)]
        for database in ('shown', 'made'))
    assert len(made) == 4 and made == shown, (made, shown)
    server.sql("drop database shown; drop database made; drop user maker@'%'")


def test_every_column_is_explained():
    with open(page, encoding='utf-8') as f:
        text = re.sub(r'^```.*?^```$', '', f.read(),
                      flags=re.MULTILINE | re.DOTALL)
    columns = set(re.findall(r'^    (\w+) (?:var|tiny|big|bin|int|date|long)',
                             tables, re.MULTILINE))
    assert len(columns) > 18, columns
    for column in columns - {'request', 'answer', 'keep_until', 'written'}:
        assert '`%s`' % column in text, column


def test_without_tables_and_rights_it_says_what_to_run():
    server.sql("create user shop@'%'; grant usage on *.* to shop@'%'")
    status, _, err = run('a', '--', 'true')
    assert status == 77, (status, err)
    server.sql("grant select on locks.* to shop@'%'")
    for statement in tables.split(';')[:4]:
        status, _, err = run('a', '--', 'true')
        told = re.search('CREATE command denied.* Run: (create table .*)', err)
        assert (status == 77 and bare(told[1].replace('`locks`.', '', 1)) ==
                bare(statement)), (status, err)
        server.sql(told[1])
    status, _, err = run('a', '--', 'true')
    assert status == 77 and 'grant select, insert' in err, (status, err)
    server.sql("revoke select on locks.* from shop@'%'; drop table "
               'holdfast_locks, holdfast_holds, holdfast_requests, '
               'holdfast_values')


def test_rights_of_the_page_are_enough():
    server.sql(tables + rights)
    grants = server.sql("show grants for shop@'%'")
    assert len(grants) == 5, grants
    for kind in ([], ['-s'], ['-x']):
        assert run(*kind, 'rights%s' % len(kind), '--', 'true')[0] == 0, kind
    with Holder('rights'):
        assert run('-n', 'rights', '--', 'true')[0] == 75


def test_right_to_create_is_enough_to_make_them():
    server.sql('create database other')
    made = rights.replace('locks.', 'other.').replace('shop', 'maker')
    server.sql("create user maker@'%';" + right_to_create.replace(
        'locks.', 'other.').replace('shop', 'maker'))
    server.sql("grant select, insert, update, delete on other.* to maker@'%'")
    status, _, err = run('a', '--', 'true', user='maker', database='other')
    assert status == 0, err
    found = {name for (name,) in server.sql('show tables', database='other')}
    assert found == set(re.findall(r'other\.(\w+)', made)), found


def test_a_missing_column_is_named():
    server.sql('alter table holdfast_locks drop column host')
    status, _, err = run('a', '--', 'true')
    assert status == 69, (status, err)
    statement = re.search(r'Run: (alter table .*)', err)[1]
    assert statement == ('alter table `locks`.holdfast_locks add column '
                         'host varbinary(64) not null'), err
    server.sql(statement)
    server.sql('alter table holdfast_holds add column more int default 1')
    assert run('-s', 'b', '--', 'true')[0] == 0
    server.sql('alter table holdfast_holds drop column more')


def test_held_names_are_shown():
    assert server.sql(held) == []
    # Names are bytes and include the prefix of the URL.
    with Holder('--label', 'kasse', 'stock') as mutex, \
            Holder('-s', '--label', 'leser', 'shelf', query='?prefix=shop/'), \
            Holder('-x', 'writer'):
        rows = server.sql(held)
        assert [row[:4] for row in rows] == [
            ['shop/shelf', 'read-write lock', 'read', '1'],
            ['stock', 'mutex', 'write', '1'],
            ['writer', 'read-write lock', 'write', '1']], rows
        row = rows[1]
        assert row[4] == '1' and re.fullmatch('[0-9a-f]{32}', row[5]), row
        assert row[8] == str(mutex.process.pid) and row[9] == 'kasse', row
        assert 0 < float(row[11]) <= 30, row
    assert server.sql(held) == []


def test_waiters_are_shown():
    with Holder('stock'):
        waiter = start('--label', 'zweiter', 'stock', '--', 'true')
        (row,) = cases.until(lambda: server.sql(waiting))
        assert row[0] == 'stock' and row[2] == 'shop', row
        assert row[3] == str(waiter.pid) and row[5] == 'zweiter', row
        assert row[4] == os.uname().nodename[:64], row
        seconds = server.number("select timestampdiff(second, '%s', "
                                'utc_timestamp())' % row[6])
        assert 0 <= seconds < 30, row
        # The waiter's own user may run the query too.
        assert len(server.sql(waiting, user='shop')) == 1
        # If its connection is killed, the waiter loses its place, but keeps waiting.
        server.sql('kill ' + row[1])
        again = cases.until(lambda: server.sql(waiting))
        assert again[0][1] != row[1] and again[0][3] == row[3], again
        assert waiter.poll() is None
    assert waiter.wait(timeout=30) == 0
    assert server.sql(waiting) == []


def test_a_dead_holder_is_shown_when_its_lease_is_over():
    with Holder('--label', 'tot', 'orphan', query='?ttl=1s') as holder:
        assert server.sql(left_behind) == []
        holder.process.kill()
        (row,) = cases.until(lambda: server.sql(left_behind))
        assert row[0] == 'orphan' and row[3] == 'tot', row
        assert row[2] == str(holder.process.pid), row
    assert run('-n', 'orphan', '--', 'true')[0] == 0
    assert server.sql(left_behind) == []


def test_a_mutex_is_broken():
    server.sql("update holdfast_locks set token = 33 where name = 'stock'")
    with Holder('stock', query='?ttl=3s') as holder:
        # The holder's token is 34. With 33 in the page's statement, nothing may be broken.
        server.sql(break_mutex.replace('34', '33'))
        assert run('-n', 'stock', '--', 'true')[0] == 75
        waiter = start('stock', '--', 'true')
        cases.until(lambda: server.sql(waiting))
        server.sql(break_mutex)
        assert holder.process.wait(timeout=30) == 79
        assert waiter.wait(timeout=30) == 0


def test_a_hold_is_broken():
    with Holder('-s', 'shelf', query='?ttl=3s') as holder:
        server.sql("delete from holdfast_holds where name = 'shelf'")
        assert holder.process.wait(timeout=30) == 79


def test_old_rows_are_deleted_and_begin_at_1():
    def age(name):
        server.sql('update holdfast_locks set since = since - interval 31 day '
                   "where name = '%s'" % name)

    def names():
        return {name for (name,) in server.sql(
            'select name from holdfast_locks')}

    for name in 'old', 'young', 'busy':
        for _ in range(3):
            assert run(name, '--', 'true')[0] == 0
    for name in 'old-rw', 'busy-rw':
        assert run('-s', name, '--', 'true')[0] == 0
    with Holder('busy'), Holder('-s', 'busy-rw'):
        for name in 'old', 'busy', 'old-rw', 'busy-rw':
            age(name)
        server.sql(delete_old)
        assert not {'old', 'old-rw'} & names(), names()
        assert {'young', 'busy', 'busy-rw', 'shelf'} <= names(), names()
        assert run('-n', 'busy', '--', 'true')[0] == 75
        assert run('-n', '-x', 'busy-rw', '--', 'true')[0] == 75
    for name, token in ('old', '1'), ('young', '4'):
        status, out, _ = run(name, '--', 'sh', '-c', 'echo $HOLDFAST_TOKEN')
        assert (status, out) == (0, token + '\n'), (name, out)


def test_a_lease_far_ahead_is_one_from_now():
    """Simulates a server's clock that was set back by an hour."""
    for kind, table in ([], 'locks'), (['-s'], 'holds'):
        name = 'back-' + table
        with Holder(*kind, name, query='?ttl=2s') as holder:
            os.kill(holder.process.pid, signal.SIGSTOP)
            try:
                server.sql('update holdfast_%s set lease_until = lease_until + '
                           "interval 1 hour where name = '%s'" % (table, name))
                other = start(*(['-x'] if kind else []), name, '--', 'true')
                begin = time.monotonic()
                status = other.wait(timeout=30)
                took = time.monotonic() - begin
            finally:
                os.kill(holder.process.pid, signal.SIGCONT)
            assert status == 0 and took < 14, (table, status, took)


server = Mysql()
sys.exit(cases.run(cases.of(globals())))
