"""Killed processes, full disks, broken files, company in one folder, a clock that is set back."""
