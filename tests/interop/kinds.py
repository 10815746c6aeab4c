"""Which kinds are tried, and what becomes of a name that is used as two."""

from peers import check

# The kinds that ours has; cases of another one are left out.
OURS = {'mutex': True, 'rwlock': False, 'semaphore': False, 'latch': False}


def declared(world):
    [ours] = world.pool('ours', 1)
    for kind, tried in OURS.items():
        has = ours.ask('caps', kind)
        check((has != 'caps 0') == tried, f'{kind}: {has}, but in the table '
              f'of kinds.py {tried}')


def refused(world, kind):
    """Redisson uses the name as kind; our mutex is refused, and harms nothing."""
    [redisson], [ours] = world.pool('redisson', 1), world.pool('ours', 1)
    name = world.name()
    if kind in ('semaphore', 'plain'):
        redisson.expect('set', 'permits', kind, name, 1)
    redisson.expect('held', 'hold', kind, name, 0, -1)
    for ours_kind in 'unfair', 'fair':
        ours.expect('failed HF_EMISMATCH', 'hold', ours_kind, name, 0, 0)
        ours.expect('failed HF_EMISMATCH', 'hold', ours_kind, name, 0, 5000)
    redisson.expect('dropped', 'drop')
    redisson.expect('held', 'hold', kind, name, 0, 0)
    redisson.expect('dropped', 'drop')


CASES = [
    ('mutex', 'kinds: what ours declares is tried', declared),
    *[('mutex', f'kinds: our mutex on a name that is a {what} of Redisson',
       lambda world, kind=kind: refused(world, kind))
      for kind, what in [('read', 'rreadwritelock, read'),
                         ('write', 'rreadwritelock, written'),
                         ('semaphore', 'rpermitexpirablesemaphore'),
                         ('plain', 'rsemaphore')]],
]
