#!/usr/bin/env python3
"""What `./dev soak' runs.

soak.py BUILD [MINUTES] [--seed N] [--only PATTERN]
    runs the fault matrix until the time is up; the programs' seeds follow from one seed
soak.py BUILD shards [N] [PATTERN]
    runs every suite N times, with a busy loop for each CPU; lists those that failed

A program of the matrix runs for a short while, and prints what it has done
(tests/lib/tally.h); it exits with 0 if it found no violation of the contract.
^C lets running programs finish and clean up; a second ^C kills them.
"""
import argparse
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "suites"))
import suites  # pylint: disable=wrong-import-position

COUNTS = ["grants", "kills", "stops", "faults", "violations"]
TALLY = re.compile("# tally: " + ", ".join(r"(\d+) " + c for c in COUNTS))
SLICE_S = 20  # how long a program with a server runs
PATIENCE_S = 300  # a program that runs for longer hangs
PROCESSORS = os.cpu_count() or 1


def minutes(text):
    """Returns a positive number of minutes."""
    number = float(text)
    if not number > 0:
        raise ValueError(text)
    return number


def matrix(build):
    """Returns {name: function}. A function gives the command for a seed and a time in
    seconds."""
    def at(path):
        return os.path.join(build, "tests", path)

    def on(url):
        return lambda seed, s: [at("soak/soak"), url, "--seed", str(seed),
                                "--seconds", str(s)]

    found = {}
    for url in subprocess.run([at("soak/soak"), "--names"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split():
        found[url] = on(url)
    found["shm-kill"] = lambda seed, s: [at("faults/shm_kill"), "200", str(seed)]
    found["shm-flips"] = lambda seed, s: [at("faults/shm_flips"), "random",
                                          str(seed), "50"]
    found["sim"] = lambda seed, s: [at("sim/sim"), "--seed", str(seed), "--runs",
                                    "200"]
    return found


class Run:
    """A running program of the matrix."""

    def __init__(self, name, command):
        self.name = name
        self.command = command
        self.began = time.monotonic()
        self.hangs = False
        # pylint: disable=consider-using-with
        self.out = tempfile.TemporaryFile("w+", encoding="utf-8",
                                          errors="replace")
        # The program has its own session, so that a ^C at the terminal reaches
        # neither the program nor its servers.
        self.process = subprocess.Popen(command, stdout=self.out,
                                        stderr=subprocess.STDOUT,
                                        start_new_session=True)

    def over(self):
        if time.monotonic() - self.began > PATIENCE_S:
            self.hangs = True
            self.kill()
        return self.process.poll() is not None

    def end(self):
        """Asks a program that runs for a given time to end; the others end soon anyway."""
        if "--seconds" in self.command:
            self.process.terminate()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def counts(self):
        found = TALLY.findall(self.text())
        return [int(n) for n in found[-1]] if found else [0] * len(COUNTS)


class Progress:
    """A line that is rewritten; without a terminal, a new line each minute."""

    def __init__(self):
        self.live = sys.stdout.isatty()
        self.last = time.monotonic()

    def show(self, text):
        if self.live:
            print("\r\033[K" + text, end="", flush=True)
        elif time.monotonic() - self.last >= 60:
            self.last = time.monotonic()
            print(text, flush=True)

    def say(self, text):
        print(("\r\033[K" if self.live else "") + text, flush=True)


class Soak:
    def __init__(self, programs, seconds, seed):
        self.programs = programs
        self.seconds = seconds
        self.seed = seed
        self.began = time.monotonic()
        self.total = {name: [0] * (len(COUNTS) + 1) for name in programs}
        self.progress = Progress()
        self.asked = 0
        self.started = 0
        self.running = []

    def left(self):
        return self.seconds - (time.monotonic() - self.began)

    def start(self):
        name = list(self.programs)[self.started % len(self.programs)]
        # The program's rounds use this seed and the following ones.
        seed = (self.seed + self.started * 1000) % 2**63
        self.started += 1
        slice_s = max(1, round(min(SLICE_S, self.left())))
        self.running.append(Run(name, self.programs[name](seed, slice_s)))

    def take(self, run):
        counts = run.counts()
        status = run.process.returncode
        stopped = self.asked and not run.hangs and status in (
            -signal.SIGTERM, -signal.SIGKILL)
        if status and not stopped:
            counts[-1] = max(counts[-1], 1)
            self.progress.say("VIOLATION: %s (status %d); its output:"
                              % (run.name, status))
            for line in run.text().splitlines()[-60:]:
                self.progress.say("    " + line)
            self.progress.say("    seed %d; the same again: %s"
                              % (self.seed, shlex.join(run.command)))
        for i, n in enumerate([1] + counts):
            self.total[run.name][i] += n
        run.out.close()

    def sum(self):
        return [sum(column) for column in zip(*self.total.values())]

    def line(self):
        whole = self.sum()
        for run in self.running:
            whole = [a + b for a, b in zip(whole, [0] + run.counts())]
        return "%d of %d s: " % (self.seconds - max(0, self.left()),
                                 self.seconds) + ", ".join(
            "%d %s" % (n, c) for n, c in zip(whole[1:], COUNTS))

    def summary(self):
        head = ["", "runs"] + COUNTS
        rows = [[name] + row for name, row in self.total.items()]
        rows.append(["all"] + self.sum())
        self.progress.say(" ".join(
            "%-14s" % head[0] if i == 0 else "%11s" % h
            for i, h in enumerate(head)))
        for row in rows:
            self.progress.say("%-14s" % row[0] + "".join(
                " %11d" % n for n in row[1:]))

    def interrupt(self, *_):
        self.asked += 1
        for run in self.running:
            if self.asked > 1:
                run.kill()
            else:
                run.end()

    def play(self):
        signal.signal(signal.SIGINT, self.interrupt)
        signal.signal(signal.SIGTERM, self.interrupt)
        self.progress.say("seed %d" % self.seed)
        while self.running or (self.left() > 0 and not self.asked):
            while (len(self.running) < 2 * PROCESSORS and self.left() > 0
                   and not self.asked):
                self.start()
            time.sleep(0.2)
            for run in [r for r in self.running if r.over()]:
                self.running.remove(run)
                self.take(run)
            self.progress.show(self.line())
        self.summary()
        violations = self.sum()[-1]
        self.progress.say("seed %d: %s" % (
            self.seed, "%d violations" % violations if violations
            else "no violation"))
        return 1 if violations else 0


def one_pass(options, chosen, ran, failed):
    """Runs all the chosen suites once."""
    runner = suites.Runner(options, len(chosen))
    try:
        runner.run_all(chosen)
    finally:
        runner.end()
    for result in runner.results:
        name = result.suite.name
        ran[name] = ran.get(name, 0) + 1
        if result.bad:
            failed.setdefault(name, []).extend(
                [line for line in result.told if line.startswith("not ok")] or
                [result.ended])


def tell_shards(names, ran, failed):
    for name in sorted(failed):
        print("FAILED: %s, in %d runs:" % (name, ran[name]))
        for case in sorted(set(failed[name])):
            print("    %d times: %s" % (failed[name].count(case), case))
    print("%d suites, each at least %d times; %d of them failed"
          % (len(names), min(ran.get(n, 0) for n in names), len(failed)))
    return 1 if failed or len(ran) < len(names) else 0


def shards(build, times, pattern):
    options = suites.options_of([build, "--pattern", pattern])
    chosen, ran, failed = suites.chosen(options), {}, {}
    names = [suite.name for suite in chosen]
    if not chosen:
        print("no test matches '%s'" % pattern)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # pylint: disable=consider-using-with
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
            for _ in range(PROCESSORS)]
    try:
        for i in range(times):
            print("%d of %d, beside %d busy loops: %d suites, %d failed"
                  % (i + 1, times, len(busy), len(names), len(failed)),
                  flush=True)
            one_pass(options, chosen, ran, failed)
    except KeyboardInterrupt:
        pass
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    return tell_shards(names, ran, failed)


def main(argv):
    if argv[1:2] == ["shards"]:
        times = int(argv[2]) if argv[2:] else 100
        return shards(argv[0], times, argv[3] if argv[3:] else ".")
    parser = argparse.ArgumentParser(prog="./dev soak", add_help=False)
    parser.add_argument("minutes", nargs="?", type=minutes, default=10)
    parser.add_argument("--seed", type=int,
                        default=os.environ.get("SEED") or
                        random.SystemRandom().randrange(2**31))
    parser.add_argument("--only", default=".", metavar="PATTERN")
    args = parser.parse_args(argv[1:])
    programs = {name: run for name, run in matrix(argv[0]).items()
                if re.search(args.only, name)}
    if not programs:
        parser.error("no program matches '%s'" % args.only)
    return Soak(programs, args.minutes * 60, int(args.seed)).play()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
