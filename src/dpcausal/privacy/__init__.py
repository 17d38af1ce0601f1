"""What a guarantee is: amounts, neighbours, sensitivities, composition, the ledger, the noise."""
