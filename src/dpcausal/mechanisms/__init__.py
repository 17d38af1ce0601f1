"""The only readers of a query: each mechanism asks the ledger, spends, then draws."""
