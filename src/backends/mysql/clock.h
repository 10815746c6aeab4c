/*
 * The server's clock, by which leases and requests end: its last known time,
 * and from it the time at which a request becomes void. The estimate is on the
 * safe side: a request becomes void too early rather than too late. The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_CLOCK_H
#define HF_MYSQL_CLOCK_H

#include "mysql.h"

#define MY_NOW "utc_timestamp(6)"
/* A time in the past; not 0, which some values of sql_mode refuse. */
#define MY_PAST "'1970-01-02'"
/* The server's clock, in us since 1970. */
#define MY_CLOCK "timestampdiff(microsecond,'1970-01-01',utc_timestamp(6))"

/* True if a lease ends later than its own length from now, which means that the
 * server's clock was set back. sysdate() is the time at which the row is read,
 * in the time zone of the session. Behind a proxy that shares sessions this may
 * not be UTC; then the value is always false. */
#define MY_ODD                                                                 \
    "(@@session.time_zone='+00:00' and "                                       \
    "lease_until>sysdate(6)+interval lease_us+10000000 microsecond)"

/* Notes the server's clock, which an answer that has just arrived contains. */
void hf__my_clock(struct mysql *, uint64_t us);
/* Returns the time on the server's clock from which on the request is void. */
uint64_t hf__my_late(const struct mysql *, const struct hf__req *);

#endif
