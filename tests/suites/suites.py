#!/usr/bin/env python3
"""Runs the suites of a build directory: suites.py BUILD [OPTION...]

`meson test' starts as many tests as it has threads, however much each needs, and
does not repeat a test that failed. This runner starts the same tests, as
`meson introspect --tests' lists them, by these rules:

- Each processor has three slots, because most suites mostly wait. After each second in which
  the processors were idle for more than a third of the time, there is one slot more in all,
  up to nine for each processor. While the processors are busy, slots are removed again.
- A suite takes one slot; a suite of the Meson suite `heavy' (a JVM, a database,
  several servers) takes two; one of the Meson suite `computes' takes three.
- A suite with `is_parallel: false' runs by itself, after the others.

A suite that fails while others run is repeated by itself. The run fails if the
suite fails again, if it crashed, if its output shows a violation of exclusion
or of tokens, a leak or a sanitizer's report, or if at least three suites failed.
Each repeated suite is printed, and BUILD/meson-logs/again.txt gets its command,
its environment and the output of both runs.

The last line is "N passed, N failed". It counts cases where a suite names them
(TAP), else suites. What was skipped, ended too early or did not run counts as
failed.
"""
import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

OURS = os.sched_getaffinity(0)  # `taskset' may limit them
PROCESSORS = len(OURS)
SLOTS = 3  # for each processor
SLOTS_IDLE = 9  # the maximum for each processor, if it is idle
IDLE, BUSY = 0.35, 0.15  # idle shares of a second: above adds slots, below removes them
COST = {"heavy": 2, "computes": SLOTS}
MANY = 3  # this many failures are not chance
# These are defects even on a busy machine: what the checkers of tests/lib/history.h print, what the
# peers of tests/interop count, and what sanitizers report.
VIOLATION = re.compile(r"^(# )?(CLAIM|TOK|ME|LEAK)[ :]|(overlaps|stale)=[1-9]|"
                       r"(ERROR|WARNING): \w+Sanitizer|: runtime error: ", re.M)
SHARD = re.compile(r"^# shard \d+/(\d+): (\d+) of (\d+) cases$")


class Suite:
    def __init__(self, entry):
        self.name = entry["name"]
        self.groups = [s.split(":")[-1] for s in entry["suite"]]
        self.command = entry["cmd"]
        self.depends = entry["depends"]
        self.environment = entry["env"]
        self.directory = entry["workdir"]
        self.limit = entry["timeout"]
        self.priority = entry["priority"]
        self.by_itself = not entry["is_parallel"]
        self.is_tap = entry["protocol"] == "tap"
        self.cost = max(COST.get(group, 1) for group in self.groups)

    def title(self):
        """Returns the name as `meson test --list' prints it."""
        return "%s / %s" % ("+".join(self.groups), self.name)


class Result:
    """The output of a suite, and what follows from it."""

    def __init__(self, suite, ended, out, err, wall=0.0, cpu=0.0):
        self.suite, self.ended, self.out, self.err = suite, ended, out, err
        self.wall, self.cpu = wall, cpu
        self.good = self.bad = 0
        self.shard = None  # number of shards, cases here, cases in all
        self.told = []
        self.read_cases()
        if ended != "ok" and not self.bad:
            self.bad = 1
        if not self.good + self.bad:
            self.bad = suite.is_tap  # it ran no case
            self.good = not suite.is_tap
        if self.bad:
            self.told += err.splitlines()[-60:]

    def read_cases(self):
        """Reads the TAP. The comments of a case come before its verdict or after it."""
        notes, is_bad, plan = [], False, None
        for line in self.out.splitlines():
            shard = SHARD.match(line)
            if shard:
                self.shard = tuple(map(int, shard.groups()))
            elif line.startswith("#"):
                (self.told if is_bad else notes).append(line)
            elif re.match(r"1\.\.\d+", line):
                plan = int(re.match(r"1\.\.(\d+)", line).group(1))
            elif re.match(r"(not )?ok\b", line):
                is_bad = bool(re.match(r"not |.*# *skip", line, re.I))
                if is_bad:
                    self.told += notes + [line]
                notes = []
                self.bad += is_bad
                self.good += not is_bad
        if plan is not None and plan != self.good + self.bad:
            self.told.append("%d cases of %d" % (self.good + self.bad, plan))
            self.bad += 1

    def is_no_chance(self):
        return bool(self.ended.startswith("signal") or
                    VIOLATION.search(self.out) or VIOLATION.search(self.err))

    def tell(self, word="FAILED"):
        print("%s: %s (%s, %d of %d cases)" % (word, self.suite.name,
                                               self.ended, self.bad,
                                               self.good + self.bad))
        for line in self.told:
            print("    " + line)


class Runner:
    def __init__(self, options, total):
        self.options = options
        self.total, self.done = total, 0
        self.change = threading.Condition()
        self.running = set()  # pids
        self.slots = options.slots or SLOTS * PROCESSORS
        self.used = 0
        self.results = []
        self.over = False

    def start(self, suite):
        base = os.path.join(self.options.logs, suite.name)
        environment = dict(os.environ, **suite.environment)
        with open(base + ".out", "wb") as out, open(base + ".err", "wb") as err:
            # pylint: disable=consider-using-with
            return subprocess.Popen(suite.command, env=environment,
                                    cwd=suite.directory or self.options.build,
                                    stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=err, start_new_session=True)

    def read(self, suite, ending):
        path = os.path.join(self.options.logs, suite.name + ending)
        with open(path, encoding="utf-8", errors="replace") as text:
            return text.read()

    def run(self, suite):
        began, late = time.monotonic(), threading.Event()

        def give_up():
            late.set()
            kill_group(process.pid, signal.SIGKILL)

        try:
            process = self.start(suite)
        except OSError as error:
            return Result(suite, "not started", "", str(error))
        with self.change:
            self.running.add(process.pid)
        timer = threading.Timer(suite.limit * self.options.patience, give_up)
        timer.start()
        # Until the process is reaped, its pid names no other process.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        timer.cancel()
        timer.join()
        kill_group(process.pid, signal.SIGKILL)  # processes that it left behind
        with self.change:
            self.running.discard(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status  # so that Popen does not wait for it
        code = os.waitstatus_to_exitcode(status)
        ended = ("timeout" if late.is_set() else "ok" if code == 0 else
                 "signal %d" % -code if code < 0 else "exit %d" % code)
        return Result(suite, ended, self.read(suite, ".out"),
                      self.read(suite, ".err"), time.monotonic() - began,
                      usage.ru_utime + usage.ru_stime)

    def note(self, result):
        with self.change:
            self.done += 1
            self.results.append(result)
            print("%3d/%d %-6s %-32s %5.1f s %6.1f s CPU %4d cases" % (
                self.done, self.total, "FAILED" if result.bad else "ok",
                result.suite.name, result.wall, result.cpu,
                result.good + result.bad), flush=True)

    def next_of(self, waiting):
        """Returns the first suite that may start now, or None. The caller holds the
        condition."""
        for suite in waiting:
            if self.used + suite.cost <= self.slots or not self.used:
                waiting.remove(suite)
                return suite
        return None

    def work(self, waiting):
        while True:
            with self.change:
                suite = None
                while waiting and not self.over:
                    suite = self.next_of(waiting)
                    if suite:
                        break
                    self.change.wait()
                if not suite:
                    return
                self.used += suite.cost
            self.note(self.run(suite))
            with self.change:
                self.used -= suite.cost
                self.change.notify_all()

    def adapt(self, ended):
        """Adjusts the number of slots each second to how idle the processors are, until the
        event is set."""
        before = processor_times()
        while not ended.wait(1):
            now = processor_times()
            total = now[1] - before[1]
            idle = (now[0] - before[0]) / total if total else 0
            before = now
            with self.change:
                self.slots = slots_after(self.slots, self.used, idle)
                self.change.notify_all()

    def beside_each_other(self, suites):
        waiting = sorted(suites, key=lambda s: -s.priority)
        ended = threading.Event()
        if not self.options.slots:
            threading.Thread(target=self.adapt, args=(ended,),
                             daemon=True).start()
        threads = [threading.Thread(target=self.work, args=(waiting,),
                                    daemon=True)
                   for _ in range(self.options.slots or
                                  SLOTS_IDLE * PROCESSORS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()

    def run_all(self, suites):
        self.beside_each_other([s for s in suites if not s.by_itself])
        for suite in suites:
            if suite.by_itself:
                self.note(self.run(suite))

    def end(self):
        """Ends the running suites and starts no more."""
        with self.change:
            self.over = True
            for pid in self.running:
                kill_group(pid, signal.SIGTERM)


def processor_times():
    """Returns the time in which the processors were idle, or ran processes with a
    positive nice value, which give way to suites; and the time of all processors."""
    idle = total = 0
    with open("/proc/stat", encoding="ascii") as stat:
        for line in stat:
            name, *ticks = line.split()[:9]
            if name[:3] == "cpu" and name[3:] and int(name[3:]) in OURS:
                _, nice, _, *rest = map(int, ticks)
                idle += rest[0] + rest[1] + (nice if os.nice(0) <= 0 else 0)
                total += sum(map(int, ticks))
    return idle, total


def slots_after(slots, used, idle):
    """Returns the number of slots for the next second; `idle' is the idle share of the last
    second."""
    least, most = SLOTS * PROCESSORS, SLOTS_IDLE * PROCESSORS
    if idle > IDLE and used > slots - SLOTS:  # a heavy suite may need two slots
        return min(slots + 1, most)
    return max(min(slots - 1, used), least) if idle < BUSY else slots


def kill_group(pid, number):
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def log_again(path, first, second):
    suite = first.suite
    with open(path, "a", encoding="utf-8") as log:
        log.write("==== %s: %s beside others, %s by itself\n%s\n" % (
            suite.name, first.ended, second.ended,
            " ".join(["%s=%s" % pair for pair in suite.environment.items()] +
                     suite.command)))
        for title, result in (("beside others", first), ("by itself", second)):
            log.write("---- %s, stdout\n%s---- %s, stderr\n%s" % (
                title, result.out, title, result.err))


def look_again(runner, log):
    """Repeats what failed while other suites ran. Returns the results that count."""
    failed = [r for r in runner.results if r.bad]
    again = [r for r in failed if not r.suite.by_itself and runner.total > 1]
    final = [r for r in runner.results if r not in again]
    for first in again:
        print("%s failed beside others; again, by itself:" % first.suite.name,
              flush=True)
        second = runner.run(first.suite)
        log_again(log, first, second)
        if second.bad:
            final.append(second)
            print("    it failed again")
        elif first.is_no_chance():
            final.append(first)
            print("    it passed, but it counts: it had crashed, or reported a "
                  "violation, a leak or a sanitizer's finding")
        elif len(failed) >= MANY:
            final.append(first)
            print("    it passed, but %d suites failed: that is no chance"
                  % len(failed))
        else:
            final.append(second)
            print("    it passed: not counted. Both outputs are in %s" % log)
            first.tell("    had failed")
    return final


def shards_lack(results):
    """Returns the suites of which all shards have run, but not all cases."""
    found = {}
    for result in results:
        if result.shard:
            name = re.sub(r"-\d+$", "", result.suite.name)
            found.setdefault(name, []).append(result.shard)
    return [(name, sum(s[1] for s in shards), shards[0][2])
            for name, shards in found.items()
            if len(shards) == shards[0][0] and
            sum(s[1] for s in shards) != shards[0][2]]


def verdict(results, total):
    good = sum(r.good for r in results)
    bad = sum(r.bad for r in results)
    for result in results:
        if result.bad:
            result.tell()
    if len(results) < total:
        print("FAILED: %d of %d suites did not run" % (total - len(results),
                                                       total))
        bad += total - len(results)
    for name, had, cases in shards_lack(results):
        print("FAILED: %s: %d of %d cases are in its shards" % (name, had,
                                                                cases))
        bad += 1
    return good, bad


def introspect(what, build):
    return json.loads(subprocess.run(["meson", "introspect", what, build],
                                     check=True, stdout=subprocess.PIPE).stdout)


def chosen(options):
    return [s for s in map(Suite, introspect("--tests", options.build))
            if (not options.only or set(options.only) & set(s.groups)) and
            not set(options.without) & set(s.groups) and
            (options.pattern.search(s.title()) or
             options.pattern.search(s.name))]


def targets_of(suites, build):
    """Returns the targets that ninja has to build for the suites."""
    files = {target["id"]: target["filename"]
             for target in introspect("--targets", build)}
    return sorted({os.path.relpath(path, os.path.abspath(build))
                   for suite in suites for target in suite.depends
                   for path in files[target]})


def pattern_of(text):
    try:
        return re.compile(text)
    except re.error as why:
        sys.exit("`%s' is not a regular expression: %s" % (text, why))


def options_of(argv):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("build")
    parser.add_argument("--only", metavar="GROUP", action="append", default=[])
    parser.add_argument("--without", metavar="GROUP", action="append",
                        default=[])
    parser.add_argument("--pattern", default=re.compile("."), type=pattern_of)
    parser.add_argument("--patience", type=float, default=1.0,
                        help="what time limits are multiplied by")
    parser.add_argument("--targets", action="store_true",
                        help="run nothing; print what ninja has to build")
    parser.add_argument("--slots", type=int, help="that many, whatever the "
                        "processors do")
    options = parser.parse_args(argv)
    options.logs = os.path.join(options.build, "meson-logs", "suites")
    os.makedirs(options.logs, exist_ok=True)
    return options


def main(argv):
    options = options_of(argv)
    log = os.path.join(options.build, "meson-logs", "again.txt")
    suites = chosen(options)
    if options.targets:
        print("\n".join(targets_of(suites, options.build)))
        return 0
    if not suites:
        print("no suite matches `%s'; `meson test -C %s --list' lists all" %
              (options.pattern.pattern, options.build))
        print("0 passed, 1 failed")
        return 1
    if os.path.exists(log):
        os.remove(log)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    began = time.monotonic()
    runner = Runner(options, len(suites))
    try:
        runner.run_all(suites)
        results = look_again(runner, log)
    except KeyboardInterrupt:
        runner.end()
        print("interrupted")
        return 130
    good, bad = verdict(results, len(suites))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("%d suite%s in %.0f s, with %.0f s of processor time" % (
        len(suites), "s"[:len(suites) != 1], time.monotonic() - began,
        usage.ru_utime + usage.ru_stime))
    print("%d passed, %d failed" % (good, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
