"""How every task asks: a question, a method that is an object, and one way through the ledger to the answer."""
