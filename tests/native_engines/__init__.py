"""aqepilot beside native engines and other extensions: `make native-engines`."""
