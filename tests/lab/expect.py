"""What each scenario has to show: the arguments that make it small, and for
each row its outcome and its verdict (a regular expression)."""

# The columns that tell which row it is.
KEYS = ('strategy', 'variant', 'backend', 'store', 'locks', 'workers')


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
    rows['redis-setnx redis'] = ('fails', r'oversold by \d+')
    rows['redis-spin redis'] = exact
    for store in 'file', 'redis', 'mariadb':
        for backend in 'shm', 'redis', 'zk':
            for order in 'fair', 'unfair':
                rows['lock %s %s %s' % (order, backend, store)] = exact
    return rows


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
    waits = r'%s of 256 rows locked: another row had to wait'
    free = r'1 of 256 rows locked: another row did not have to wait'
    knows = ('ok', 'A knows its sale: from 10 to 9')
    rows = {
        'for-update no index': ('fails', waits % '256'),
        'for-update no index, READ COMMITTED': ('ok', free),
        'for-update index': ('ok', free),
        'for-update index, like': ('fails', waits % r'\d+'),
        'for-update index, not equal': ('fails', waits % r'\d+'),
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
    'replica-read': ([], replica_read()),
    'sql': ([], sql()),
}
