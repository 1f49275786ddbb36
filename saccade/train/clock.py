"""How fast training goes."""

import time


class Clock:
    """Tokens per second and time left, as of about the last two seconds."""

    def __init__(self) -> None:
        self._since, self._tokens, self._steps = time.perf_counter(), 0, 0
        self.tokens_per_second, self.seconds_per_step = 0.0, 0.0

    def tick(self, tokens: int) -> None:
        """An update over so many tokens has ended."""
        self._tokens += tokens
        self._steps += 1
        spent = time.perf_counter() - self._since
        if spent > 2:
            self.tokens_per_second = self._tokens / spent
            self.seconds_per_step = spent / self._steps
            self._since, self._tokens, self._steps = time.perf_counter(), 0, 0
