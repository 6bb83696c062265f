"""Readers and writers of data files, a bundled data set and synthetic problems."""

from labelweave.datasets.any_file import detect_format as detect_format
from labelweave.datasets.any_file import read_any as read_any
from labelweave.datasets.data_file import DataFileError as DataFileError
from labelweave.datasets.debtags import load_debtags as load_debtags
from labelweave.datasets.hierarchical_arff import read_hierarchical_arff as read_hierarchical_arff
from labelweave.datasets.hierarchical_arff import write_hierarchical_arff as write_hierarchical_arff
from labelweave.datasets.labeled_data import LabeledData as LabeledData
from labelweave.datasets.mulan import read_mulan as read_mulan
from labelweave.datasets.mulan import write_mulan as write_mulan
from labelweave.datasets.svmlight import read_svmlight as read_svmlight
from labelweave.datasets.svmlight import write_svmlight as write_svmlight
from labelweave.datasets.synthetic import make_clique_toy as make_clique_toy
from labelweave.datasets.synthetic import make_taxonomy as make_taxonomy
from labelweave.datasets.synthetic import make_text_like as make_text_like
from labelweave.datasets.table_columns import TableColumns as TableColumns
from labelweave.datasets.table_reading import iterate_table as iterate_table
from labelweave.datasets.table_reading import read_table as read_table
from labelweave.datasets.table_reading import read_table_columns as read_table_columns
from labelweave.datasets.table_vectorizer import TableVectorizer as TableVectorizer
from labelweave.datasets.taxonomy_files import read_taxonomy as read_taxonomy
from labelweave.datasets.xmc import read_xmc as read_xmc
from labelweave.datasets.xmc import write_xmc as write_xmc
from labelweave.foundation.views import exported

__all__ = list(exported(__name__))
