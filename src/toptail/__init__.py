"""Is this critic safe to maximize?"""
