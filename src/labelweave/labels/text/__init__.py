"""What labels are called and described by, as embeddings, covariances and known scores."""

from labelweave.labels.text.label_text import LabelText
from labelweave.labels.text.static_embeddings import feature_words, label_words, static_embeddings

__all__ = ["LabelText", "feature_words", "label_words", "static_embeddings"]
