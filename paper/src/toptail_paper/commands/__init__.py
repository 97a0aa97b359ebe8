"""One file per command of toptail-paper."""
