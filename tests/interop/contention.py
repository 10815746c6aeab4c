"""Checks that processes of two libraries on one lock never overlap and never starve."""

import os
import struct
import time

from peers import Failure, Violation, check, exclude, numbers

EACH = 4          # processes of a side
TOTAL = 10000     # entries of all processes
FEW = 2000
STAY_US = 50      # time inside: some round trips
LONGEST_S = 10    # longest wait; a lost wake-up costs a lease, of 30 s
PERMITS = 3


class Tally:
    """The results of the processes of one side."""

    def __init__(self, answers):
        seen = [numbers(answer) for answer in answers]
        self.entered = sum(one['entered'] for one in seen)
        self.violations = sum(one['overlaps'] + one['stale'] for one in seen)
        self.longest_s = max(one['longest_us'] for one in seen) / 1e6
        self.least = min(one['entered'] for one in seen)


def make_file(world, name):
    file = os.path.join(world.server.dir.name, name)
    with open(file, 'wb') as f:
        f.write(bytes(64))
    return file


def finish(world, file, total, sides, start, quiet=False):
    """Collects and checks the answers of all processes."""
    answers = {side: [peer.answer() for peer in peers]
               for side, peers in sides.items()}
    seconds = time.monotonic() - start
    wrong = [f'{side}: {line}' for side, lines in answers.items()
             for line in lines if not line.startswith('done ')]
    check(not wrong, '; '.join(wrong))
    tallies = {side: Tally(lines) for side, lines in answers.items()}
    if not quiet:
        report(world, tallies, seconds)
    judge(file, total, tallies)
    return tallies, seconds


def lock_of(name, side, split):
    return name + side.replace(' ', '') if split else name


def contend(world, kind, sides, total=TOTAL, stay_us=STAY_US, limit=0,
            name=None, split=False, quiet=False):
    """Makes all processes enter the region. sides: name -> processes. Returns the
    tallies by side, and the seconds. If split is set, each side has its own lock,
    which protects nothing."""
    name = name or world.name()
    file = make_file(world, name)
    start = time.monotonic()
    for side, peers in sides.items():
        for peer in peers:
            peer.tell('contend', kind, lock_of(name, side, split), file, total,
                      stay_us, limit)
    return finish(world, file, total, sides, start, quiet)


def meet(world, other, total=TOTAL, split=False):
    """Makes all processes count a latch down and wait for it, repeatedly, until they have
    counted down `total' times together. If split is set, each side has its own latch, and
    does not wait for the other side."""
    sides = mixed(world, other)
    name, processes = world.name(), sum(map(len, sides.values()))
    file, start = make_file(world, name), time.monotonic()
    first = {lock_of(name, side, split): peers[0]
             for side, peers in sides.items()}
    count = processes // len(first)
    for latch, peer in first.items():
        peer.expect('set', 'latch', 'set', f'{latch}-0', count)
    for i, (side, peer) in enumerate(
            (side, peer) for side, peers in sides.items() for peer in peers):
        peer.tell('rounds', lock_of(name, side, split), file,
                  total // processes, STAY_US, i % count, count, processes)
    finish(world, file, total, sides, start)
    for latch in first:
        check(world.server.ask('EXISTS', *(f'{latch}-{i}' for i in range(3)))
              == 0, 'a latch is not 0')


def report(world, tallies, seconds):
    for side, tally in tallies.items():
        world.note(f'{side}: {tally.entered} entered, each at least '
                   f'{tally.least}, longest wait {tally.longest_s:.3f} s')
    entered = sum(tally.entered for tally in tallies.values())
    world.note(f'{entered / seconds:.0f}/s')


def judge(file, total, tallies):
    with open(file, 'rb') as f:
        owner, exclusive, _, inside, shared = struct.unpack('=5q', f.read(40))
    entered = sum(tally.entered for tally in tallies.values())
    violations = {side: tally.violations for side, tally in tallies.items()}
    if any(violations.values()) or exclusive + shared != entered:
        raise Violation(f'{violations}; {exclusive} + {shared} entries counted '
                        f'inside, {entered} by those who entered')
    exclude(owner == 0 and inside == 0, 'a process is still inside')
    # Several processes may find at the same time that one shared entry is left, and then make one
    # each.
    check(total <= entered < total + 16, f'{entered} entries')
    for side, tally in tallies.items():
        check(tally.entered > 0, f'{side} never entered')
        check(tally.longest_s < LONGEST_S,
              f'{side}: waited {tally.longest_s:.1f} s')


def mixed(world, other, ours='ours'):
    return {other: world.pool(other, EACH), ours: world.pool(ours, EACH)}


def together(world, kind, other, ours='ours', **more):
    return contend(world, kind, mixed(world, other, ours), **more)


def seen(world, run, *args, **more):
    """Checks that the run ends with a violation if nothing protects the region: a
    harness that never fails proves nothing."""
    try:
        run(world, *args, split=True, **more)
    except Violation:
        return
    raise Failure('two locks protect as well as one')
