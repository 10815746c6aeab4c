-- For ./dev lint, which checks the complete scripts in build/.
std = {
    globals = {},
    read_globals = {
        "redis", "KEYS", "ARGV", "cjson", "struct", "bit", "ipairs", "math",
        "string", "table", "tonumber", "type", "unpack",
    },
}
max_line_length = false -- the line breaks are those of the scripts

-- Clients of older versions send the same texts, so the texts stay as they are
-- (tests/unit/backends/redis/test_redis_reply.c).
ignore = {
    "4..", -- a piece may define a name that the script already has
    "211/[A-Z]+", -- *_keys.lua name all keys, even if a script needs only a few
    "211/alone", "211/ears", "221/alone", -- the same for variables about Redisson's waiters
    "212", -- functions for walk() are passed all that is known of a waiter
    "231/dropped", "231/sooner", -- not every script that includes the piece reads them
    "311/given", "311/told", -- crowd_next.lua: the string dialect reads neither
    "321/now", -- head() sets it
    "581", -- not ($redisson_queues)
}
