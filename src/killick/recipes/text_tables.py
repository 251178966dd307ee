"""x"""
def tables(rows, found): return []
