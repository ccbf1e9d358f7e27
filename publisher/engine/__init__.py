"""The engine: jobs, attempts and the rules between them. It knows no platform, no HTTP, no web."""
