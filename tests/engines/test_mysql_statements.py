"""A dump arrives in chunks that end anywhere, and has the same statements however it is cut."""

from collections.abc import AsyncIterator

import pytest

from app.engines.mysql.dumps.statements import Statements

DUMP = rb"""-- MySQL dump
/*!40101 SET NAMES utf8mb4 */;
CREATE TABLE `t` (
  `a` varchar(9) DEFAULT 'x;\'y' COMMENT "; --" -- ;
);
INSERT INTO `t` VALUES
('one;'),
('two\');');
/*!50003 SET sql_mode = '' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50003 TRIGGER `x` BEFORE INSERT ON `t` FOR EACH ROW BEGIN SET NEW.a = ';'; END */;;
DELIMITER ;
DELIMITER //
CREATE PROCEDURE p() BEGIN # DELIMITER ;
  SELECT ';;'; END//
delimiter ;
/*!50003 SET sql_mode = @saved_sql_mode */ ;
"""


async def read(chunks: list[bytes]) -> list[bytes]:
    async def arriving() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [bytes(statement) async for statement in Statements(arriving())]  # type: ignore[arg-type]  # none is long


async def test_a_dump_is_read_wherever_it_is_cut() -> None:
    whole = await read([DUMP])
    assert [statement.split()[0] for statement in whole] == [
        b"/*!40101",
        b"CREATE",
        b"INSERT",
        b"/*!50003",
        b"/*!50003",
        b"CREATE",
        b"/*!50003",
    ]
    for at in range(1, len(DUMP)):
        assert await read([DUMP[:at], DUMP[at:]]) == whole, DUMP[max(0, at - 20) : at]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_a_dump_is_read_in_small_chunks(size: int) -> None:
    assert await read([DUMP[at : at + size] for at in range(0, len(DUMP), size)]) == await read([DUMP])
