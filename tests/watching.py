"""scikit-learn callbacks for tests of fits: one counts subtasks, one records all its arguments."""


class Count:
    """Record the names of subtasks, and end the fit after some.

    stop_after: the number of allowed subtasks; of: the name of those that count and end it, None for all.
    """

    def __init__(self, stop_after=None, of=None):
        self.stop_after, self.of, self.names, self.expected = stop_after, of, [], None

    def setup(self, estimator, context):
        self.expected = context.max_subtasks

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if context.parent is None:
            return False
        self.names.append(context.task_name)
        if self.stop_after is None or self.of not in (None, context.task_name):
            return False
        return (len(self.names) if self.of is None else self.names.count(self.of)) >= self.stop_after


class Watch:
    """Record the rows of a fit, and the arguments at the ends of tasks, the fit's last."""

    def __init__(self):
        self.seen, self.calls = [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        assert X is not None
        assert y is not None

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.seen.append((context, X, y, metadata, fitted_estimator))
