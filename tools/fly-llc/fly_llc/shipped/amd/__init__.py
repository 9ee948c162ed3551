"""The filters for AMD's machine instructions."""
