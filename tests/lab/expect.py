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


SCENARIOS = {
    'oversell': (['--workers', '4', '--stock', '40', '--buyers', '80'],
                 oversell()),
}
