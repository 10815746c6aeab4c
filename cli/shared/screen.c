#include "screen.h"

#include "base/text.h"
#include "message.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 80 };

static bool screen_has_colours(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

const char *cli_colour(enum cli_colour colour)
{
    static const char *const sequences[] = {
        [CLI_PLAIN] = "\033[0m",  [CLI_BOLD] = "\033[1m",
        [CLI_DIM] = "\033[2m",    [CLI_RED] = "\033[31m",
        [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m"};

    return screen_has_colours(STDOUT_FILENO) ? sequences[colour] : "";
}

int cli_width(int fd)
{
    struct winsize size = {0};

    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return WIDTH_DEFAULT;
    return size.ws_col;
}

void cli_wrap(FILE *out, int column, int width, const char *text)
{
    int indent = column, at = column;
    bool begins = true; /* a line of the text */

    while (*text) {
        int len, letters = 0;

        if (begins) {
            len = (int)strspn(text, " ");
            indent = at = column + len;
            fprintf(out, "%*s", len, "");
            text += len;
        }
        len = (int)strcspn(text, " \n");
        for (int i = 0; i < len; i++)
            letters += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (at > indent && at + 1 + letters > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        }
        at += fprintf(out, "%s%.*s", at > indent ? " " : "", len, text) -
              (len - letters);
        text += len;
        begins = *text == '\n';
        text += *text != '\0';
        if (begins && *text)
            fprintf(out, "\n%*s", column, "");
    }
    fputc('\n', out);
}

static bool live_is_shown;

bool cli_is_live(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void screen_remove_live_line(void)
{
    if (live_is_shown && write(STDERR_FILENO, "\r\033[K", 4) < 0) {
        /* The terminal is closed. */
    }
    live_is_shown = false;
}

void cli_live(const char *fmt, ...)
{
    char line[512] = "\r\033[K";
    size_t begin = strlen(line), end, most;
    va_list args;

    if (!cli_is_live())
        return;
    cli_before_a_line = screen_remove_live_line;
    if (!fmt) {
        screen_remove_live_line();
        return;
    }
    va_start(args, fmt);
    vsnprintf(line + begin, sizeof line - begin, fmt, args);
    va_end(args);
    /* The line is cut at the width, because a line that wraps could not be
     * removed. */
    end = strlen(line);
    most = begin + (size_t)cli_width(STDERR_FILENO) - 1;
    if (end > most)
        for (end = most; ((unsigned char)line[end] & 0xc0) == 0x80;)
            end--;
    live_is_shown = true;
    if (write(STDERR_FILENO, line, end) < 0)
        live_is_shown = false;
}

bool cli_confirm(const char *question)
{
    char answer[16];

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    fprintf(stderr, "%s [y/N] ", question);
    return fgets(answer, sizeof answer, stdin) &&
           (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0 ||
            strcmp(answer, "Y\n") == 0);
}

void cli_print_bytes(FILE *out, const void *bytes, size_t len)
{
    const unsigned char *s = bytes;

    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = s[i] == '\\' ? 0 : hf__character(s + i, len - i);
        if (n)
            fwrite(s + i, 1, n, out);
        else
            fprintf(out, "\\x%02x", s[i]);
    }
}
