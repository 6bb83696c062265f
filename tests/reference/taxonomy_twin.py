"""Slow, readable functions of a tree, from a dict that maps each child to its parent."""


def path(parent, name):
    return [*path(parent, parent[name]), name] if name in parent else [name]


def leaves(parent, names):
    return {name for name in names if name not in parent.values()}


def common_ancestor(parent, first, second):
    shared = [a for a, b in zip(path(parent, first), path(parent, second), strict=False) if a == b]
    return shared[-1] if shared else None


def distance(parent, first, second):
    """Walk up to the common ancestor, or to one node above all roots; count half the steps."""
    above = common_ancestor(parent, first, second)
    shared = len(path(parent, above)) if above is not None else 0
    return (len(path(parent, first)) - shared + len(path(parent, second)) - shared) / 2


def pruned(parent, names, keep):
    """Remove one node with a single child at a time, until there is none."""
    parent, names = dict(parent), set(names)
    while True:
        below = {name: [child for child in parent if parent[child] == name] for name in names}
        single = [name for name in names if len(below[name]) == 1 and name not in keep]
        if not single:
            return parent, names
        (child,) = below[single[0]]
        above = parent.pop(single[0], None)
        names.remove(single[0])
        del parent[child]
        if above is not None:
            parent[child] = above


def subtree_head(parent, names, name):
    roots = [other for other in names if other not in parent]
    return path(parent, name)[: 1 if len(roots) > 1 else 2][-1]
