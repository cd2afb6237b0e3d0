"""Data sources: records, databases, transformation and prefetching."""
