"""A one-page report of a fitted model: what it is, its quality on some rows, what it learned, and why."""

from labelweave.app.report.report_file import ReportOptions, write_report

__all__ = ["ReportOptions", "write_report"]
