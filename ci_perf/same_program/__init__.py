"""Prove that two sides run the same program.

`proof` compares what a launch has recorded (`measuring/recording/`) with the files of a side.
"""
