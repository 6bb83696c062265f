"""Readers and writers of data files, a bundled data set and synthetic problems."""

from labelweave.datasets.any_file import detect_format, read_any
from labelweave.datasets.data_file import DataFileError
from labelweave.datasets.debtags import load_debtags
from labelweave.datasets.hierarchical_arff import read_hierarchical_arff, write_hierarchical_arff
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.mulan import read_mulan, write_mulan
from labelweave.datasets.svmlight import read_svmlight, write_svmlight
from labelweave.datasets.synthetic import make_clique_toy, make_taxonomy, make_text_like
from labelweave.datasets.table import iterate_table, read_table_columns
from labelweave.datasets.table_columns import TableColumns
from labelweave.datasets.table_reading import read_table
from labelweave.datasets.table_vectorizer import TableVectorizer
from labelweave.datasets.taxonomy_files import read_taxonomy
from labelweave.datasets.xmc import read_xmc, write_xmc

__all__ = [
    "DataFileError",
    "LabeledData",
    "TableColumns",
    "TableVectorizer",
    "detect_format",
    "iterate_table",
    "load_debtags",
    "make_clique_toy",
    "make_taxonomy",
    "make_text_like",
    "read_any",
    "read_hierarchical_arff",
    "read_mulan",
    "read_svmlight",
    "read_table",
    "read_table_columns",
    "read_taxonomy",
    "read_xmc",
    "write_hierarchical_arff",
    "write_mulan",
    "write_svmlight",
    "write_xmc",
]
