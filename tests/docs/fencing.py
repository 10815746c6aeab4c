"""Runs the checks of docs/fencing.md, extracted from the page.

fencing.py ROOT [COMMAND]

The check for a file is in C, and fence_file.c tests it.
"""

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import cases
import servers
from snippet import snippets

root, command = sys.argv[1], ''.join(sys.argv[2:])
page = os.path.join(root, 'docs', 'fencing.md')
(table, contact, transaction,
 two_bars, exclusive_contact, shared_contact) = snippets(page, 'sql')
(joined,) = snippets(page, 'mysql')
script, two_bars_script = snippets(page, 'lua')

# ---- SQL -------------------------------------------------------------------


class Shop:
    """A database with a fence, and with 10 pieces in stock."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, 'shop.db')
        db = self.connect()
        db.executescript(table + '''
            CREATE TABLE stock (product INTEGER PRIMARY KEY, amount INTEGER);
            INSERT INTO stock VALUES (1001, 10);
        ''')

    def connect(self):
        return sqlite3.connect(self.path, timeout=0, isolation_level=None)

    def amount(self):
        return self.connect().execute('SELECT amount FROM stock').fetchone()[0]


def is_let_in(db, token):
    done = db.execute(contact, {'token': token, 'lock_name': 'stock'})
    return done.rowcount == 1


def sell(db, token):
    """Runs the transaction of the page, one statement after the other."""
    for statement in transaction.split(';'):
        lines = [line for line in statement.splitlines()
                 if line.strip() and not line.startswith('--')]
        if not lines:
            continue
        names = {'token': token, 'lock_name': 'stock'}
        done = db.execute('\n'.join(lines), names)
        if 'fence' in statement and done.rowcount == 0:
            db.execute('ROLLBACK')
            return False
    return True


def test_sql_refuses_a_lower_token():
    shop = Shop()
    db = shop.connect()
    assert sell(db, 33)
    assert sell(db, 34)
    assert not sell(db, 33)
    assert shop.amount() == 8


def test_sql_accepts_an_equal_token():
    shop = Shop()
    db = shop.connect()
    assert sell(db, 33)
    assert sell(db, 33)
    assert shop.amount() == 8


def test_sql_read_raises_the_bar():
    shop = Shop()
    a, b = shop.connect(), shop.connect()
    assert is_let_in(a, 33)
    b.execute('BEGIN')
    assert is_let_in(b, 34)
    assert b.execute('SELECT amount FROM stock').fetchone() == (10,)
    b.execute('COMMIT')
    assert not sell(a, 33)
    assert shop.amount() == 10


def test_sql_lets_nobody_in_between_check_and_work():
    shop = Shop()
    a, b = shop.connect(), shop.connect()
    a.execute('BEGIN')
    assert is_let_in(a, 33)
    try:
        is_let_in(b, 34)
        raise AssertionError('a newer one came in between')
    except sqlite3.OperationalError as error:
        assert 'locked' in str(error)
    a.execute('COMMIT')
    assert is_let_in(b, 34)


def test_sql_refused_transaction_leaves_nothing():
    shop = Shop()
    db = shop.connect()
    assert sell(db, 34)
    assert not sell(db, 33)
    row = db.execute('SELECT token, contacts FROM fence').fetchone()
    assert row == (34, 1), row


def test_sql_keeps_names_apart():
    shop = Shop()
    db = shop.connect()
    db.execute("INSERT INTO fence VALUES ('other', 0, 0)")
    assert is_let_in(db, 34)
    done = db.execute(contact, {'token': 5, 'lock_name': 'other'})
    assert done.rowcount == 1


# ---- in the database that has the lock ---------------------------------------


class Locked:
    """A lock that `holdfast run` holds until end()."""

    def __init__(self, name, *mode, ttl='30s'):
        self.name = name
        self.check = joined
        if mode:
            self.check = self.check.replace(
                'holdfast_locks', 'holdfast_holds').replace('kind', 'mode')
        self.process = subprocess.Popen(
            [command, 'run', '-b', mysql.url('shop') + '?ttl=' + ttl, *mode,
             name, '--', 'sh', '-c', 'echo $HOLDFAST_TOKEN; sleep 60'],
            stdout=subprocess.PIPE, encoding='utf-8')
        self.token = int(self.process.stdout.readline())

    def sell(self, token=None, before='', after=''):
        statement = self.check.replace(
            ':token', str(token or self.token)).replace(
                ':lock_name', "'%s'" % self.name)
        said = mysql.sql(before + statement + 'SELECT ROW_COUNT();' + after,
                         user='shop')
        return said[0] == ['1']

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def fill_stock():
    mysql.sql('CREATE TABLE IF NOT EXISTS stock (product INTEGER PRIMARY KEY, '
              'amount INTEGER) ENGINE=InnoDB; '
              'REPLACE INTO stock VALUES (1001, 10)')


def amount():
    return mysql.number('SELECT amount FROM stock')


def test_mysql_writes_for_the_holder_alone():
    for mode in (), ('-x',):
        fill_stock()
        lock = Locked('stock' + ''.join(mode), *mode)
        assert lock.sell() and lock.sell()
        assert not lock.sell(lock.token + 1)
        assert lock.token == 1 or not lock.sell(lock.token - 1)
        lock.end()
        assert not lock.sell(), 'released'
        assert amount() == 8


def counts(statement):
    """Returns how many rows a statement found, and how many it changed."""
    found = re.search(r'Rows matched: (\d+)  Changed: (\d+)',
                      mysql.client(statement, '-vv'))
    return int(found[1]), int(found[2])


def test_mysql_counts_found_and_changed_rows_as_the_page_says():
    fill_stock()
    lock = Locked('counted')
    check = lock.check.replace(':lock_name', "'counted'")
    assert counts(check.replace(':token', str(lock.token))) == (2, 1)
    assert counts(check.replace(':token', str(lock.token + 1))) == (0, 0)
    lock.end()
    mysql.sql('DROP TABLE IF EXISTS fence; ' + table)
    contacts = contact.replace(':lock_name', "'stock'")
    assert counts(contacts.replace(':token', '33')) == (1, 1)
    assert counts(contacts.replace(':token', '33')) == (1, 1), 'once more'
    assert counts(contacts.replace(':token', '32')) == (0, 0)


def test_mysql_refuses_a_late_writer():
    fill_stock()
    late = Locked('late', ttl='1s')
    late.kill()
    time.sleep(1.2)
    assert not late.sell(), 'its lease is over'
    newer = Locked('late')
    assert newer.token > late.token
    assert newer.sell() and not late.sell()
    assert amount() == 9
    newer.end()


def test_mysql_lets_nobody_in_between_check_and_work():
    for level in 'READ COMMITTED', 'REPEATABLE READ':
        fill_stock()
        lock = Locked('between', ttl='1s')
        lock.kill()
        slow = threading.Thread(target=lock.sell, args=(
            None, 'SET SESSION TRANSACTION ISOLATION LEVEL %s; BEGIN; ' % level,
            'DO SLEEP(3); COMMIT'))
        slow.start()
        begin = time.monotonic()
        newer = Locked('between')
        took = time.monotonic() - begin
        slow.join()
        newer.end()
        assert took > 2 and newer.token > lock.token, (level, took)
        assert amount() == 9


# ---- Redis -----------------------------------------------------------------


class Redis(servers.Redis):
    def contact(self, token, *command):
        return self.call('EVAL', script, '2', 'fence:{stock}',
                         'amount:{stock}', str(token), *command)

    def fresh(self):
        assert self.call('FLUSHALL') == 'OK'
        assert self.call('SET', 'amount:{stock}', '10') == 'OK'


def test_redis_refuses_a_lower_token():
    redis.fresh()
    assert redis.contact(33, 'SET', '9') == 'OK'
    assert redis.contact(34, 'SET', '8') == 'OK'
    assert redis.contact(33, 'SET', '7').startswith('STALE token 33, seen 34')
    assert redis.call('GET', 'amount:{stock}') == '8'


def test_redis_accepts_an_equal_token():
    redis.fresh()
    assert redis.contact(33, 'DECR') == '9'
    assert redis.contact(33, 'DECRBY', '2') == '7'


def test_redis_read_raises_the_bar():
    redis.fresh()
    assert redis.contact(33, 'GET') == '10'
    assert redis.contact(34, 'GET') == '10'
    assert redis.contact(33, 'SET', '9').startswith('STALE')
    assert redis.call('GET', 'amount:{stock}') == '10'


def test_redis_compares_tokens_as_numbers():
    redis.fresh()
    assert redis.contact(9, 'GET') == '10'
    assert redis.contact(10, 'GET') == '10'
    assert redis.contact(9, 'GET').startswith('STALE')
    assert redis.contact(2**64 - 2, 'GET') == '10'
    assert redis.contact(2**64 - 1, 'GET') == '10'
    assert redis.contact(2**64 - 2, 'GET').startswith('STALE')


def test_redis_bar_does_not_expire():
    redis.fresh()
    redis.contact(33, 'GET')
    assert redis.call('TTL', 'fence:{stock}') == '-1'


# ---- shared holds -----------------------------------------------------------


class SharedShop(Shop):
    """The SQL fence for shared and exclusive contacts."""

    def __init__(self):
        super().__init__()
        self.db = self.connect()
        self.db.executescript(two_bars)

    def lets_in(self, mode, token):
        check = shared_contact if mode == 'shared' else exclusive_contact
        done = self.db.execute(check, {'token': token, 'lock_name': 'stock'})
        return done.rowcount == 1

    def bars(self):
        return self.db.execute(
            'SELECT token, shared_token FROM fence').fetchone()


class SharedData:
    """The same fence in Redis."""

    def __init__(self):
        redis.fresh()

    def lets_in(self, mode, token):
        said = redis.call('EVAL', two_bars_script, '2', 'bars:{stock}',
                          'amount:{stock}', str(token), mode, 'GET')
        assert said == '10' or said.startswith('STALE token %d' % token), said
        return said == '10'

    def bars(self):
        return tuple(int(redis.call('HGET', 'bars:{stock}', mode) or 0)
                     for mode in ('exclusive', 'shared'))


def in_both(contacts, bars):
    """Makes each contact on both resources, and compares the results and the bars."""
    for resource in (SharedShop(), SharedData()):
        for mode, token, wanted in contacts:
            assert resource.lets_in(mode, token) == wanted, (
                type(resource), mode, token)
        assert resource.bars() == bars, (type(resource), resource.bars())


def test_readers_do_not_refuse_each_other():
    in_both([('shared', 21, True), ('shared', 9, True), ('shared', 21, True)],
            (0, 21))


def test_a_writer_refuses_readers_before_it():
    in_both([('shared', 9, True), ('exclusive', 10, True),
             ('shared', 9, False), ('shared', 10, True), ('shared', 11, True)],
            (10, 11))


def test_a_reader_refuses_the_writer_before_it():
    in_both([('exclusive', 9, True), ('shared', 10, True),
             ('exclusive', 9, False), ('exclusive', 11, True)], (11, 10))


def test_a_reader_with_its_token_refuses_the_writer_too():
    in_both([('exclusive', 33, True), ('shared', 33, True),
             ('exclusive', 33, False), ('exclusive', 34, True)], (34, 33))


def test_a_writer_comes_again_and_refuses_writers_before_it():
    in_both([('exclusive', 9, True), ('exclusive', 10, True),
             ('exclusive', 10, True), ('exclusive', 9, False)], (10, 0))


def test_a_mode_that_is_misspelt_is_exclusive():
    data = SharedData()
    assert data.lets_in('Shared', 33)
    assert data.bars() == (33, 0)


# ---- the file --------------------------------------------------------------


def test_the_example_has_the_function_of_the_page():
    (c,) = snippets(page, 'c')
    function = c[c.index('/*'):]
    path = os.path.join(root, 'examples', 'fencing.c')
    with open(path, encoding='utf-8') as f:
        assert function in f.read(), 'they have drifted apart'


redis = Redis()
chosen = cases.of(globals())
if command:
    mysql = servers.Mysql()
    mysql.sql("CREATE USER shop@'%'; GRANT ALL ON locks.* TO shop@'%'")
else:
    chosen = [case for case in chosen if 'mysql' not in case.__name__]
sys.exit(cases.run(chosen))
