"""An experiment in production: its definition, and which arm each unit gets."""
