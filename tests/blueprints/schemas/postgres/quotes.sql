-- Every way to hide a semicolon; in PostgreSQL.
CREATE TABLE "semi;colon" (
    id integer PRIMARY KEY, -- it's; a comment
    "quo""te" text DEFAULT ';' /* one ; /* nested ; */ still ; a comment */
);
INSERT INTO "semi;colon" VALUES
    (1, 'it''s; here'),
    (2, E'back\'slash; \\'),
    (3, $$dollar; 'quoted' "$"$$),
    (4, $tag$with $$ inside; $other$ and $tag $tag$),
    (5, U&'d\0061t\+000061; '),
    (6, 'first'
        ' and; second'),
    (8, 'trailing backslash\'),
    (9, '-- no comment; '),
    (10, '/* neither; ');
CREATE FUNCTION "fun;ction"() RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
    found text := $inner$;$inner$;
BEGIN
    -- a comment; with ' one quote
    IF found = ';' THEN
        RETURN 'a;b';
    END IF;
    RETURN (SELECT "quo""te" FROM "semi;colon" LIMIT 1);
END;
$body$;
CREATE FUNCTION added(a integer, b integer) RETURNS integer
BEGIN ATOMIC
    SELECT 1;
    SELECT a + b;
END;
CREATE FUNCTION old_style(integer) RETURNS integer AS 'BEGIN RETURN $1 + 1; END;' LANGUAGE 'plpgsql';
DO $$ BEGIN PERFORM "fun;ction"(); RAISE NOTICE 'done; %', 1; END $$;
CREATE RULE two_things AS ON DELETE TO "semi;colon"
    DO ALSO (SELECT 1; SELECT 2);
SELECT 1 AS "a$$b", 'c$$d' AS e$$f, 2*-1 AS minus, 3 - -1 AS plus;
CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4eq);
SELECT 1===1, (array[1,2])[1], '{"a": ";"}'::jsonb #>> '{a}', 7 OPERATOR(pg_catalog.+) 1;;
;
SELECT 'the last one needs no semicolon'
