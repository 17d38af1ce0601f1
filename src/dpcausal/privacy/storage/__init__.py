"""The lines of a ledger, where they are stored, and the witness that saw them."""
