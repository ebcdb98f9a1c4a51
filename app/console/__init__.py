"""The console: web pages for people, which call the public API alone. docs/console.md says how a page is made."""
