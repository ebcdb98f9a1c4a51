# Every way to hide a semicolon; in MySQL.
CREATE TABLE `semi;colon` (
    id INT PRIMARY KEY, -- it's; a comment
    `back``tick` VARCHAR(200) DEFAULT ';', # another ' one;
    --	after a tab; too
    value INT DEFAULT (5--1) /* minus; minus one */
);
INSERT INTO `semi;colon` (id, `back``tick`) VALUES
    (1, 'it''s; here'),
    (2, 'back\'slash; \\'),
    (3, "double; 'quotes' ""twice"" \" once"),
    (4, 'adjacent' ' and; together'),
    (5, _utf8mb4'introduced;' COLLATE utf8mb4_bin),
    (6, N'national;'),
    (7, x'3B'),
    (8, b'00111011'),
    (9, 'line
break; -- no comment
# nor this'),
    (10, '/* neither; '),
    (11, CONCAT('a;', "b;", `id`)),
    (12, '{{not}} ${a} variable;');
INSERT INTO `semi;colon` (id, value) VALUES (20, 1--1), (21, 2--+1);
SELECT 1 AS a$$b, @`quoted;variable` := 'x;y', @'and;this', @plain;
/* a comment; */ /*! SELECT 'code; too' */; /*+ a hint; */
SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1;
/*!50000 SELECT 2 */;
SELECT 3 /*!50000 + 4 */;
/*M!100000 SELECT 5 */;
DELIMITER $$
SELECT 'dollar $$ in quotes'$$
CREATE TABLE two (a INT); CREATE TABLE three (a INT)$$
DELIMITER ;
UPDATE `semi;colon` SET value = 7 WHERE id = 1 LIMIT 1;;
;
SELECT 'the last one needs no semicolon'
