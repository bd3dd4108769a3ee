"""Feeds files to readers and compares what they say."""
