"""Runs cases that are named after what they show, and prints TAP."""

import traceback


def run(cases):
    print('1..%d' % len(cases), flush=True)
    failed = 0
    for number, case in enumerate(cases, 1):
        name = case.__name__.replace('_', ' ')
        try:
            case()
            print('ok %d - %s' % (number, name), flush=True)
        except Exception:
            failed += 1
            for line in traceback.format_exc().splitlines():
                print('# ' + line)
            print('not ok %d - %s' % (number, name), flush=True)
    return 1 if failed else 0
