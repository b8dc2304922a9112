"""Does a profile satisfy an expectation now, could it after adaptation, or neither; and what falls short?

`satisfaction` says it for one pair, `match_index` keeps the answer for all pairs while either side changes, by skylines
of pools of profiles held as numpy matrices. It never decides who is adapted.

Front door: satisfaction (Satisfaction, check, match, shortfalls, capability_of), match_index (MatchIndex), pools (Pool,
Skyline), point_matrix.
"""
