#include "about.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void hf__uuid(const uint8_t random[16], char out[HF__UUID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < 16; i++) {
        uint8_t byte = random[i];

        byte = i == 6   ? (byte & 0x0f) | 0x40
               : i == 8 ? (byte & 0x3f) | 0x80
                        : byte;
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    *out = '\0';
}

int64_t hf__wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t hf__left_ms(int64_t lease_ms, int64_t since_ms, int64_t now_ms)
{
    int64_t from = since_ms > 0 ? since_ms : 0;
    int64_t spent = now_ms > from ? now_ms - from : 0;

    return spent < lease_ms ? lease_ms - spent : 0;
}

size_t hf__about(char *out, size_t size, const char *what)
{
    char host[65] = "";

    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, "\n")] = '\0';
    return (size_t)snprintf(out, size, "%s%ld\n%s\n", what, (long)getpid(),
                            host);
}

const char *hf__cut(const char **at, const char *end, char stop, size_t *len)
{
    const char *begin = *at;
    const char *found = memchr(begin, stop, (size_t)(end - begin));

    *len = (size_t)((found ? found : end) - begin);
    *at = found ? found + 1 : end;
    return begin;
}

void hf__copy_text(char *to, size_t size, const char *from, size_t len)
{
    static const char zero[] = "\\x00";
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        size_t n = from[i] ? 1 : sizeof(zero) - 1;

        if (out + n >= size)
            break;
        memcpy(to + out, from[i] ? from + i : zero, n);
        out += n;
    }
    to[out] = '\0';
}

void hf__about_read(hf_party *p, const char *at, const char *end)
{
    size_t len;
    const char *host = hf__cut(&at, end, '\n', &len);

    hf__copy_text(p->host, sizeof(p->host), host, len);
    hf__copy_text(p->label, sizeof(p->label), at, (size_t)(end - at));
}
