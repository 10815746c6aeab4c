"""What the peers in Python share. A peer reads the commands of peers.py, one per line."""

import sys
import time


def serve(verbs):
    """Answers each command with what the function of that name returns."""
    print('ready', flush=True)
    for line in sys.stdin:
        verb, *args = line.split()
        try:
            answer = verbs[verb](*args)
        except Exception as e:
            answer = f'failed {e!r}'
        print(answer, flush=True)


def us_since(then):
    return round((time.monotonic() - then) * 1e6)


def held_since(then):
    """Returns the answer to a hold whose wait began at the time `then'."""
    return f'held token=0 waited_us={us_since(then)}'
