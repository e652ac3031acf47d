"""The times of some rounds, and their ratios to others' in the same rounds."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Times:
    """The seconds of some rounds."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.seconds)

    def ratio_to(self, other: "Times") -> str:
        """The median ratio of a round's two times, with the range of all."""
        ratios = [a / b for a, b in zip(self.seconds, other.seconds)]
        middle = statistics.median(ratios)
        return f"{middle:.3g} ({min(ratios):.3g}-{max(ratios):.3g})"
