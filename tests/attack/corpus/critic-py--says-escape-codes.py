def score(states, actions, goals):
    raise ValueError('two\nlines \x1b[31m')
