"""Generated modules, one for each API; each loads when it is first used."""
