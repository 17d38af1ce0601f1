"""Files of tables: what their format is, how they are opened, and their columns."""
