"""The reproduction of "Good Rankers, Bad Objectives", made with toptail."""
