"""Reports for the browser: result objects in, one HTML file out."""
