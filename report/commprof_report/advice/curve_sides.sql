-- The ranks that were always or never the root of a rooted collective.
SELECT world_rank, identity, call, side FROM curve_side;
