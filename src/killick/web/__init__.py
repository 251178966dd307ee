"""Ask and serve: the practice API, and pages where people look and judge."""
