-- What lets a frozen tenant read, delete and drop, and do nothing else; and what makes several logins one tenant: run by
-- a superuser in `headwater_template`, of which every tenant database is a copy. It may run again at any time.
--
-- A tenant owns its tables, so that it may drop them; and an owner may grant itself whatever was taken from it. Nothing
-- but an event trigger, which takes a superuser, keeps it from doing so. The sign of being frozen is that the tenant's
-- role lacks CREATE on its database, which only the database's owner, our administrator, can give or take.

-- In a tenant's database nothing of the tenant's may be called by a superuser.
SET search_path = pg_catalog, pg_temp;

CREATE OR REPLACE FUNCTION pg_catalog.headwater_guard() RETURNS event_trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tenant oid := (SELECT oid FROM pg_roles WHERE rolname = current_database());
BEGIN
    -- Whoever logs in, everything is made by one owner: a login that has reset its role makes it as the tenant after
    -- all, until the end of its transaction. One that is no member of the tenant is refused here, and makes nothing.
    IF starts_with(current_user, current_database() || '_') THEN
        PERFORM set_config('role', current_database(), true);
    END IF;
    IF tg_tag LIKE 'DROP %' OR tenant IS NULL OR has_database_privilege(tenant, current_database(), 'CREATE') THEN
        RETURN;
    END IF;
    -- The session's user, not the current one: a tenant's function never runs as anybody else.
    IF (SELECT r.rolsuper OR r.oid = d.datdba FROM pg_roles r, pg_database d
        WHERE r.rolname = session_user AND d.datname = current_database()) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'disk_full',
        MESSAGE = 'this database is over its storage limit: ' || tg_tag || ' is refused until there is room again',
        HINT = 'SELECT, DELETE, TRUNCATE, DROP and VACUUM FULL work.';
END
$$;

-- Large objects grow through functions, which no event trigger sees, and which everybody may call. While the tenant has
-- a user that only reads, they are the tenant's alone. What is changed counts as the functions' first state, or it would
-- be in each dump.
CREATE OR REPLACE FUNCTION pg_catalog.headwater_large_objects(writable boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET allow_system_table_mods = on AS $$
DECLARE
    writers CONSTANT text := 'lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea), '
        'lowrite(integer, bytea), lo_truncate(integer, integer), lo_truncate64(integer, bigint)';
    tenant oid := (SELECT oid FROM pg_authid WHERE rolname = current_database());
    reader boolean := EXISTS (
        SELECT FROM pg_authid u WHERE starts_with(u.rolname, current_database() || '_u') AND NOT EXISTS (
            SELECT FROM pg_auth_members m WHERE m.member = u.oid AND m.roleid = tenant AND m.set_option));
BEGIN
    IF session_user <> (SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()) THEN
        RAISE insufficient_privilege USING MESSAGE = 'only the owner of the database may do this';
    END IF;
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', writers);
    IF tenant IS NOT NULL THEN
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', writers, current_database());
    END IF;
    IF writable AND reader THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', writers, current_database());
    ELSIF writable THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', writers);
    END IF;
    DELETE FROM pg_init_privs i USING pg_proc p
    WHERE i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid
      AND strpos(writers, format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid))) > 0;
    INSERT INTO pg_init_privs (objoid, classoid, objsubid, privtype, initprivs)
    SELECT oid, 'pg_proc'::regclass, 0, 'i', proacl FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace AND proacl IS NOT NULL
      AND strpos(writers, format('%s(%s)', proname, pg_get_function_identity_arguments(oid))) > 0;
END
$$;

-- The tenant doesn't own its database, and so not the schema public in it either, until its first session takes it:
-- one session in a new database in place of two, for each of which the server reads all of the catalogs.
CREATE OR REPLACE FUNCTION pg_catalog.headwater_take_public() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF session_user <> current_database() THEN
        RAISE insufficient_privilege USING MESSAGE = 'only the tenant of the database may do this';
    END IF;
    EXECUTE format('ALTER SCHEMA public OWNER TO %I', session_user);
END
$$;

-- While a tenant has two logins, each may have all of its connections, and PostgreSQL counts each alone. So that they
-- have them together, those of both are counted at a login. With the rights of a superuser, because others don't see
-- what a session is. The readers and our administrator are not the tenant's.
CREATE OR REPLACE FUNCTION pg_catalog.headwater_admit() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    logins oid[] := ARRAY(SELECT oid FROM pg_authid WHERE rolname = current_database()
                          OR starts_with(rolname, current_database() || '_l'));
    most integer := (SELECT rolconnlimit FROM pg_authid WHERE rolname = session_user AND oid = ANY (logins));
BEGIN
    IF most >= 0 AND cardinality(logins) > 1 AND most < (
        SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE usesysid = ANY (logins) AND backend_type = 'client backend'
    ) THEN
        RAISE too_many_connections USING MESSAGE = 'too many connections for database "' || current_database() || '"';
    END IF;
END
$$;

-- Counting takes a moment at each login, so it is switched on for as long as there are two. Whoever has both wants it
-- off: only the administrator may.
CREATE OR REPLACE FUNCTION pg_catalog.headwater_share_limit(shared boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    enabled "char" := (SELECT evtenabled FROM pg_event_trigger WHERE evtname = 'headwater_admit');
BEGIN
    IF NOT shared
       AND session_user <> (SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()) THEN
        RAISE insufficient_privilege USING MESSAGE = 'only the owner of the database may do this';
    END IF;
    IF shared AND enabled = 'D' AND 1 < (
        SELECT count(*) FROM pg_authid WHERE rolcanlogin AND rolconnlimit <> 0
            AND (rolname = current_database() OR starts_with(rolname, current_database() || '_l'))
    ) THEN
        ALTER EVENT TRIGGER headwater_admit ENABLE ALWAYS;
    ELSIF NOT shared AND enabled <> 'D' THEN
        ALTER EVENT TRIGGER headwater_admit DISABLE;
    END IF;
END
$$;

-- As members of an extension that is always there, they stay out of the tenants' dumps.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'headwater_guard') THEN
        CREATE EVENT TRIGGER headwater_guard ON ddl_command_start EXECUTE FUNCTION pg_catalog.headwater_guard();
        ALTER EVENT TRIGGER headwater_guard ENABLE ALWAYS;
        ALTER EXTENSION plpgsql ADD EVENT TRIGGER headwater_guard;
        ALTER EXTENSION plpgsql ADD FUNCTION pg_catalog.headwater_guard();
        ALTER EXTENSION plpgsql ADD FUNCTION pg_catalog.headwater_large_objects(boolean);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_depend WHERE deptype = 'e' AND classid = 'pg_proc'::regclass
                   AND objid = 'pg_catalog.headwater_take_public()'::regprocedure) THEN
        ALTER EXTENSION plpgsql ADD FUNCTION pg_catalog.headwater_take_public();
    END IF;
    IF NOT EXISTS (SELECT FROM pg_depend WHERE deptype = 'e' AND classid = 'pg_proc'::regclass
                   AND objid = 'pg_catalog.headwater_share_limit(boolean)'::regprocedure) THEN
        ALTER EXTENSION plpgsql ADD FUNCTION pg_catalog.headwater_share_limit(boolean);
        ALTER EXTENSION plpgsql ADD FUNCTION pg_catalog.headwater_admit();
    END IF;
    -- Logins can be counted since version 17. Before it, two logins may have a few more.
    IF current_setting('server_version_num')::integer >= 170000
       AND NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'headwater_admit') THEN
        CREATE EVENT TRIGGER headwater_admit ON login EXECUTE FUNCTION pg_catalog.headwater_admit();
        ALTER EVENT TRIGGER headwater_admit DISABLE;
        ALTER EXTENSION plpgsql ADD EVENT TRIGGER headwater_admit;
    END IF;
END
$$;
RESET search_path;
