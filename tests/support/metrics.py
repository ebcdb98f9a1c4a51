"""Reading a metrics page as Prometheus does."""

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


class Scrape:
    """One page."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {family.name: family for family in text_string_to_metric_families(text)}

    def value(self, sample: str, **labels: str) -> float:
        """The sum of the samples of that name with these labels; 0 when there are none."""
        return sum(
            one.value
            for family in self.families.values()
            for one in family.samples
            if one.name == sample and labels.items() <= one.labels.items()
        )

    def labels(self, sample: str, label: str) -> set[str]:
        samples = [one for family in self.families.values() for one in family.samples if one.name == sample]
        return {one.labels[label] for one in samples}


async def scrape(http: httpx.AsyncClient, url: str = "/metrics") -> Scrape:
    answer = await http.get(url)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/plain")
    return Scrape(answer.text)
