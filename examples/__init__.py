"""Programs that make the pictures, tables and pages of the documents."""
