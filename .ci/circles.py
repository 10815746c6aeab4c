"""Finds circles in a graph, for rooms.py."""


def find_circles(graph):
    """Returns the strongly connected components of more than one file."""
    number, low, stack, out = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in sorted(graph[v]):
            if w not in number:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                out.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(graph):
        if v not in number:
            visit(v)
    return out
