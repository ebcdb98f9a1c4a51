-- What migrations of web frameworks make.
create table `users` (`id` bigint unsigned not null auto_increment primary key, `name` varchar(255) not null, `email` varchar(255) not null, `email_verified_at` timestamp null, `password` varchar(255) not null, `remember_token` varchar(100) null, `created_at` timestamp null, `updated_at` timestamp null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';
alter table `users` add unique `users_email_unique`(`email`);
create table `jobs` (`id` bigint unsigned not null auto_increment primary key, `queue` varchar(255) not null, `payload` longtext not null, `attempts` tinyint unsigned not null, `reserved_at` int unsigned null, `available_at` int unsigned not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci' engine = InnoDB;
alter table `jobs` add index `jobs_queue_index`(`queue`);
alter table `users` add `team_id` bigint unsigned null after `email`, add `settings` json null, add column `rank` double(8, 2) not null default '0';
alter table `jobs` add constraint `jobs_user_foreign` foreign key (`id`) references `users` (`id`) on delete cascade;
alter table `users` modify `name` varchar(500) not null, change `rank` `ranking` double not null default 0, drop column `remember_token`;
alter table `users` rename index `users_email_unique` to `users_mail`;
CREATE TABLE `django_content_type` (`id` integer AUTO_INCREMENT NOT NULL PRIMARY KEY, `app_label` varchar(100) NOT NULL, `model` varchar(100) NOT NULL, `when` datetime(6) NOT NULL, `yes` bool NOT NULL, `price` numeric(10, 2) NULL);
ALTER TABLE `django_content_type` ADD CONSTRAINT `django_content_type_uniq` UNIQUE (`app_label`, `model`);
CREATE TABLE visits (
    id INT NOT NULL, at DATE NOT NULL, path VARCHAR(200) CHARACTER SET latin1,
    path_hash CHAR(32) AS (LEFT(path, 32)) STORED, ratio FLOAT CHECK (ratio BETWEEN 0 AND 1),
    day_of DATE GENERATED ALWAYS AS (at) VIRTUAL,
    PRIMARY KEY (id, at), KEY by_path (path(20) DESC), INDEX USING BTREE (at), KEY prefix_key (path_hash(8))
) ROW_FORMAT=DYNAMIC COMMENT='who; came'
PARTITION BY RANGE (YEAR(at)) (PARTITION p2025 VALUES LESS THAN (2026), PARTITION pmax VALUES LESS THAN MAXVALUE);
CREATE TABLE places (id INT PRIMARY KEY, spot GEOMETRY NOT NULL, corner POINT NOT NULL, SPATIAL INDEX (spot), note TEXT, FULLTEXT INDEX note_words (note));
CREATE TABLE users_copy LIKE users;
CREATE TABLE recent AS SELECT id, name FROM users WHERE id > 0;
CREATE TEMPORARY TABLE scratch (n INT) ENGINE=InnoDB;
CREATE FULLTEXT INDEX by_note ON places (note);
CREATE UNIQUE INDEX by_app ON django_content_type (model, app_label DESC) USING BTREE COMMENT 'twice';
INSERT INTO users (name, email, password) VALUES ('a', 'a@example.org', 'x') ON DUPLICATE KEY UPDATE name = VALUES(name), email = 'b';
INSERT IGNORE INTO users SET name = 'b', email = 'b@example.org', password = 'y';
REPLACE INTO users (id, name, email, password) VALUES (7, 'c', 'c@example.org', 'z');
INSERT INTO recent SELECT id, name FROM users WHERE name LIKE '%a%' OR name REGEXP '^b' ORDER BY id LIMIT 10;
INSERT INTO recent WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i, CONCAT('n', i) FROM n;
UPDATE users u JOIN recent r ON r.id = u.id SET u.name = r.name WHERE u.id = 1;
UPDATE users SET settings = JSON_SET(COALESCE(settings, '{}'), '$.a', 1) WHERE id = 1 ORDER BY id LIMIT 1;
DELETE r FROM recent r JOIN users u ON u.id = r.id WHERE u.name = 'none';
DELETE FROM recent WHERE id = 3 LIMIT 1;
SELECT SQL_CALC_FOUND_ROWS id, GROUP_CONCAT(DISTINCT name ORDER BY name SEPARATOR ';') FROM users USE INDEX (PRIMARY) GROUP BY id WITH ROLLUP;
SELECT id, SUM(id) OVER (PARTITION BY name ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM users;
SELECT * FROM places WHERE MATCH (note) AGAINST ('x' IN BOOLEAN MODE) OR note RLIKE 'a' OR id DIV 2 = 1 XOR id MOD 3 = 0 LIMIT 0;
SELECT JSON_EXTRACT(settings, '$.a'), id <=> NULL, ~id, id & 1 | 2 ^ 3, id << 1, !id, NOT id FROM users WHERE 0;
SELECT INTERVAL 1 DAY + NOW(), DATE_ADD(NOW(), INTERVAL 2 HOUR), TIMESTAMPDIFF(DAY, NOW(), NOW()), EXTRACT(YEAR FROM NOW());
SELECT IF(1, 2, 3), CONVERT('a' USING utf8mb4), CAST(1 AS UNSIGNED), BINARY 'a' = 'A', 'a' 'b', 0x41, b'1', 1e3, .5;
SELECT TRIM(LEADING 'a' FROM 'abc'), SUBSTRING('abc' FROM 2 FOR 1), POSITION('a' IN 'abc'), CHAR(65 USING utf8mb4);
SET @total = 5, SESSION group_concat_max_len = 4096;
SELECT COUNT(*) INTO @total FROM users;
DO SLEEP(0);
ANALYZE TABLE users;
SHOW TABLES;
RENAME TABLE users_copy TO users_archive;
ALTER TABLE users_archive ENGINE=InnoDB, COMMENT='old', ALGORITHM=COPY;
TRUNCATE TABLE users_archive;
DROP TABLE IF EXISTS users_archive, recent CASCADE;
DROP INDEX by_note ON places;
ALTER TABLE visits DROP PARTITION p2025;
