"""x"""
CLAIMS=[]
