/*
 * The server's clock, which decides when holds expire and when requests become
 * void. This file keeps the last known time of that clock, and derives from it
 * the time after which the server must not execute a request (the request is
 * then void). The derived time is on the safe side: a request becomes void too
 * early rather than too late. The client's mutex is held.
 */
#ifndef HF_MYSQL_CLOCK_H
#define HF_MYSQL_CLOCK_H

#include "mysql.h"

#define MY_NOW "utc_timestamp(6)"
/* A time in the past. It is not 0, because some values of sql_mode refuse 0. */
#define MY_PAST "'1970-01-02'"
/* The server's clock, in microseconds since 1970. */
#define MY_CLOCK "timestampdiff(microsecond,'1970-01-01',utc_timestamp(6))"

/* True if the time left until lease_until exceeds lease_us by more than 10 s,
 * which means that the server's clock was set back. sysdate() is the time at
 * which the row is read, in the time zone of the session; lease_until is in
 * UTC. The client sets the time zone to UTC, but a proxy that shares
 * connections may use a session with another time zone. In such a session the
 * condition is false. */
#define MY_ODD                                                                 \
    "(@@session.time_zone='+00:00' and "                                       \
    "lease_until>sysdate(6)+interval lease_us+10000000 microsecond)"

/* Notes the server's clock, as reported by an answer that has just arrived. */
void hf__my_clock(struct mysql *, uint64_t us);
/* Returns the time, by the server's clock, at which the request becomes
 * void. */
uint64_t hf__my_late(const struct mysql *, const struct hf__req *);

#endif
