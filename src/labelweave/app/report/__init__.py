"""One page about a fitted model: what it is, how well it does on some rows, what was learned, and why."""

from labelweave.app.report.report_file import ReportOptions, write_report

__all__ = ["ReportOptions", "write_report"]
