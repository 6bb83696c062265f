"""One page about a fitted model: what it is, how well it does on some rows, what was learned, and why."""

from labelweave.report.report_file import write_report
from labelweave.report.report_options import ReportOptions

__all__ = ["ReportOptions", "write_report"]
