"""From scores to label sets: thresholds per label, one for all, or the k best labels of every row."""
