-- One of each kind of object.
SET search_path TO public;
CREATE SCHEMA accounting;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE accounting.money_pair AS (amount numeric(12, 2), currency char(3));
CREATE TYPE float_range AS RANGE (subtype = float8);
CREATE DOMAIN email AS text CHECK (VALUE ~ '^[^@]+@[^@]+$');
CREATE SEQUENCE accounting.invoice_numbers START WITH 1000 INCREMENT BY 5 CACHE 2;
CREATE TABLE people (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    mail email,
    mood mood DEFAULT 'ok',
    born date,
    initials text GENERATED ALWAYS AS (left(name, 1)) STORED,
    EXCLUDE USING gist (int4range(id, id, '[]') WITH &&)
) WITH (fillfactor = 90);
CREATE TABLE accounting.invoices (
    number integer DEFAULT nextval('accounting.invoice_numbers') PRIMARY KEY,
    person integer REFERENCES people ON DELETE SET NULL ON UPDATE CASCADE,
    total accounting.money_pair,
    period daterange,
    UNIQUE NULLS NOT DISTINCT (person, period)
);
ALTER SEQUENCE accounting.invoice_numbers OWNED BY accounting.invoices.number;
CREATE INDEX ON accounting.invoices (person);
CREATE STATISTICS people_stats (dependencies) ON mood, born FROM people;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := trim(NEW.name); RETURN NEW; END $$;
CREATE PROCEDURE add_person(given text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO people (name) VALUES (given); END $$;
CREATE AGGREGATE product(float8) (SFUNC = float8mul, STYPE = float8, INITCOND = '1');
CREATE TRIGGER touched BEFORE INSERT OR UPDATE OF name ON people FOR EACH ROW WHEN (NEW.name IS NOT NULL) EXECUTE FUNCTION touch();
CREATE VIEW cheerful WITH (security_barrier) AS SELECT id, name FROM people WHERE mood = 'happy' WITH LOCAL CHECK OPTION;
CREATE MATERIALIZED VIEW people_by_mood AS SELECT mood, count(*) AS n FROM people GROUP BY mood WITH NO DATA;
CREATE UNIQUE INDEX people_by_mood_key ON people_by_mood (mood);
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON people FOR SELECT TO PUBLIC USING (name = current_user) ;
CREATE RULE no_delete AS ON DELETE TO cheerful DO INSTEAD NOTHING;
CREATE COLLATION plain (provider = libc, locale = 'C');
CREATE TEXT SEARCH CONFIGURATION plain (COPY = simple);
CREATE CAST (mood AS accounting.money_pair) WITH INOUT;
COMMENT ON TABLE people IS 'Who; we know';
COMMENT ON COLUMN people.mail IS NULL;
COMMENT ON FUNCTION touch() IS $c$Trims "names"$c$;
CALL add_person('  Ada ');
INSERT INTO accounting.invoices (person, total, period) VALUES (1, ROW(10.50, 'EUR'), '[2026-01-01,2026-02-01)');
REFRESH MATERIALIZED VIEW people_by_mood;
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'ecstatic' AFTER 'happy';
ALTER TABLE people ALTER COLUMN mood SET STATISTICS 200, ALTER COLUMN name SET STORAGE EXTERNAL;
ALTER VIEW cheerful RENAME TO cheerful_people;
CREATE TABLE copies AS SELECT id, name FROM people;
SELECT name INTO names FROM people;
PREPARE by_name (text) AS SELECT id FROM people WHERE name = $1;
EXECUTE by_name('Ada');
DEALLOCATE by_name;
ANALYZE people;
REINDEX TABLE people;
LOCK TABLE people IN SHARE MODE;
EXPLAIN SELECT * FROM people;
TRUNCATE copies RESTART IDENTITY;
DROP TABLE names;
DROP FUNCTION IF EXISTS missing(integer);
RESET search_path;
