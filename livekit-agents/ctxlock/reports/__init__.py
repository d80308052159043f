"""What the races came to: as tables, as sequence diagrams, as a page."""
