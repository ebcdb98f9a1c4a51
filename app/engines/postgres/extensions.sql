-- The extensions that every tenant database has from the start: run by a superuser in `headwater_template`, with their
-- names, comma-separated, in the setting `headwater.extensions`. It may run again at any time, and drops what the
-- setting leaves out. In a tenant's database it adds to what is there.
--
-- PostgreSQL lets nobody but a superuser make them, so each was judged: see docs/decisions. They lie in pg_catalog, which
-- belongs to the superuser as they do: in a schema of the tenant's they would go with it, and a script of theirs could
-- meet objects that the tenant has put there.

-- In a tenant's database nothing of the tenant's may be called by a superuser.
SET search_path = pg_catalog, pg_temp;
DO $$
DECLARE
    judged CONSTANT text[] := '{bloom,moddatetime,vector}';
    wanted text[] := ARRAY(SELECT btrim(name) FROM string_to_table(current_setting('headwater.extensions', true), ',')
                           AS name WHERE btrim(name) <> '');
    one text;
    unsafe text;
BEGIN
    FOREACH one IN ARRAY wanted LOOP
        IF one <> ALL (judged) THEN
            RAISE EXCEPTION 'the extension % may not be in HEADWATER_POSTGRES_EXTENSIONS', one;
        ELSIF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = one) THEN
            RAISE WARNING 'this server has no extension %', one;
        ELSE
            EXECUTE format('CREATE EXTENSION IF NOT EXISTS %I SCHEMA pg_catalog', one);
        END IF;
    END LOOP;
    IF current_database() = 'headwater_template' THEN
        FOR one IN SELECT extname FROM pg_extension WHERE extname <> 'plpgsql' AND extname <> ALL (wanted) LOOP
            EXECUTE format('DROP EXTENSION %I', one);
        END LOOP;
    END IF;
    -- Whatever the version: nothing that runs with the superuser's rights, reaches outside, or is to be written.
    SELECT e.extname || ': ' || pg_describe_object(d.classid, d.objid, 0) INTO unsafe
    FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
    WHERE d.deptype = 'e' AND e.extname = ANY (wanted) AND (
        d.classid IN ('pg_language'::regclass, 'pg_foreign_data_wrapper'::regclass, 'pg_event_trigger'::regclass,
                      'pg_namespace'::regclass)
        OR d.classid = 'pg_class'::regclass
        OR d.classid = 'pg_proc'::regclass AND (SELECT prosecdef FROM pg_proc WHERE oid = d.objid))
    LIMIT 1;
    IF unsafe IS NOT NULL THEN
        RAISE EXCEPTION 'an extension makes what no tenant may have: %', unsafe;
    END IF;
END
$$;
RESET search_path;
