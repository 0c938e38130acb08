"""What a release consists of, looked at and used as whoever gets it does."""
