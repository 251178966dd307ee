"""A proxy that extrapolates: what happens past the edge of the preference data?"""
