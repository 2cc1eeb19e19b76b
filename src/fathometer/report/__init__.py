"""What was measured, to look at: `figures` for print, `page` for the browser. Results in, pictures out; no models."""
