-- Blocks of every kind, and delimiters.
CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(200), level INT DEFAULT 0);

DELIMITER //
CREATE PROCEDURE loops(IN n INT)
    COMMENT 'all; of them'
main: BEGIN
    DECLARE i INT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    WHILE i < n DO
        SET i = i + 1;
        IF i = 3 THEN ITERATE_IT: BEGIN SET i = 4; END; END IF;
    END WHILE;
    REPEAT SET i = i - 1; UNTIL i <= 0 END REPEAT;
    again: LOOP
        SET i = i + 1;
        IF (SELECT COUNT(*) FROM log) > 100 THEN LEAVE again; END IF;
        IF NOT EXISTS (SELECT 1 FROM log WHERE id = i) THEN LEAVE again; END IF;
    END LOOP again;
    INSERT INTO log (text) VALUES (REPEAT('x;', 3)); -- a function of that name
    COMMIT;
    IF i < 0 THEN LEAVE main; END IF;
END//

CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2//
DELIMITER ;

