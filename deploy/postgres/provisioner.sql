-- The account that Headwater uses on this PostgreSQL server: able to provision, and no more. The image runs this
-- once, at the first start; an operator may run it again at any time, and it puts right what it finds.

\getenv password PROVISIONER_PASSWORD

SELECT 'CREATE ROLE headwater_provisioner'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'headwater_provisioner') \gexec

-- BYPASSRLS: for the accounts that dump one tenant's database each, whose policies may hold for its owner too.
ALTER ROLE headwater_provisioner
    LOGIN CREATEDB CREATEROLE NOSUPERUSER NOREPLICATION BYPASSRLS PASSWORD :'password';
ALTER ROLE headwater_provisioner SET createrole_self_grant = 'set, inherit';
GRANT SET ON PARAMETER temp_file_limit TO headwater_provisioner;
-- With all of the tenants' connections in use it still gets in, to end some (reserved_connections).
GRANT pg_use_reserved_connections TO headwater_provisioner;

-- A fresh cluster lets everybody in here, and a session on template1 would block every CREATE DATABASE.
REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC;
GRANT CONNECT ON DATABASE postgres TO headwater_provisioner;

-- What every tenant database is a copy of. Only a superuser can make it, because of what holds frozen tenants in it.
\getenv guard GUARD_SCRIPT
\getenv extensions_script EXTENSIONS_SCRIPT
\set extensions ''
\getenv extensions POSTGRES_EXTENSIONS
SELECT 'CREATE DATABASE headwater_template TEMPLATE template0 ENCODING ''UTF8'''
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'headwater_template') \gexec
REVOKE ALL ON DATABASE headwater_template FROM PUBLIC;
ALTER DATABASE headwater_template IS_TEMPLATE false ALLOW_CONNECTIONS true;
\connect headwater_template
\i :guard
SELECT set_config('headwater.extensions', :'extensions', false) \g /dev/null
\i :extensions_script
SELECT coalesce('; extensions ' || string_agg(extname, ',' ORDER BY extname), '') AS has
FROM pg_extension WHERE extname <> 'plpgsql' \gset
-- Rewritten, the catalogs have fewer pages and files to copy.
SELECT format('VACUUM (FULL, FREEZE) %I.%I', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND NOT c.relisshared AND n.nspname IN ('pg_catalog', 'information_schema') \gexec
\connect postgres
ALTER DATABASE headwater_template ALLOW_CONNECTIONS false;
ALTER DATABASE headwater_template IS_TEMPLATE true;
\set comment 'headwater guard 3' :has
COMMENT ON DATABASE headwater_template IS :'comment';
