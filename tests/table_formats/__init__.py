"""`make table-formats`: Delta Lake and Apache Iceberg beside aqepilot."""
