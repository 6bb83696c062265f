"""What labels are called and described by, as embeddings, covariances and known scores."""

from labelweave.labels.text.label_text import LabelText
from labelweave.labels.text.static_embeddings import static_embeddings
from labelweave.labels.text.words import feature_words, label_words

__all__ = ["LabelText", "feature_words", "label_words", "static_embeddings"]
