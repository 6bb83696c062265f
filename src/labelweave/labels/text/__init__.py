"""Label names and descriptions as embeddings, covariances and prior scores."""

from labelweave.labels.text.label_text import LabelText
from labelweave.labels.text.static_embeddings import feature_words, label_words, static_embeddings

__all__ = ["LabelText", "feature_words", "label_words", "static_embeddings"]
