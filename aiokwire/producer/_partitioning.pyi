BY_NAME: dict[str, int]
CUSTOM: int
