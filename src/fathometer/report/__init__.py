"""What was measured, to look at: `figures` for print, `page` for the browser. Reads results, never models."""
