"""Working off what is due: each once, and none held up by another."""

from uuid import UUID, uuid4

from workers.due import work_off


async def test_one_that_fails_does_not_hold_up_the_others() -> None:
    due, worked = [uuid4() for _ in range(120)], []

    async def find(most: int, /, *, without: list[UUID]) -> list[UUID]:
        return [one for one in due if one not in without][:most]

    async def work(database: UUID) -> None:
        worked.append(database)
        if database == due[0]:
            raise OSError

    await work_off(find, work, failure="failed")
    assert worked == due
