-- Routines with nothing around them that would say where they end.
CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(200), level INT DEFAULT 0);
CREATE TABLE words (id INT AUTO_INCREMENT PRIMARY KEY, `begin` INT, `end` INT, `case` INT);

CREATE TRIGGER log_level BEFORE INSERT ON log FOR EACH ROW SET NEW.level = IF(NEW.level < 0, 0, NEW.level);
CREATE TRIGGER log_text BEFORE UPDATE ON log FOR EACH ROW
    IF NEW.text IS NULL THEN SET NEW.text = ''; ELSEIF NEW.text = 'x' THEN SET NEW.text = 'y'; END IF;

CREATE FUNCTION grade(points INT) RETURNS CHAR(1) DETERMINISTIC
BEGIN
    DECLARE letter CHAR(1) DEFAULT CASE WHEN points > 90 THEN 'A' ELSE 'B' END;
    CASE
        WHEN points < 10 THEN RETURN 'F';
        WHEN points < 20 THEN BEGIN RETURN CASE points WHEN 10 THEN 'E' ELSE IF(points > 15, 'D', 'C') END; END;
        ELSE RETURN letter;
    END CASE;
    RETURN letter;
END;

CREATE PROCEDURE plain() SELECT 'no block; here', `begin`, `end`, `case` FROM words;
CREATE PROCEDURE waits(IN a INT, IN b INT) BEGIN SELECT IF(a, 1, 2), IF(b, 3, 4); SELECT CASE a WHEN 1 THEN b END; END;
CALL plain();
INSERT INTO words (`begin`, `end`, `case`) VALUES (1, 2, 3);
CREATE OR REPLACE VIEW ends AS SELECT `end`, CASE WHEN `case` = 1 THEN 'a' ELSE 'b' END AS letter FROM words;
DROP TRIGGER log_text;
