"""Clients and brokers that are killed while they work, and an exact account of what is left.

transactions         read, work, write in transactions: each input counts once
transactions_worker  the process that is killed
"""
