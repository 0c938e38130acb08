"""Event logs collected into tables."""
