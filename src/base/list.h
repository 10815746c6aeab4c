/*
 * Lists of things that are linked by members of their own, of three kinds:
 *
 *   list   has a first one; its items have `next` and `prev`. New ones come in
 *          front, any may go.
 *   deque  the same with a last one, and new ones come behind it; one that is
 *          not empty is a list, too.
 *   fifo   its items have one pointer, whose name is given; the first goes.
 *          Where there is no first one, the last means nothing.
 *
 * The heads are lvalues, and all arguments may be evaluated more than once.
 */
#ifndef HF_LIST_H
#define HF_LIST_H

#include <stddef.h>

#define hf__list_add(first, item)                                              \
    do {                                                                       \
        (item)->prev = NULL;                                                   \
        (item)->next = (first);                                                \
        if (first)                                                             \
            (first)->prev = (item);                                            \
        (first) = (item);                                                      \
    } while (0)

#define hf__list_remove(first, item)                                           \
    do {                                                                       \
        *((item)->prev ? &(item)->prev->next : &(first)) = (item)->next;       \
        if ((item)->next)                                                      \
            (item)->next->prev = (item)->prev;                                 \
    } while (0)

#define hf__deque_add(first, last, item)                                       \
    do {                                                                       \
        (item)->next = NULL;                                                   \
        (item)->prev = (last);                                                 \
        *((last) ? &(last)->next : &(first)) = (item);                         \
        (last) = (item);                                                       \
    } while (0)

#define hf__deque_remove(first, last, item)                                    \
    do {                                                                       \
        *((item)->prev ? &(item)->prev->next : &(first)) = (item)->next;       \
        *((item)->next ? &(item)->next->prev : &(last)) = (item)->prev;        \
    } while (0)

#define hf__fifo_add(first, last, item, link)                                  \
    do {                                                                       \
        (item)->link = NULL;                                                   \
        *((first) ? &(last)->link : &(first)) = (item);                        \
        (last) = (item);                                                       \
    } while (0)

/* The struct that has that member. */
#define hf__container(ptr, type, member)                                       \
    ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
