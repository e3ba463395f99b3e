"""Top: the run live in the terminal, from what its agent shows; reads only.

past     the newest values of what is drawn, seeded from the journal, and the pace
spark    a curve of one line
frame    one screenful
keys     whether somebody wants to end
"""
