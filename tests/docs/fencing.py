"""The checks of docs/fencing.md, cut out of it and run: fencing.py ROOT.

The one for a file is C and compiled: fence_file.c.
"""

import os
import sqlite3
import sys
import tempfile

import cases
from redis_server import RedisServer
from snippet import snippets

root = sys.argv[1]
page = os.path.join(root, 'docs', 'fencing.md')
table, contact, transaction = snippets(page, 'sql')
(script,) = snippets(page, 'lua')

# ---- SQL -------------------------------------------------------------------


class Shop:
    """A database with a fence and a stock of 10."""

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
    """The transaction of the page, statement by statement."""
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


def sql_refuses_a_lower_token():
    shop = Shop()
    db = shop.connect()
    assert sell(db, 33)
    assert sell(db, 34)
    assert not sell(db, 33)
    assert shop.amount() == 8


def sql_accepts_an_equal_token():
    shop = Shop()
    db = shop.connect()
    assert sell(db, 33)
    assert sell(db, 33)
    assert shop.amount() == 8


def sql_read_raises_the_bar():
    shop = Shop()
    a, b = shop.connect(), shop.connect()
    assert is_let_in(a, 33)
    b.execute('BEGIN')
    assert is_let_in(b, 34)
    assert b.execute('SELECT amount FROM stock').fetchone() == (10,)
    b.execute('COMMIT')
    assert not sell(a, 33)
    assert shop.amount() == 10


def sql_lets_nobody_in_between_check_and_work():
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


def sql_refused_transaction_leaves_nothing():
    shop = Shop()
    db = shop.connect()
    assert sell(db, 34)
    assert not sell(db, 33)
    row = db.execute('SELECT token, contacts FROM fence').fetchone()
    assert row == (34, 1), row


def sql_keeps_names_apart():
    shop = Shop()
    db = shop.connect()
    db.execute("INSERT INTO fence VALUES ('other', 0, 0)")
    assert is_let_in(db, 34)
    done = db.execute(contact, {'token': 5, 'lock_name': 'other'})
    assert done.rowcount == 1


# ---- Redis -----------------------------------------------------------------


class Redis(RedisServer):
    def contact(self, token, *command):
        return self.call('EVAL', script, '2', 'fence:{stock}',
                         'amount:{stock}', str(token), *command)

    def fresh(self):
        assert self.call('FLUSHALL') == 'OK'
        assert self.call('SET', 'amount:{stock}', '10') == 'OK'


def redis_refuses_a_lower_token():
    redis.fresh()
    assert redis.contact(33, 'SET', '9') == 'OK'
    assert redis.contact(34, 'SET', '8') == 'OK'
    assert redis.contact(33, 'SET', '7').startswith('STALE token 33, seen 34')
    assert redis.call('GET', 'amount:{stock}') == '8'


def redis_accepts_an_equal_token():
    redis.fresh()
    assert redis.contact(33, 'DECR') == '9'
    assert redis.contact(33, 'DECRBY', '2') == '7'


def redis_read_raises_the_bar():
    redis.fresh()
    assert redis.contact(33, 'GET') == '10'
    assert redis.contact(34, 'GET') == '10'
    assert redis.contact(33, 'SET', '9').startswith('STALE')
    assert redis.call('GET', 'amount:{stock}') == '10'


def redis_compares_tokens_as_numbers():
    redis.fresh()
    assert redis.contact(9, 'GET') == '10'
    assert redis.contact(10, 'GET') == '10'
    assert redis.contact(9, 'GET').startswith('STALE')
    assert redis.contact(2**64 - 2, 'GET') == '10'
    assert redis.contact(2**64 - 1, 'GET') == '10'
    assert redis.contact(2**64 - 2, 'GET').startswith('STALE')


def redis_bar_does_not_expire():
    redis.fresh()
    redis.contact(33, 'GET')
    assert redis.call('TTL', 'fence:{stock}') == '-1'


# ---- the file --------------------------------------------------------------


def the_example_has_the_function_of_the_page():
    (c,) = snippets(page, 'c')
    function = c[c.index('/*'):]
    path = os.path.join(root, 'examples', 'fencing.c')
    with open(path, encoding='utf-8') as f:
        assert function in f.read(), 'they have drifted apart'


redis = Redis()
status = cases.run([
    sql_refuses_a_lower_token,
    sql_accepts_an_equal_token,
    sql_read_raises_the_bar,
    sql_lets_nobody_in_between_check_and_work,
    sql_refused_transaction_leaves_nothing,
    sql_keeps_names_apart,
    redis_refuses_a_lower_token,
    redis_accepts_an_equal_token,
    redis_read_raises_the_bar,
    redis_compares_tokens_as_numbers,
    redis_bar_does_not_expire,
    the_example_has_the_function_of_the_page,
])
redis.stop()
sys.exit(status)
