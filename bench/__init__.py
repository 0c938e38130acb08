"""What aqepilot costs, beside plain Spark on the same machine: `make bench`."""
