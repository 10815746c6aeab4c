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
/* A time in the past; some values of sql_mode refuse 0. */
#define MY_PAST "'1970-01-02'"
/* The server's clock, in us since 1970. */
#define MY_CLOCK "timestampdiff(microsecond,'1970-01-01',utc_timestamp(6))"

/* Is the lease odd? One that ends later than its own length from now means that
 * the server's clock was set back. sysdate() is the time at which the row is
 * read, in the time zone of the session. Behind a proxy that shares sessions it
 * may be another time zone: then no lease counts as odd. */
#define MY_ODD                                                                 \
    "(@@session.time_zone='+00:00' and "                                       \
    "lease_until>sysdate(6)+interval lease_us+10000000 microsecond)"

/* An answer has arrived that contains the server's clock. */
void hf__my_clock(struct mysql *, uint64_t us);
/* The time on that clock from which on the request is void. */
uint64_t hf__my_late(const struct mysql *, const struct hf__req *);

#endif
