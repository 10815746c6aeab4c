/*
 * What bench/ratios measures. Each function runs for about RUN_MS and returns a
 * figure, or a negative number after printing what failed. A pair is one
 * acquire and its release.
 */
#ifndef HF_BENCH_RATIOS_H
#define HF_BENCH_RATIOS_H

#include "../cli/shared/contend.h"
#include "../cli/shared/contender.h"
#include "../cli/shared/values.h"

enum { RUN_MS = 300, ROUNDS = 5 };
/* Eight processes take turns: each holds the lock for TURNS_HOLD_MS, and then
 * pauses for TURNS_THINK_MS. */
enum { TURNS_MS = 2000, TURNS_HOLD_MS = 2, TURNS_THINK_MS = 10 };

/* Measures one figure. `url' is the URL of the lock or of the server. */
typedef double measure_fn(const char *url);

/* Prints what failed. */
void complain(const char *what, int code, const hf_error *err);

/* Calls step(), which makes 1000 pairs and returns 0, or -1 after printing what
 * failed. Repeats this until RUN_MS have passed. Returns nanoseconds per
 * pair. */
double ns_per_pair(int (*step)(void *arg), void *arg);

/* floor_local.c: floor_robust_mutex and floor_flock in nanoseconds per pair,
 * floor_flock_four in pairs per second, floor_futex in nanoseconds per
 * hand-over. */
measure_fn floor_robust_mutex, floor_flock, floor_flock_four, floor_futex;

/* floor_redis.c: holdfast's own requests, sent by hand, in nanoseconds. */
measure_fn floor_redis_two_trips, floor_redis_one_trip, floor_redis_acquire,
    floor_redis_handover, floor_redis_reading;

/* floor_zk.c: holdfast's own requests, sent by hand, and Curator in one and in
 * eight processes, in nanoseconds. zk_waiting_nodes counts the nodes that the
 * waiting threads of one client create. */
measure_fn floor_zk_waited, floor_zk_nowait, floor_curator_pair,
    floor_curator_eight, zk_waiting_nodes;

/* floor_etcd.c: holdfast's own two calls, sent by hand with holdfast's gRPC
 * client and on a blocking socket, and Go in one and in eight processes, in
 * nanoseconds. Of a client that waits for many names: etcd_many_cpu is the
 * processor time in per cent of a core, etcd_many_streams the number of
 * streams. etcd_start() starts the servers, and returns 0 or -1. */
measure_fn floor_etcd_grpc, floor_etcd_bare, floor_go_pair, floor_go_eight,
    etcd_many_cpu, etcd_many_streams;
int etcd_start(const char **url, const char **current);
void etcd_end(void);

/* floor_redlock.c: holdfast's own requests, sent by hand to five servers, and
 * other libraries, in nanoseconds. For eight processes of these libraries that
 * take turns: ..._turns in pairs per second, and ..._p99, the 99th percentile
 * of their waits, in milliseconds. redlock_start() starts the servers, and
 * returns 0 or -1. */
measure_fn floor_redlock, floor_redsync_pair, floor_node4_pair,
    floor_node5_pair;
measure_fn floor_redsync_turns, floor_node4_turns;
measure_fn floor_redsync_p99, floor_node4_p99;
int redlock_start(const char **url);
void redlock_end(void);

/* floor_mysql.c:
 *
 * floor_mysql_packets sends the two packets of a pair by hand,
 * floor_mysql_statements only the part of them that is about the row:
 * nanoseconds per pair.
 *
 * Eight processes on one lock, by hand and with holdfast: pairs per second, and
 * the mean wait in microseconds. my_longest_wait() returns the longest wait, in
 * microseconds, of the run whose mean was measured last.
 *
 * The processor time in per cent of a core: my_waiters_cpu for 100 waiting
 * processes, the holder and the server together; my_idle_cpu for the server
 * only.
 *
 * my_held_connections counts the connections of a process with 200 held locks.
 * my_start() starts the server, and returns 0 or -1. */
measure_fn floor_mysql_packets, floor_mysql_statements;
measure_fn floor_mysql_eight, floor_mysql_mean_wait;
measure_fn my_eight, my_mean_wait, my_longest_wait;
measure_fn my_waiters_cpu, my_idle_cpu, my_held_connections;
int my_start(const char **url);
void my_end(void);

/* ours.c */
/* Nanoseconds per pair, with the backend's default fairness. */
measure_fn ours_pair_default;
measure_fn ours_pair, ours_pair_nowait; /* nanoseconds */
measure_fn ours_pair_fair, ours_pair_fair_nowait;
measure_fn ours_pair_read, ours_pair_write, ours_pair_semaphore;
measure_fn ours_four_unfair;                       /* pairs per second */
measure_fn ours_handover_two;                      /* nanoseconds */
measure_fn ours_eight_fair, ours_eight_unfair;     /* nanoseconds per pair */
measure_fn ours_threads_fair, ours_threads_unfair; /* pairs per second */
measure_fn ours_threads_reading;
measure_fn ours_eight_reading; /* nanoseconds per pair */
measure_fn ours_turns;         /* pairs per second */
measure_fn ours_turns_p99;     /* milliseconds */

/* scale.c */
measure_fn scale_handle_bytes; /* bytes of an idle handle */
measure_fn scale_renewal_cpu;  /* per cent of a core, scaled to a TTL of 30 s */
measure_fn scale_waiters_cpu;  /* per cent of a core, 1000 processes */

#endif
