/*
 * Intrusive lists, of three kinds:
 *
 *   list   a pointer to the first item; items have `next` and `prev`. New items
 *          are added in front, and any item can be removed.
 *   deque  a list that also has a pointer to the last item; new items are added
 *          after it. hf__list_add() also works on a deque that is not empty.
 *   fifo   items have one pointer, whose name is an argument of the macros. New
 *          items are added after the last one, and only the first one is
 *          removed. If `first` is NULL, `last` has no meaning.
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

/* Returns a pointer to the struct `type` whose member `member` is at ptr. */
#define hf__container(ptr, type, member)                                       \
    ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
