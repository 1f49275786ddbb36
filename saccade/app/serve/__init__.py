"""The HTTP server: a page, predictions and looks, with limits that hold."""
