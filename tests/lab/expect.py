"""The expected results of each scenario: the arguments that make the scenario small; for each
row its outcome, and a regular expression for its verdict; the claims that the scenario must
find either true or false; the figures of every row, and what must be true of them.
"""

# The columns that identify a row.
KEYS = ('strategy', 'variant', 'backend', 'store', 'locks')

# More columns that identify a row, for a scenario that repeats a row for several sizes.
MORE_KEYS = {'contention': ('workers',)}

BACKENDS = ('shm', 'redis', 'zk', 'etcd')
# For scenarios that also have rows for MariaDB.
AND_MARIADB = (*BACKENDS, 'mariadb')

# No test demands a speed: a run must find each of these claims either true or false.
CLAIMS = {
    'oversell': ('one statement > for update > optimistic',
                 'Redis is faster than ZooKeeper',
                 'ZooKeeper is faster than Redis',
                 'Redis is faster than etcd',
                 'waiting for an event is cheaper than polling'),
    'contention': ('optimistic locking is very slow under high concurrency',
                   'polling for a lock wastes CPU'),
    'tickets': tuple('on %s one lock per train sells more than one lock for all'
                     % backend for backend in BACKENDS),
    'crash': ('ZooKeeper frees the lock at once when the holder dies',),
    'replica-read':
        ('a version that is read from a replica is old while it lags',
         'read/write splitting makes optimistic locking oversell'),
}

TIMES = ('per_s', 'p50_us', 'p99_us', 'cpu_ms', 'server_cpu_ms')

COLUMNS = {
    'oversell': ('store', 'sold', 'left', 'oversold', 'attempts', 'retries',
                 *TIMES),
    'contention': ('store', 'workers', 'sold', 'least', 'most', 'attempts',
                   'retries', 'retries_per_sale', 'cpu_us', *TIMES),
    'tickets': ('backend', 'trains', 'sold', 'wrong', *TIMES),
    'herd': ('variant', 'backend', 'waiters', 'processes', 'woken', 'cpu_us'),
    'limiter': ('cars', 'places', 'most'),
    'slow': ('backend', 'ttl_ms', 'holders'),
    'misdelete': ('backend', 'holders'),
    'failover': ('backend', 'holders', 'left'),
}


def fails(row):
    return row['outcome'] == 'fails'


# What must be true of the figures of every row, in words and as a function.
FIGURES = {
    'oversell': ('the stock is 40: what is left, sold and not oversold',
                 lambda row: row['left'] + row['sold'] - row['oversold'] == 40
                 and row['attempts'] == 80
                 and (row['oversold'] > 0) == fails(row)),
    'contention': ('each worker has sold',
                   lambda row: 1 <= row['least'] <= row['most'] <= row['sold']
                   and row['sold'] == row['attempts'] and row['per_s'] > 0),
    'tickets': ('four sellers have sold, and no train is wrong',
                lambda row: row['sold'] >= 4 and row['wrong'] == 0
                and row['per_s'] > 0),
    'herd': ('a few are woken, or most of the processes',
             lambda row: row['woken'] >= row['processes'] / 2 if fails(row)
             else 1 <= row['woken'] <= 5),
    'limiter': ('all are inside at once, or as many as there are places',
                lambda row: row['most'] == (10 if fails(row) else 3)),
    'slow': ('two holders where it fails',
             lambda row: row['holders'] == (2 if fails(row) else 1)),
    'misdelete': ('two holders where it fails',
                  lambda row: row['holders'] == (2 if fails(row) else 1)),
    'failover': ('two holders, whatever becomes of that; one if a majority knows',
                 lambda row: row['holders'] == (
                     1 if row['backend'] in ('redlock', 'etcd') else 2)),
}


def each(row, outcome, verdict, backends=BACKENDS):
    """Returns rows that have the same outcome and verdict on every backend."""
    return {row % backend: (outcome, verdict) for backend in backends}


def oversell():
    rows = {}
    for store in 'file', 'mariadb':
        for strategy in 'none', 'local-mutex', 'local-mutex-each':
            rows['%s %s' % (strategy, store)] = ('fails', r'oversold by \d+')
    exact = ('ok', 'sold exactly 40')
    for level, row in (('READ UNCOMMITTED', exact),
                       ('READ COMMITTED', ('fails', r'oversold by \d+')),
                       ('REPEATABLE READ', ('fails', r'oversold by \d+')),
                       ('SERIALIZABLE', exact)):
        rows['local-mutex-tx %s mariadb' % level] = row
    for strategy in 'update', 'for-update', 'version', 'timestamp':
        rows['sql-%s mariadb' % strategy] = exact
    rows['redis-watch redis'] = exact
    rows['redis-setnx DEL redis'] = ('fails', r'oversold by \d+')
    rows['redis-setnx owner check redis'] = exact
    rows['redis-spin redis'] = exact
    for store in 'file', 'redis', 'mariadb':
        for backend in AND_MARIADB:
            for order in 'fair', 'unfair':
                rows['lock %s %s %s' % (order, backend, store)] = exact
        rows['lock unfair redlock ' + store] = exact
    return rows


def contention():
    rows = {}
    exact = ('ok', 'exact.*')
    for size in 1, 4:
        for strategy in 'update', 'for-update', 'version', 'timestamp':
            rows['sql-%s mariadb %d' % (strategy, size)] = exact
        for strategy in 'redis-watch', 'redis-spin':
            rows['%s redis %d' % (strategy, size)] = exact
        for order in 'fair', 'unfair':
            for backend in AND_MARIADB:
                rows['lock %s %s file %d' % (order, backend, size)] = exact
    return rows


def stampede():
    return {'none mariadb': ('fails', '20 of 20 readers reached the database'),
            **each('lock %s mariadb', 'ok', '1 query for 20 readers'),
            **each('rwlock %s mariadb', 'ok', '1 query for 20 readers')}


def tickets():
    return {**each('lock %s one for all', 'ok', r'\d+ sold exactly'),
            **each('lock %s one per train', 'ok',
                   r'\d+ sold exactly: .* times as many as with one lock')}


def herd():
    rows = {}
    for backend in 'zk', 'etcd':
        rows['clients unfair ' + backend] = (
            'fails', r'a release wakes (3\d|40) of 40 waiters')
        rows['async unfair ' + backend] = (
            'fails', r'a release wakes (1\d|20) of 20 processes with 40 waiters')
    for order in 'fair', 'unfair':
        for backend in BACKENDS:
            rows.setdefault('clients %s %s' % (order, backend),
                            ('ok', 'a release wakes [1-5] of 40 waiters'))
            rows.setdefault(
                'async %s %s' % (order, backend),
                ('ok', 'a release wakes [1-5] of 20 processes with 40 waiters'))
    return rows


def crash():
    never = ('fails', 'never free: the key has no expiry, B waits forever')
    return {'setnx killed redis': never,
            'setnx-expire killed redis': never,
            'set-nx-ex killed redis': ('ok', r'free after \S+ ms'),
            **each('lock killed %s', 'ok', r'free after \S+ ms', AND_MARIADB),
            'lock killed redlock': ('ok', r'free after \S+ ms'),
            'lock closes zk': ('ok', r'free after \S+ ms'),
            'lock closes etcd': ('ok', r'free after \S+ ms')}


def slow():
    return {'fixed-lease by hand redis':
            ('fails', "B came in while A worked; A's release deleted B's lock, "
                      'and C came in'),
            'watchdog-once by hand redis':
            ('fails', 'renewed only once: B came in while A worked'),
            **each('fixed-lease holdfast %s', 'ok',
                   r"A's hold ended \S+ ms before B came in, and A knew; its "
                   'release freed no other lock', AND_MARIADB),
            **each('watchdog holdfast %s', 'ok',
                   'held for three TTLs, no other client got in', AND_MARIADB)}


def stall():
    stale = ('fails', "1 stale write: A put 9 over B's 7")
    refused = ('ok', '1 stale write refused by the store')
    knew = ('ok', r'A knew \(HF_ELOST\) and did not write')
    rows = {'no-token by hand redis file': stale,
            'no-token watchdog shm file':
            ('ok', 'no other client got in: shared memory waits for the process'),
            'token watchdog redis redis': refused,
            'token watchdog redis mariadb': refused}
    for way in 'fixed lease shm', 'watchdog redis', 'watchdog zk', \
            'watchdog etcd':
        rows['no-token %s file' % way] = stale
        rows['token %s file' % way] = refused
        rows['deadline %s file' % way] = knew
    return rows


def misdelete():
    freed = ('ok', "A's late release freed no other lock, C stayed out")
    return {'two-steps redis':
            ('fails', "A deleted B's lock, C came in while B was inside"),
            'script redis': freed, **each('lock %s', *freed)}


def failover():
    stale = ('fails', "two holders; 1 stale write: A put 9 over B's 7")
    waits = ('ok', 'one holder: the other servers knew the lock, so B had to wait')
    return {'no-token by hand redis': stale,
            'no-token holdfast redis': stale,
            'no-token holdfast redlock': waits,
            'no-token holdfast etcd': waits,
            'deadline holdfast redis': stale,
            'token holdfast redis':
            ('ok', "two holders; 1 stale write refused: B's token is higher")}


def eviction():
    stale = ('fails', 'the lock was evicted, B came in: 1 stale write, 9 over 7')
    kept = 'Redis was full: A kept its lock, B got %s'
    return {'no-token by hand redis': stale,
            'no-token holdfast redis': stale,
            'token holdfast redis':
            ('ok', r'1 stale write refused; A knew after \d+ ms'),
            'noeviction by hand redis': ('ok', kept % 'OOM'),
            'noeviction holdfast redis': ('ok', kept % 'HF_EBUSY')}


def deadlock():
    return {**each('one-by-one %s', 'fails',
                   'deadlock: both waited for each other until the limit'),
            **each('all-at-once %s', 'ok',
                   r'both got through, \d+ times each, one at a time'),
            'redis-setnx redis':
            ('fails', 'methodB waited for its own caller until the limit'),
            **each('not-reentrant %s', 'fails',
                   'methodB was refused at once: HF_EDEADLK'),
            **each('reentrant %s', 'ok',
                   'methodB ran within methodA, the count was 2')}


def limiter():
    return {'none': ('fails', '10 cars in 3 places'),
            'redis-counter redis': ('fails', '10 cars in 3 places'),
            **each('semaphore %s', 'ok', '10 cars, at most 3 inside')}


def door():
    return {'none': ('fails', '1 of 5 locked in'),
            **each('latch %s', 'ok', 'locked after the last of 5 had left')}


def replica_read():
    again = ('ok', 'sold by retry 1, with version 1')
    rows = {
        'plain replica':
            ('fails', 'oversold by 1: A was done, B still read 10'),
        'plain master': ('ok', 'sold exactly 2: B read 9'),
        'for-update replica':
            ('fails', 'oversold by 1: not locked at the master, B read 10'),
        'for-update master':
            ('ok', 'sold exactly 2: locked at the master, B read 9'),
        'version replica':
            ('fails', '5 retries, all refused, not oversold: '
                      'still reads version 0'),
        'version replica caught up': again,
        'version master': again,
    }
    return {name + ' mariadb': row for name, row in rows.items()}


def sql():
    waits = '%d selected, %d of 256 locked: another row had to wait'
    free = '%d selected, %d of 256 locked: another row did not have to wait'
    knows = ('ok', 'A knows its sale: from 10 to 9')
    rows = {
        'for-update no index': ('fails', waits % (1, 256)),
        'for-update no index, READ COMMITTED': ('ok', free % (1, 1)),
        'for-update index': ('ok', free % (1, 1)),
        'for-update index, its beginning': ('ok', free % (8, 8)),
        'for-update index, its end': ('fails', waits % (1, 256)),
        'for-update index, not equal': ('fails', waits % (255, 256)),
        'two-rows opposite order':
            ('fails', r'1 of 2 was rolled back: deadlock \(1213\)'),
        'two-rows same order': ('ok', 'both went through, one after another'),
        'beside-for-update plain select':
            ('fails', '1 sale lost: B did not wait, and read 10'),
        'beside-for-update for update':
            ('ok', 'no sale lost: B waited, and read 9'),
        'aba by value':
            ('fails',
             'the check passed, though the row had been changed 2 times'),
        'aba by version': ('ok', 'refused, as the row had been changed 2 times'),
        'retry same transaction':
            ('fails', '5 retries, all refused: still reads version 0'),
        'retry new transaction': ('ok', 'sold by retry 1, with version 1'),
        'retry READ COMMITTED': ('ok', 'sold by retry 1, with version 1'),
        'before-and-after one statement':
            ('fails', "A sees B's sale: from 9 to 8, not from 10 to 9"),
        'before-and-after transaction': knows,
        'before-and-after for update': knows,
    }
    return {name + ' mariadb': row for name, row in rows.items()}


SCENARIOS = {
    'oversell': (['--workers', '4', '--stock', '40', '--buyers', '80'],
                 oversell()),
    'contention': (['--seconds', '0.1', '--workers', '4'], contention()),
    'stampede': (['--readers', '20'], stampede()),
    'tickets': (['--seconds', '0.1', '--workers', '4', '--trains', '4'],
                tickets()),
    'herd': (['--waiters', '40'], herd()),
    'crash': ([], crash()),
    'slow': ([], slow()),
    'stall': ([], stall()),
    'misdelete': ([], misdelete()),
    'failover': ([], failover()),
    'eviction': ([], eviction()),
    'deadlock': ([], deadlock()),
    'limiter': ([], limiter()),
    'door': ([], door()),
    'replica-read': ([], replica_read()),
    'sql': ([], sql()),
}
