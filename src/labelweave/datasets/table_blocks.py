"""Columns of tables that are read in blocks of rows; rows of JSON lines may lack some columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from labelweave.datasets.columns import Columns
from labelweave.datasets.data_file import PathLike
from labelweave.datasets.table_columns import TableColumns, refuse_absent, resolved_in
from labelweave.datasets.table_files import RawTable, raw_tables, table_kind

_ROWS_AT_ONCE = 10_000


def telling_blocks(
    path: PathLike, block_rows: int = _ROWS_AT_ONCE, no_header: bool = False
) -> Iterator[RawTable]:  # fmt: skip
    """Yield the blocks of rows that determine the columns: all for JSON lines, else the first."""
    tables = raw_tables(path, block_rows, no_header)
    return tables if table_kind(path) == "json" else islice(tables, 1)


def column_names(path: PathLike, no_header: bool = False) -> list[str]:
    """Return the names of the columns of all rows of a table, in order of appearance."""
    tables = telling_blocks(path, no_header=no_header)
    return list(dict.fromkeys(name for table in tables for name in table.columns))


def has_column(path: PathLike, name: str, no_header: bool = False) -> bool:
    return any(name in table.columns for table in telling_blocks(path, no_header=no_header))


def first_block(path: PathLike, columns: TableColumns, block_rows: int) -> RawTable:
    """Return the first block in which some row has the column that lists labels; else the first one."""
    tables = telling_blocks(path, block_rows, columns.no_header)
    first = next(tables)
    if not isinstance(columns.labels, str) or columns.labels in first.columns:
        return first
    return next((table for table in tables if columns.labels in table.columns), first)


def columns_of_blocks(path: PathLike, columns: TableColumns, block_rows: int) -> TableColumns:
    """Find the label columns, and the kinds of others from the block with the most cells of each.

    Specified columns are not changed.
    """
    has_patterns = columns.labels is not None and not isinstance(columns.labels, str)
    if columns.are_resolved and not has_patterns:
        return columns
    return resolved_in(columns, path, lambda: telling_blocks(path, block_rows, columns.no_header))


def completed_blocks(path: PathLike, columns: TableColumns, block_rows: int) -> Iterator[RawTable]:
    """Yield the rows in blocks; a named column that is absent from a block has missing cells.

    Raises DataFileError if no row of the table has a named column.
    """
    named, found = {name for _, name in columns.named()}, set[str]()
    for table in raw_tables(path, block_rows, columns.no_header):
        absent = named.difference(table.columns)
        if not absent <= found:
            refuse_absent(columns, column_names(path, columns.no_header), path)
            found |= absent
        yield completed(table, columns)


def completed(table: RawTable, columns: TableColumns) -> RawTable:
    """Add missing cells for the named columns that some rows of a table lack."""
    absent = [name for _, name in columns.named() if name not in table.columns]
    if not absent:
        return table
    cells = {name: table.columns.given(name) for name in table.columns}
    cells |= {name: [None] * len(table) for name in absent}
    return RawTable(table.path, Columns(cells), table.line_of, table.first_row)
