"""Runs cases that are named after what they show, and prints TAP."""

import time
import traceback


def of(names, chosen=()):
    """Returns the functions test_... of a program, which passes its globals() as `names', in
    their order. With `chosen', returns only those whose names without test_ are in `chosen'."""
    found = [names[name] for name in names if name.startswith('test_')]
    return [case for case in found if not chosen or title(case) in chosen]


def title(case):
    return case.__name__.removeprefix('test_')


def run(cases):
    print('1..%d' % len(cases), flush=True)
    failed = 0
    for number, case in enumerate(cases, 1):
        name = title(case).replace('_', ' ')
        try:
            case()
            print('ok %d - %s' % (number, name), flush=True)
        except Exception:
            failed += 1
            for line in traceback.format_exc().splitlines():
                print('# ' + line)
            print('not ok %d - %s' % (number, name), flush=True)
    return 1 if failed else 0


def until(condition):
    """Waits until the condition is true; returns its value."""
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end, 'never came true'
        time.sleep(0.01)
    return found
