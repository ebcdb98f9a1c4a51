SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.take_question_place(for_team bigint, for_user bigint, for_database bigint, asked text, by_model text, most_seconds double precision, place_seconds double precision, allowance integer, at_once integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    today timestamptz := date_trunc('day', now(), 'UTC');
    place bigint;
BEGIN
    -- A place that a crash forgets is one of a question that nobody has an answer to.
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM pg_advisory_xact_lock(hashtextextended('headwater questions ' || for_team, 0));
    UPDATE query_executions SET finished_at = now(), counts = coalesce(counts, false),
           outcome = CASE WHEN verdict = 'allowed' THEN 'unknown' ELSE 'abandoned' END
    WHERE team_id = for_team AND outcome IS NULL AND created_at < now() - make_interval(secs => most_seconds);
    IF allowance <= (
        SELECT count(*) FROM query_executions
        WHERE team_id = for_team AND created_at >= today AND counts IS NOT FALSE AND (counts OR reserved_until > now())
    ) THEN
        RETURN NULL;
    END IF;
    IF at_once <= (SELECT count(*) FROM query_executions 
                    WHERE team_id = for_team AND outcome IS NULL AND (counts OR reserved_until > now())) THEN
        RETURN -1;
    END IF;
    INSERT INTO query_executions (team_id, user_id, database_id, question, model, reserved_until)
    VALUES (for_team, for_user, for_database, asked, by_model, now() + make_interval(secs => place_seconds))
    RETURNING id INTO place;
    RETURN place;
END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.api_key_usage (
    id bigint NOT NULL,
    key_id bigint NOT NULL,
    last_used_at timestamp with time zone,
    window_start timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    window_count integer DEFAULT 0 NOT NULL,
    month date DEFAULT CURRENT_DATE NOT NULL,
    month_count bigint DEFAULT 0 NOT NULL,
    month_added integer DEFAULT 0 NOT NULL
);
CREATE SEQUENCE public.api_key_usage_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.api_key_usage_id_seq OWNED BY public.api_key_usage.id;
CREATE TABLE public.api_keys (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    preview text DEFAULT ''::text NOT NULL,
    hash bytea DEFAULT '\x'::bytea NOT NULL,
    scopes text[] DEFAULT '{}'::text[] NOT NULL,
    requests_per_minute integer DEFAULT 120 NOT NULL,
    monthly_quota integer,
    allowed_ips text[] DEFAULT '{}'::text[] NOT NULL,
    inactive_ttl_days integer,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.api_keys_id_seq OWNED BY public.api_keys.id;
CREATE TABLE public.blueprint_applications (
    id bigint NOT NULL,
    blueprint_id bigint NOT NULL,
    blueprint_version integer DEFAULT 0 NOT NULL,
    database_id bigint NOT NULL,
    requested_by_id bigint,
    status text DEFAULT 'pending'::text NOT NULL,
    is_dry_run boolean DEFAULT false NOT NULL,
    at_creation boolean DEFAULT false NOT NULL,
    definitions jsonb,
    shown_values jsonb,
    values_sealed bytea,
    statements_total integer DEFAULT 0 NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    session_reference text,
    scratch_name text,
    error_message text,
    total_duration_ms integer,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.blueprint_applications_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.blueprint_applications_id_seq OWNED BY public.blueprint_applications.id;
CREATE TABLE public.blueprint_statements (
    id bigint NOT NULL,
    application_id bigint NOT NULL,
    index integer DEFAULT 0 NOT NULL,
    line integer DEFAULT 0 NOT NULL,
    kind text DEFAULT ''::text NOT NULL,
    sql text DEFAULT ''::text NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    rows bigint,
    duration_ms integer,
    error_code text,
    error_message text,
    note text
);
CREATE SEQUENCE public.blueprint_statements_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.blueprint_statements_id_seq OWNED BY public.blueprint_statements.id;
CREATE TABLE public.blueprint_versions (
    id bigint NOT NULL,
    blueprint_id bigint NOT NULL,
    version integer DEFAULT 0 NOT NULL,
    sql_content text DEFAULT ''::text NOT NULL,
    size_bytes integer DEFAULT 0 NOT NULL,
    variables jsonb,
    metadata jsonb,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.blueprint_versions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.blueprint_versions_id_seq OWNED BY public.blueprint_versions.id;
CREATE TABLE public.blueprints (
    id bigint NOT NULL,
    uuid uuid DEFAULT gen_random_uuid() NOT NULL,
    team_id bigint,
    created_by_id bigint,
    is_system boolean DEFAULT false NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    slug text DEFAULT ''::text NOT NULL,
    description text,
    version integer DEFAULT 1 NOT NULL,
    deleted_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.blueprints_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.blueprints_id_seq OWNED BY public.blueprints.id;
CREATE TABLE public.database_usage (
    id bigint NOT NULL,
    database_id bigint NOT NULL,
    measured_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    storage_bytes bigint DEFAULT 0 NOT NULL,
    connected boolean DEFAULT false NOT NULL,
    runtime_month date DEFAULT CURRENT_DATE NOT NULL,
    runtime_seconds double precision DEFAULT 0.0 NOT NULL,
    runtime_excused date,
    warned_at timestamp with time zone,
    frozen_bytes bigint,
    growing integer DEFAULT 0 NOT NULL,
    judged_at timestamp with time zone,
    own_login_until timestamp with time zone,
    storage_measured_at timestamp with time zone,
    measured_alone_at timestamp with time zone,
    unmeasured_since timestamp with time zone,
    measure_failures integer DEFAULT 0 NOT NULL,
    measure_failure text,
    reclaimed_at timestamp with time zone
);
CREATE SEQUENCE public.database_usage_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.database_usage_id_seq OWNED BY public.database_usage.id;
CREATE TABLE public.databases (
    id bigint NOT NULL,
    uuid uuid DEFAULT gen_random_uuid() NOT NULL,
    team_id bigint,
    created_by_id bigint,
    name text DEFAULT ''::text NOT NULL,
    engine text DEFAULT ''::text NOT NULL,
    region text DEFAULT ''::text NOT NULL,
    plan text DEFAULT ''::text NOT NULL,
    status text DEFAULT ''::text NOT NULL,
    host_id bigint NOT NULL,
    engine_name text DEFAULT ''::text NOT NULL,
    password_sealed bytea,
    storage_hard_limit_gb double precision,
    connection_hard_limit integer,
    warning_threshold_pct integer,
    connections integer DEFAULT 0 NOT NULL,
    limits_revision integer DEFAULT 0 NOT NULL,
    limits_applied integer DEFAULT 0 NOT NULL,
    remote_since timestamp with time zone,
    provisioned_at timestamp with time zone,
    deleted_at timestamp with time zone,
    cancelled_provision_jobs integer DEFAULT 0 NOT NULL,
    revoked_at timestamp with time zone,
    destroy_at timestamp with time zone,
    destroyed_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "position" bigint NOT NULL,
    verified_at timestamp with time zone,
    access_applied integer DEFAULT 0 NOT NULL,
    access_changed_at timestamp with time zone,
    access_revision integer DEFAULT 0 NOT NULL,
    frozen_at timestamp with time zone,
    paused_reason text,
    deletion_revision integer DEFAULT 0 NOT NULL,
    login_tried_at timestamp with time zone,
    credentials_refused_at timestamp with time zone
);
CREATE SEQUENCE public.databases_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.databases_id_seq OWNED BY public.databases.id;
CREATE SEQUENCE public.databases_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.databases_position_seq OWNED BY public.databases."position";
CREATE TABLE public.engine_hosts (
    id bigint NOT NULL,
    engine text DEFAULT ''::text NOT NULL,
    flavour text DEFAULT ''::text NOT NULL,
    version text DEFAULT ''::text NOT NULL,
    region text DEFAULT ''::text NOT NULL,
    host text DEFAULT ''::text NOT NULL,
    port integer DEFAULT 0 NOT NULL,
    admin_sealed bytea,
    capacity integer DEFAULT 0 NOT NULL,
    connection_capacity integer DEFAULT 0 NOT NULL,
    draining boolean DEFAULT false NOT NULL,
    sick_until timestamp with time zone,
    sick_reason text,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    removed_at timestamp with time zone,
    tls text DEFAULT 'prefer'::text NOT NULL,
    tls_ca text,
    extensions text[] DEFAULT '{}'::text[] NOT NULL
);
CREATE SEQUENCE public.engine_hosts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.engine_hosts_id_seq OWNED BY public.engine_hosts.id;
CREATE TABLE public.events (
    id bigint NOT NULL,
    uuid uuid DEFAULT gen_random_uuid() NOT NULL,
    type text DEFAULT ''::text NOT NULL,
    database_id bigint,
    team_id bigint NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    dispatched_at timestamp with time zone
);
CREATE SEQUENCE public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.events_id_seq OWNED BY public.events.id;
CREATE TABLE public.findings (
    id bigint NOT NULL,
    host_id bigint,
    rule text DEFAULT ''::text NOT NULL,
    subject text DEFAULT ''::text NOT NULL,
    mark text DEFAULT ''::text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    first_seen_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    last_seen_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.findings_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.findings_id_seq OWNED BY public.findings.id;
CREATE TABLE public.idempotency_keys (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    key text DEFAULT ''::text NOT NULL,
    fingerprint bytea DEFAULT '\x'::bytea NOT NULL,
    owner uuid,
    locked_until timestamp with time zone,
    resource text,
    response_status integer,
    response_sealed bytea,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    expires_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.idempotency_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.idempotency_keys_id_seq OWNED BY public.idempotency_keys.id;
CREATE TABLE public.installation (
    id uuid DEFAULT gen_random_uuid() NOT NULL
);
CREATE TABLE public.memberships (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    team_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.memberships_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.memberships_id_seq OWNED BY public.memberships.id;
CREATE TABLE public.migration (
    id integer NOT NULL,
    name character varying(200) DEFAULT ''::character varying NOT NULL,
    app_name character varying(200) DEFAULT ''::character varying NOT NULL,
    ran_on timestamp without time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.migration_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.migration_id_seq OWNED BY public.migration.id;
CREATE TABLE public.pool_targets (
    id bigint NOT NULL,
    region text DEFAULT ''::text NOT NULL,
    engine text DEFAULT ''::text NOT NULL,
    size integer,
    setting integer
);
CREATE SEQUENCE public.pool_targets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.pool_targets_id_seq OWNED BY public.pool_targets.id;
CREATE TABLE public.query_executions (
    id bigint NOT NULL,
    team_id bigint NOT NULL,
    user_id bigint,
    database_id bigint,
    question text DEFAULT ''::text NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    counts boolean,
    reserved_until timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    declared_kind text,
    sql text,
    sql_class text,
    verdict text,
    reason text,
    outcome text,
    error_code text,
    turns integer DEFAULT 0 NOT NULL,
    prompt_tokens bigint DEFAULT 0 NOT NULL,
    completion_tokens bigint DEFAULT 0 NOT NULL,
    row_count bigint,
    truncated boolean DEFAULT false NOT NULL,
    model_ms integer,
    duration_ms integer,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    finished_at timestamp with time zone
);
CREATE SEQUENCE public.query_executions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.query_executions_id_seq OWNED BY public.query_executions.id;
CREATE TABLE public.query_readers (
    id bigint NOT NULL,
    database_id bigint NOT NULL,
    password_sealed bytea DEFAULT '\x'::bytea NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.query_readers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.query_readers_id_seq OWNED BY public.query_readers.id;
CREATE TABLE public.teams (
    id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    tier text DEFAULT 'free'::text NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    queries text DEFAULT 'ddl'::text NOT NULL
);
CREATE SEQUENCE public.teams_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.teams_id_seq OWNED BY public.teams.id;
CREATE TABLE public.users (
    id bigint NOT NULL,
    email text DEFAULT ''::text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.users_id_seq OWNED BY public.users.id;
CREATE TABLE public.webhook_attempts (
    id bigint NOT NULL,
    delivery_id bigint NOT NULL,
    response_code integer,
    error_message text,
    response_body text,
    duration_ms integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.webhook_attempts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.webhook_attempts_id_seq OWNED BY public.webhook_attempts.id;
CREATE TABLE public.webhook_deliveries (
    id bigint NOT NULL,
    webhook_id text DEFAULT ''::text NOT NULL,
    endpoint_id bigint NOT NULL,
    event_id bigint,
    event_type text DEFAULT ''::text NOT NULL,
    payload text,
    status text DEFAULT 'pending'::text NOT NULL,
    response_code integer,
    error_message text,
    attempt_count integer DEFAULT 0 NOT NULL,
    round integer DEFAULT 0 NOT NULL,
    spent integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    round_started_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    finished_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    waiting boolean DEFAULT false NOT NULL,
    CONSTRAINT webhook_deliveries_pending_if_waiting CHECK (((NOT waiting) OR ((status = 'pending'::text) AND (next_attempt_at IS NOT NULL))))
);
CREATE SEQUENCE public.webhook_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.webhook_deliveries_id_seq OWNED BY public.webhook_deliveries.id;
CREATE TABLE public.webhook_endpoints (
    id bigint NOT NULL,
    team_id bigint NOT NULL,
    created_by_id bigint,
    url text DEFAULT ''::text NOT NULL,
    events text[] DEFAULT '{}'::text[] NOT NULL,
    last_success_at timestamp with time zone,
    last_failure_at timestamp with time zone,
    slow_failures integer DEFAULT 0 NOT NULL,
    circuit_until timestamp with time zone,
    revoked_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    next_attempt_at timestamp with time zone,
    claimed_by uuid,
    claimed_until timestamp with time zone
);
CREATE SEQUENCE public.webhook_endpoints_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.webhook_endpoints_id_seq OWNED BY public.webhook_endpoints.id;
CREATE TABLE public.webhook_secrets (
    id bigint NOT NULL,
    uuid uuid DEFAULT gen_random_uuid() NOT NULL,
    endpoint_id bigint NOT NULL,
    secret_sealed bytea DEFAULT '\x'::bytea NOT NULL,
    expires_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
CREATE SEQUENCE public.webhook_secrets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.webhook_secrets_id_seq OWNED BY public.webhook_secrets.id;
CREATE TABLE public.workflow_starts (
    id bigint NOT NULL,
    workflow text DEFAULT ''::text NOT NULL,
    workflow_id text DEFAULT ''::text NOT NULL,
    input jsonb DEFAULT '{}'::jsonb NOT NULL,
    priority integer DEFAULT 3 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    next_attempt_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    summary text DEFAULT ''::text NOT NULL,
    signal text
);
CREATE SEQUENCE public.workflow_starts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.workflow_starts_id_seq OWNED BY public.workflow_starts.id;
ALTER TABLE ONLY public.api_key_usage ALTER COLUMN id SET DEFAULT nextval('public.api_key_usage_id_seq'::regclass);
ALTER TABLE ONLY public.api_keys ALTER COLUMN id SET DEFAULT nextval('public.api_keys_id_seq'::regclass);
ALTER TABLE ONLY public.blueprint_applications ALTER COLUMN id SET DEFAULT nextval('public.blueprint_applications_id_seq'::regclass);
ALTER TABLE ONLY public.blueprint_statements ALTER COLUMN id SET DEFAULT nextval('public.blueprint_statements_id_seq'::regclass);
ALTER TABLE ONLY public.blueprint_versions ALTER COLUMN id SET DEFAULT nextval('public.blueprint_versions_id_seq'::regclass);
ALTER TABLE ONLY public.blueprints ALTER COLUMN id SET DEFAULT nextval('public.blueprints_id_seq'::regclass);
ALTER TABLE ONLY public.database_usage ALTER COLUMN id SET DEFAULT nextval('public.database_usage_id_seq'::regclass);
ALTER TABLE ONLY public.databases ALTER COLUMN id SET DEFAULT nextval('public.databases_id_seq'::regclass);
ALTER TABLE ONLY public.databases ALTER COLUMN "position" SET DEFAULT nextval('public.databases_position_seq'::regclass);
ALTER TABLE ONLY public.engine_hosts ALTER COLUMN id SET DEFAULT nextval('public.engine_hosts_id_seq'::regclass);
ALTER TABLE ONLY public.events ALTER COLUMN id SET DEFAULT nextval('public.events_id_seq'::regclass);
ALTER TABLE ONLY public.findings ALTER COLUMN id SET DEFAULT nextval('public.findings_id_seq'::regclass);
ALTER TABLE ONLY public.idempotency_keys ALTER COLUMN id SET DEFAULT nextval('public.idempotency_keys_id_seq'::regclass);
ALTER TABLE ONLY public.memberships ALTER COLUMN id SET DEFAULT nextval('public.memberships_id_seq'::regclass);
ALTER TABLE ONLY public.migration ALTER COLUMN id SET DEFAULT nextval('public.migration_id_seq'::regclass);
ALTER TABLE ONLY public.pool_targets ALTER COLUMN id SET DEFAULT nextval('public.pool_targets_id_seq'::regclass);
ALTER TABLE ONLY public.query_executions ALTER COLUMN id SET DEFAULT nextval('public.query_executions_id_seq'::regclass);
ALTER TABLE ONLY public.query_readers ALTER COLUMN id SET DEFAULT nextval('public.query_readers_id_seq'::regclass);
ALTER TABLE ONLY public.teams ALTER COLUMN id SET DEFAULT nextval('public.teams_id_seq'::regclass);
ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);
ALTER TABLE ONLY public.webhook_attempts ALTER COLUMN id SET DEFAULT nextval('public.webhook_attempts_id_seq'::regclass);
ALTER TABLE ONLY public.webhook_deliveries ALTER COLUMN id SET DEFAULT nextval('public.webhook_deliveries_id_seq'::regclass);
ALTER TABLE ONLY public.webhook_endpoints ALTER COLUMN id SET DEFAULT nextval('public.webhook_endpoints_id_seq'::regclass);
ALTER TABLE ONLY public.webhook_secrets ALTER COLUMN id SET DEFAULT nextval('public.webhook_secrets_id_seq'::regclass);
ALTER TABLE ONLY public.workflow_starts ALTER COLUMN id SET DEFAULT nextval('public.workflow_starts_id_seq'::regclass);
COPY public.api_key_usage (id, key_id, last_used_at, window_start, window_count, month, month_count, month_added) FROM stdin;
2	2	\N	1970-01-01 00:00:00+00	0	2026-11-22	0	0
1	1	2026-11-22 06:46:25.672653+00	2026-11-22 06:46:25.419583+00	5	2026-11-01	25	1
\.
COPY public.api_keys (id, user_id, name, preview, hash, scopes, requests_per_minute, monthly_quota, allowed_ips, inactive_ttl_days, expires_at, revoked_at, created_at) FROM stdin;
1	1	Embedded stack	pk_live_pyHb…QefC	\\x40c0ca8563e9cd68801673a4e86563cbf5d8c2805f2c25ee3cbd2dbca7a0ff2c	{databases:read,databases:write,databases:*,webhooks:read,webhooks:write,blueprints:read,blueprints:write,queries:write}	100000	\N	{}	\N	\N	\N	2026-11-22 06:43:46.367457+00
2	2	first	pk_live_OWn8…KPRY	\\x7a09221d0cf54d47b5130cc3d007ef1b2097a6e98712fb3b94263d650524a29b	{databases:*}	120	\N	{}	\N	\N	\N	2026-11-22 06:45:35.482899+00
\.
COPY public.blueprint_applications (id, blueprint_id, blueprint_version, database_id, requested_by_id, status, is_dry_run, at_creation, definitions, shown_values, values_sealed, statements_total, attempt, losses, session_reference, scratch_name, error_message, total_duration_ms, started_at, completed_at, created_at) FROM stdin;
1	4	1	2	1	completed	f	f	{"note": {"type": "string", "secret": true, "required": true}, "table": {"type": "identifier", "required": true}}	{"note": "********", "table": "notes"}	\N	2	1	0	\N	\N	\N	91	2026-11-22 06:44:34.488988+00	2026-11-22 06:44:34.576691+00	2026-11-22 06:44:34.188549+00
2	4	1	1	1	rolled_back	t	f	{"note": {"type": "string", "secret": true, "required": true}, "table": {"type": "identifier", "required": true}}	{"note": "********", "table": "notes"}	\N	2	1	0	\N	\N	\N	481	2026-11-22 06:44:35.242644+00	2026-11-22 06:44:35.722299+00	2026-11-22 06:44:34.619938+00
3	4	1	3	1	completed	f	f	{"note": {"type": "string", "secret": true, "required": true}, "table": {"type": "identifier", "required": true}}	{"note": "********", "table": "notes"}	\N	2	1	0	\N	\N	\N	29	2026-11-22 06:44:35.888546+00	2026-11-22 06:44:35.914902+00	2026-11-22 06:44:35.77487+00
4	4	1	10	1	pending	f	t	{"note": {"type": "string", "secret": true, "required": true}, "table": {"type": "identifier", "required": true}}	{"note": "********", "table": "notes"}	\\x6b31006451f965c57fcef922e98a5e1a9c9757ea86124fa6260e1b7f337930624e7937c552c6cac363f9cd88233dba06b361633b559814b4b8a590d4e8995c	2	0	0	\N	\N	\N	\N	\N	\N	2026-11-22 06:46:25.560512+00
\.
COPY public.blueprint_statements (id, application_id, index, line, kind, sql, status, rows, duration_ms, error_code, error_message, note) FROM stdin;
1	1	1	1	CREATE TABLE	CREATE TABLE "notes" (id integer PRIMARY KEY, note varchar(200) NOT NULL)	succeeded	\N	26	\N	\N	\N
2	1	2	2	INSERT	INSERT INTO "notes" VALUES (1, '***')	succeeded	1	1	\N	\N	\N
3	2	1	1	CREATE TABLE	CREATE TABLE `notes` (id integer PRIMARY KEY, note varchar(200) NOT NULL)	succeeded	\N	22	\N	\N	ran on a throw-away copy of the schema, without its data; this engine can't roll back
4	2	2	2	INSERT	INSERT INTO `notes` VALUES (1, '***')	succeeded	1	4	\N	\N	ran on a throw-away copy of the schema, without its data; this engine can't roll back
5	3	1	1	CREATE TABLE	CREATE TABLE "notes" (id integer PRIMARY KEY, note varchar(200) NOT NULL)	succeeded	\N	6	\N	\N	\N
6	3	2	2	INSERT	INSERT INTO "notes" VALUES (1, '***')	succeeded	1	1	\N	\N	\N
\.
COPY public.blueprint_versions (id, blueprint_id, version, sql_content, size_bytes, variables, metadata, created_at) FROM stdin;
1	1	1	-- Users, the sessions that they are logged in with, and the roles that they have.\n-- Identifiers are UUIDs that the application makes; secrets are kept as digests only.\n\nCREATE TABLE users (\n    id varchar(36) PRIMARY KEY,\n    email varchar(254) NOT NULL UNIQUE,\n    display_name varchar(200) NOT NULL,\n    password_hash varchar(255),\n    email_verified_at timestamp NULL,\n    disabled_at timestamp NULL,\n    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP\n);\n\nCREATE TABLE roles (\n    name varchar(50) PRIMARY KEY,\n    description varchar(500) NOT NULL\n);\n\nCREATE TABLE user_roles (\n    user_id varchar(36) NOT NULL,\n    role_name varchar(50) NOT NULL,\n    granted_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n    PRIMARY KEY (user_id, role_name),\n    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,\n    FOREIGN KEY (role_name) REFERENCES roles (name) ON DELETE CASCADE\n);\n\nCREATE TABLE sessions (\n    token_digest char(64) PRIMARY KEY,\n    user_id varchar(36) NOT NULL,\n    user_agent varchar(500),\n    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n    expires_at timestamp NOT NULL,\n    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE\n);\n\nCREATE INDEX sessions_of_user ON sessions (user_id);\nCREATE INDEX sessions_by_expiry ON sessions (expires_at);\nCREATE INDEX user_roles_by_role ON user_roles (role_name);\n\nINSERT INTO roles (name, description) VALUES ({{admin_role}}, 'May do everything.');\n	1451	{"admin_role": {"type": "string", "default": "admin", "pattern": "^[a-z][a-z0-9_]*$", "max_length": 50}}	{"dialects": ["postgres", "mysql"], "extensions": [], "statement_count": 8, "statements_left_out": 0}	2026-11-22 06:43:46.309505+00
2	2	1	-- Who did what, when, and to what: rows are added and never changed.\n\nCREATE TABLE {{audit_table}} (\n    id varchar(36) PRIMARY KEY,\n    happened_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n    actor varchar(200) NOT NULL,\n    action varchar(100) NOT NULL,\n    subject_type varchar(100) NOT NULL,\n    subject_id varchar(200) NOT NULL,\n    request_id varchar(100),\n    details text\n);\n\nCREATE INDEX {{by_subject_index}} ON {{audit_table}} (subject_type, subject_id, happened_at);\nCREATE INDEX {{by_actor_index}} ON {{audit_table}} (actor, happened_at);\n	558	{"audit_table": {"type": "identifier", "default": "audit_log"}, "by_actor_index": {"type": "identifier", "default": "audit_log_by_actor"}, "by_subject_index": {"type": "identifier", "default": "audit_log_by_subject"}}	{"dialects": ["postgres", "mysql"], "extensions": [], "statement_count": 3, "statements_left_out": 0}	2026-11-22 06:43:46.345928+00
3	3	1	-- A queue of jobs in a table. A worker takes one with\n--   SELECT … WHERE status = 'ready' AND run_at <= CURRENT_TIMESTAMP ORDER BY priority, run_at LIMIT 1\n--   FOR UPDATE SKIP LOCKED\n-- and sets it to 'running'. What fails is tried again until its attempts are spent.\n\nCREATE TABLE {{queue_table}} (\n    id varchar(36) PRIMARY KEY,\n    kind varchar(100) NOT NULL,\n    payload text NOT NULL,\n    status varchar(10) NOT NULL DEFAULT 'ready',\n    priority integer NOT NULL DEFAULT 100,\n    attempts integer NOT NULL DEFAULT 0,\n    max_attempts integer NOT NULL DEFAULT {{max_attempts}},\n    run_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n    locked_until timestamp NULL,\n    last_error text,\n    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n    finished_at timestamp NULL,\n    CHECK (status IN ('ready', 'running', 'done', 'dead')),\n    CHECK (attempts <= max_attempts)\n);\n\nCREATE INDEX {{due_index}} ON {{queue_table}} (status, priority, run_at);\n	968	{"due_index": {"type": "identifier", "default": "jobs_due"}, "queue_table": {"type": "identifier", "default": "jobs"}, "max_attempts": {"max": 1000, "min": 1, "type": "integer", "default": 5}}	{"dialects": ["postgres", "mysql"], "extensions": [], "statement_count": 2, "statements_left_out": 0}	2026-11-22 06:43:46.355632+00
4	4	1	CREATE TABLE {{table}} (id integer PRIMARY KEY, note varchar(200) NOT NULL);\nINSERT INTO {{table}} VALUES (1, {{note}});\n	121	{"note": {"type": "string", "secret": true, "required": true}, "table": {"type": "identifier", "required": true}}	{"dialects": ["postgres", "mysql"], "extensions": [], "statement_count": 2, "statements_left_out": 0}	2026-11-22 06:44:32.797464+00
\.
COPY public.blueprints (id, uuid, team_id, created_by_id, is_system, name, slug, description, version, deleted_at, created_at, updated_at) FROM stdin;
1	e826f57c-1698-4bfd-a25a-44cb32f8d17b	\N	\N	t	Accounts	accounts	Users, their roles and their sessions.	1	\N	2026-11-22 06:43:46.309505+00	2026-11-22 06:43:46.309505+00
2	1e7d2035-a3c8-47ed-a39d-077e87546431	\N	\N	t	Audit log	audit-log	Who did what, when, and to what.	1	\N	2026-11-22 06:43:46.345928+00	2026-11-22 06:43:46.345928+00
3	f917c9a4-997e-4f7a-a586-3a56415433a5	\N	\N	t	Job queue	job-queue	Jobs in a table, taken one by one with SKIP LOCKED.	1	\N	2026-11-22 06:43:46.355632+00	2026-11-22 06:43:46.355632+00
4	8a91dbd3-7e8f-4e0a-9246-7c79c895aef8	1	1	f	Notes	notes	One table for short notes.	1	\N	2026-11-22 06:44:32.797464+00	2026-11-22 06:44:32.797464+00
\.
COPY public.database_usage (id, database_id, measured_at, storage_bytes, connected, runtime_month, runtime_seconds, runtime_excused, warned_at, frozen_bytes, growing, judged_at, own_login_until, storage_measured_at, measured_alone_at, unmeasured_since, measure_failures, measure_failure, reclaimed_at) FROM stdin;
5	4	2026-11-22 06:44:34.569469+00	6600383	f	2026-11-01	0	\N	\N	\N	0	\N	2026-11-22 06:44:40.909873+00	2026-11-22 06:44:34.569469+00	\N	\N	0	\N	\N
2	7	2026-11-22 06:44:34.569469+00	0	f	2026-11-01	0	\N	\N	\N	0	\N	2026-11-22 06:44:40.732404+00	2026-11-22 06:44:34.569469+00	\N	\N	0	\N	\N
1	1	2026-11-22 06:46:18.324108+00	0	f	2026-11-01	0	\N	\N	\N	0	\N	2026-11-22 06:45:40.517298+00	2026-11-22 06:46:18.324108+00	\N	\N	0	\N	\N
3	2	2026-11-22 06:46:18.324108+00	6657727	f	2026-11-01	0	\N	\N	\N	0	\N	2026-11-22 06:46:22.021333+00	2026-11-22 06:46:18.324108+00	\N	\N	0	\N	\N
4	3	2026-11-22 06:46:18.324108+00	0	f	2026-11-01	0	\N	\N	\N	0	\N	2026-11-22 06:46:22.021368+00	2026-11-22 06:46:18.324108+00	\N	\N	0	\N	\N
\.
COPY public.databases (id, uuid, team_id, created_by_id, name, engine, region, plan, status, host_id, engine_name, password_sealed, storage_hard_limit_gb, connection_hard_limit, warning_threshold_pct, connections, limits_revision, limits_applied, remote_since, provisioned_at, deleted_at, cancelled_provision_jobs, revoked_at, destroy_at, destroyed_at, created_at, updated_at, "position", verified_at, access_applied, access_changed_at, access_revision, frozen_at, paused_reason, deletion_revision, login_tried_at, credentials_refused_at) FROM stdin;
1	ddff8953-802b-4f4b-a3d7-74fc22ad17bc	1	1	carts	mysql	us-east-1	free	paused	2	tx4xftaeihjngxznsctiibs	\\x6b3100924554c1bbbcc30d34e1adb45e923d33517a4e7afc324780cfab53b02136e6244e1e95cd9949f7b756e822f131cc5cfcdef98cd7a861d73afbcd4951	\N	\N	\N	10	0	0	2026-11-22 06:43:50.720581+00	2026-11-22 06:44:32.893018+00	\N	0	\N	\N	\N	2026-11-22 06:44:32.893018+00	2026-11-22 06:45:43.591988+00	5	\N	1	2026-11-22 06:45:43.591988+00	1	\N	operator	0	2026-11-22 06:45:40.466101+00	\N
8	ef771dd5-534e-40cf-8c87-c515dff839b6	\N	\N		mysql	us-east-1	free	active	2	tck7qtmwmgnsueip7uaobbi	\\x6b31003172a9cbcc4efa0083381ec09f0e366d71b399c5a71dca5f97b3c794048ef18d1f3d61e9c59a9a86b0aa51c091edaecca71a51d295f1b5ee46b35db1	\N	\N	\N	10	0	0	2026-11-22 06:45:39.971515+00	2026-11-22 06:45:40.203288+00	\N	0	\N	\N	\N	2026-11-22 06:45:39.909095+00	2026-11-22 06:45:40.203288+00	11	\N	0	\N	0	\N	\N	0	2026-11-22 06:46:20.907835+00	\N
2	ea21ec55-06fd-46e3-8112-82677b00b78c	1	1	orders	postgres	us-east-1	free	active	1	tw2rxfnqcdy7ppd5i4upw5t	\\x6b3100290980a72eb36be38bc093e75d1562113d624a7bf406cc1a66d2ddea8c2d2e089cdc2f679e027a7f02c3a9083fe73940cbb95ba466e5374cad806755	\N	5	\N	5	1	1	2026-11-22 06:43:50.834133+00	2026-11-22 06:44:32.867719+00	\N	0	\N	\N	\N	2026-11-22 06:44:32.867719+00	2026-11-22 06:44:35.946714+00	4	\N	0	\N	0	\N	\N	0	2026-11-22 06:46:21.92267+00	\N
3	b764988d-5058-4f3d-9945-2f1992c86ce3	1	1	reports	postgres	us-east-1	free	active	1	tnpuwmku2sijbda3ps4qyf6	\\x6b3100856559afcb18876439bee353e505af10591c334a3562a489648bdbc5d6d45221e4f1d38f693b270573d3314a72e51f612dbf7f2be8d0370b2b648a8a	\N	\N	\N	10	0	0	2026-11-22 06:44:33.082648+00	2026-11-22 06:44:33.345518+00	\N	0	\N	\N	\N	2026-11-22 06:44:32.922236+00	2026-11-22 06:44:33.345518+00	6	\N	0	\N	0	\N	\N	0	2026-11-22 06:46:21.92267+00	\N
4	5dac4d2f-4104-4a69-8c06-f6f3deb68383	1	1	old-orders	postgres	us-east-1	free	deleted	1	trdp6xwargztlstxixjejhq	\\x6b31001f0943be70ac482b430ecd27a9f9d2363795e116c88f99b174a4af316de859b757580b653d37ed4f065a973d6acb965df0b49259dbb009e5e6410734	\N	\N	\N	10	0	0	2026-11-22 06:44:33.50654+00	2026-11-22 06:44:33.73703+00	2026-11-22 06:44:42.637647+00	0	2026-11-22 06:44:42.923481+00	2026-11-23 06:44:42.658366+00	\N	2026-11-22 06:44:33.371735+00	2026-11-22 06:44:42.637647+00	7	\N	0	\N	0	\N	\N	1	2026-11-22 06:44:40.729329+00	\N
7	3cd8a12b-2b36-45d2-8c52-22bb8a22e0fb	1	1	old-carts	mysql	us-east-1	free	deleted	2	t7jlpua5pthc6pfu4p3iyfw	\\x6b310061345f9dbacf28a17ca2e2ba830e2d1b7f95b6edcee7e02715675462f159d599350faca0aaef61d90e3cc06e6bd5cdc8235ed8637f9b178551578e95	\N	\N	\N	10	0	0	2026-11-22 06:44:34.014772+00	2026-11-22 06:44:34.129138+00	2026-11-22 06:44:42.940645+00	0	2026-11-22 06:44:43.240632+00	2026-11-23 06:44:42.952654+00	\N	2026-11-22 06:44:33.774399+00	2026-11-22 06:44:42.940645+00	10	\N	0	\N	0	\N	\N	1	2026-11-22 06:44:40.686421+00	\N
6	1ebbca1e-79cf-4bdb-a720-bee58ca6360f	1	1	more-0	postgres	us-east-1	free	active	1	tn45ubqkxzsijxtl3oxtmvw	\\x6b310003e77dd216996f1f2ef2b9e46399614dad68557867ff111ab512ddad113db17038fffdc181837eaeb5a90dcad326cf61b85f2a4d552c5189028d5616	\N	\N	\N	10	0	0	2026-11-22 06:44:33.595152+00	2026-11-22 06:46:25.443791+00	\N	0	\N	\N	\N	2026-11-22 06:46:25.443791+00	2026-11-22 06:46:25.443791+00	12	\N	0	\N	0	\N	\N	0	2026-11-22 06:46:21.92267+00	\N
9	193664dd-7961-4765-ab39-36985932f03e	1	1	more-1	postgres	us-east-1	free	provisioning	1	tsas3t7urqbdbowepp7ollk	\\x6b31008776d18bbd579caa0ed6e1d57ffd6337c945da4eab16b37cf456f9c7bc53f34eba9325b74dcc85e04e820b575cc2b317ed7d00d2670c820fb404a233	\N	\N	\N	10	0	0	\N	\N	\N	0	\N	\N	\N	2026-11-22 06:46:25.48335+00	2026-11-22 06:46:25.48335+00	13	\N	0	\N	0	\N	\N	0	\N	\N
10	800dec75-ec18-4188-8bf9-7b424b59697c	1	1	under-way	postgres	us-east-1	free	provisioning	1	tohp5nedqazmfarjtq5ooad	\\x6b3100cc459c1fc93dff3a3e8c360a671364f921015e83651b08f47f3888aef49e1b9974a57972fb9a2742ae7ef8b10feea92327d65cc1b1db767aae052989	\N	\N	\N	10	0	0	\N	\N	\N	0	\N	\N	\N	2026-11-22 06:46:25.560512+00	2026-11-22 06:46:25.560512+00	14	\N	0	\N	0	\N	\N	0	\N	\N
5	8ccb899f-0bb5-4301-b5ca-a1e2d6ed29de	1	1	under-way-2	mysql	us-east-1	free	active	2	t4hdbftt5ojb7d4pku44fdm	\\x6b3100c3fa92cab4c05a80076b542c0d70e2538596d9985bc78ed5acfcb557a14ea329a9dcb4787c48aba17af774cefd26343cb2f5428cdc43d8f2b1892c81	\N	\N	\N	10	0	0	2026-11-22 06:44:33.652264+00	2026-11-22 06:46:25.672653+00	\N	0	\N	\N	\N	2026-11-22 06:46:25.672653+00	2026-11-22 06:46:25.672653+00	15	\N	0	\N	0	\N	\N	0	2026-11-22 06:46:20.907835+00	\N
\.
COPY public.engine_hosts (id, engine, flavour, version, region, host, port, admin_sealed, capacity, connection_capacity, draining, sick_until, sick_reason, created_at, removed_at, tls, tls_ca, extensions) FROM stdin;
1	postgres	postgres	18.6	us-east-1	127.0.0.1	15432	\\x6b3100ad7e59f73cdac2fe1fba6156b100e698bfa2b5c7b808b5d1ecc0b0ea636af08a884f91c5ee74f1d63a0a7e7ee252b200f36d535e650b4ecad20f7a9fe91e99e0e5f92747b0c417a78e2f8452ba5a50ca517bd18c48adc6d0bf73cdc63e05a4a57fd57efbc09dce60c741e73d665991475cf5ad3aab45291f05644e10ceead757dc91043381f99b63fbb7fddc055e7a749c2fc567434782c0a88a3ca62330875c47b580cb10417bab3c721a1836111f8f	1000	3997	f	\N	\N	2026-11-22 06:43:46.221021+00	\N	disable	\N	{btree_gin,btree_gist,citext,cube,dict_int,fuzzystrmatch,hstore,intarray,isn,lo,ltree,pg_trgm,plpgsql,seg,tablefunc,tcn,tsm_system_rows,tsm_system_time,unaccent}
2	mysql	mariadb	10.11.19-MariaDB-0+deb12u1	us-east-1	127.0.0.1	13306	\\x6b3100cb630ef09a8c47a86c36c68db452c4fcf46dbe0ea9979d6fe9e85706cac0a1dfa6058d17c501949e171946a43fd4018ead9761954eeaa15a0906d1f9a304431a464000f61a892825dab22ee3a79af4948f3bae95abe61ee18e074e07cf15ead7b7ac17c7668ec54f424006c7fa1f95704f1ce44a123d5ca15a26affc51d58710df1a26e97684f99c3ac55157d694e695ca8aeba237838ba6fa16	1000	4000	f	\N	\N	2026-11-22 06:43:46.281286+00	\N	disable	\N	{}
\.
COPY public.events (id, uuid, type, database_id, team_id, payload, created_at, dispatched_at) FROM stdin;
1	c6be93b8-df4e-4434-9ad8-2aa5525a427b	database.provisioned	2	1	{"data": {"host": "127.0.0.1", "name": "orders", "plan": "free", "port": 15432, "uuid": "ea21ec55-06fd-46e3-8112-82677b00b78c", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "active", "db_name": "tw2rxfnqcdy7ppd5i4upw5t", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:32.867719Z", "updated_at": "2026-11-22T06:44:32.867719Z", "db_username": "tw2rxfnqcdy7ppd5i4upw5t", "connection_string": "postgresql://tw2rxfnqcdy7ppd5i4upw5t:********@127.0.0.1:15432/tw2rxfnqcdy7ppd5i4upw5t"}, "event": "database.provisioned", "timestamp": "2026-11-22T06:44:32.881942+00:00"}	2026-11-22 06:44:32.8832+00	2026-11-22 06:44:32.919495+00
2	4aa4d8aa-d62a-48f9-a25c-c11617c60ec9	database.provisioned	1	1	{"data": {"host": "127.0.0.1", "name": "carts", "plan": "free", "port": 13306, "uuid": "ddff8953-802b-4f4b-a3d7-74fc22ad17bc", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "active", "db_name": "tx4xftaeihjngxznsctiibs", "db_type": "mysql", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:32.893018Z", "updated_at": "2026-11-22T06:44:32.893018Z", "db_username": "tx4xftaeihjngxznsctiibs", "connection_string": "mysql://tx4xftaeihjngxznsctiibs:********@127.0.0.1:13306/tx4xftaeihjngxznsctiibs"}, "event": "database.provisioned", "timestamp": "2026-11-22T06:44:32.895851+00:00"}	2026-11-22 06:44:32.89606+00	2026-11-22 06:44:32.919495+00
3	9968f168-bac8-4534-bb23-6675d59fa66a	database.provisioning_started	3	1	{"data": {"host": "127.0.0.1", "name": "reports", "plan": "free", "port": 15432, "uuid": "b764988d-5058-4f3d-9945-2f1992c86ce3", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "provisioning", "db_name": "tnpuwmku2sijbda3ps4qyf6", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:32.922236Z", "updated_at": "2026-11-22T06:44:32.922236Z", "db_username": "tnpuwmku2sijbda3ps4qyf6", "connection_string": "postgresql://tnpuwmku2sijbda3ps4qyf6:********@127.0.0.1:15432/tnpuwmku2sijbda3ps4qyf6"}, "event": "database.provisioning_started", "timestamp": "2026-11-22T06:44:32.961576+00:00"}	2026-11-22 06:44:32.922236+00	2026-11-22 06:44:33.081946+00
4	85b3015c-deda-483c-8a1b-50222c00efe5	database.provisioned	3	1	{"data": {"host": "127.0.0.1", "name": "reports", "plan": "free", "port": 15432, "uuid": "b764988d-5058-4f3d-9945-2f1992c86ce3", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "active", "db_name": "tnpuwmku2sijbda3ps4qyf6", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:32.922236Z", "updated_at": "2026-11-22T06:44:33.345518Z", "db_username": "tnpuwmku2sijbda3ps4qyf6", "connection_string": "postgresql://tnpuwmku2sijbda3ps4qyf6:********@127.0.0.1:15432/tnpuwmku2sijbda3ps4qyf6"}, "event": "database.provisioned", "timestamp": "2026-11-22T06:44:33.346510+00:00"}	2026-11-22 06:44:33.345518+00	2026-11-22 06:44:33.354635+00
5	9c3be3d4-bf14-4bd7-b4bc-de3844c75ff8	database.provisioning_started	4	1	{"data": {"host": "127.0.0.1", "name": "old-orders", "plan": "free", "port": 15432, "uuid": "5dac4d2f-4104-4a69-8c06-f6f3deb68383", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "provisioning", "db_name": "trdp6xwargztlstxixjejhq", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:33.371735Z", "updated_at": "2026-11-22T06:44:33.371735Z", "db_username": "trdp6xwargztlstxixjejhq", "connection_string": "postgresql://trdp6xwargztlstxixjejhq:********@127.0.0.1:15432/trdp6xwargztlstxixjejhq"}, "event": "database.provisioning_started", "timestamp": "2026-11-22T06:44:33.379325+00:00"}	2026-11-22 06:44:33.371735+00	2026-11-22 06:44:33.453547+00
6	fadf5fa4-0924-4963-beea-bbb78bd3c852	database.provisioned	4	1	{"data": {"host": "127.0.0.1", "name": "old-orders", "plan": "free", "port": 15432, "uuid": "5dac4d2f-4104-4a69-8c06-f6f3deb68383", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "active", "db_name": "trdp6xwargztlstxixjejhq", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:33.371735Z", "updated_at": "2026-11-22T06:44:33.737030Z", "db_username": "trdp6xwargztlstxixjejhq", "connection_string": "postgresql://trdp6xwargztlstxixjejhq:********@127.0.0.1:15432/trdp6xwargztlstxixjejhq"}, "event": "database.provisioned", "timestamp": "2026-11-22T06:44:33.744209+00:00"}	2026-11-22 06:44:33.73703+00	2026-11-22 06:44:33.757968+00
7	3bd62cd1-a9ff-42d7-9651-9bfe1e6ca485	database.provisioning_started	7	1	{"data": {"host": "127.0.0.1", "name": "old-carts", "plan": "free", "port": 13306, "uuid": "3cd8a12b-2b36-45d2-8c52-22bb8a22e0fb", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "provisioning", "db_name": "t7jlpua5pthc6pfu4p3iyfw", "db_type": "mysql", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:33.774399Z", "updated_at": "2026-11-22T06:44:33.774399Z", "db_username": "t7jlpua5pthc6pfu4p3iyfw", "connection_string": "mysql://t7jlpua5pthc6pfu4p3iyfw:********@127.0.0.1:13306/t7jlpua5pthc6pfu4p3iyfw"}, "event": "database.provisioning_started", "timestamp": "2026-11-22T06:44:33.788564+00:00"}	2026-11-22 06:44:33.774399+00	2026-11-22 06:44:33.918609+00
8	b83085cd-9676-4721-9412-f28bfee30dca	database.provisioned	7	1	{"data": {"host": "127.0.0.1", "name": "old-carts", "plan": "free", "port": 13306, "uuid": "3cd8a12b-2b36-45d2-8c52-22bb8a22e0fb", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "active", "db_name": "t7jlpua5pthc6pfu4p3iyfw", "db_type": "mysql", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:33.774399Z", "updated_at": "2026-11-22T06:44:34.129138Z", "db_username": "t7jlpua5pthc6pfu4p3iyfw", "connection_string": "mysql://t7jlpua5pthc6pfu4p3iyfw:********@127.0.0.1:13306/t7jlpua5pthc6pfu4p3iyfw"}, "event": "database.provisioned", "timestamp": "2026-11-22T06:44:34.133291+00:00"}	2026-11-22 06:44:34.129138+00	2026-11-22 06:44:34.138598+00
9	6f49c5fc-db2f-4d08-b75b-64d67676dccd	database.deleted	4	1	{"data": {"host": "127.0.0.1", "name": "old-orders", "plan": "free", "port": 15432, "uuid": "5dac4d2f-4104-4a69-8c06-f6f3deb68383", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "deleted", "db_name": "trdp6xwargztlstxixjejhq", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:33.371735Z", "updated_at": "2026-11-22T06:44:42.637647Z", "db_username": "trdp6xwargztlstxixjejhq", "connection_string": "postgresql://trdp6xwargztlstxixjejhq:********@127.0.0.1:15432/trdp6xwargztlstxixjejhq"}, "event": "database.deleted", "timestamp": "2026-11-22T06:44:42.670809+00:00"}	2026-11-22 06:44:42.637647+00	2026-11-22 06:44:42.716272+00
10	3f57fe17-ba3c-4215-8a47-b1a0eef6ecf7	database.deleted	7	1	{"data": {"host": "127.0.0.1", "name": "old-carts", "plan": "free", "port": 13306, "uuid": "3cd8a12b-2b36-45d2-8c52-22bb8a22e0fb", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "deleted", "db_name": "t7jlpua5pthc6pfu4p3iyfw", "db_type": "mysql", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:33.774399Z", "updated_at": "2026-11-22T06:44:42.940645Z", "db_username": "t7jlpua5pthc6pfu4p3iyfw", "connection_string": "mysql://t7jlpua5pthc6pfu4p3iyfw:********@127.0.0.1:13306/t7jlpua5pthc6pfu4p3iyfw"}, "event": "database.deleted", "timestamp": "2026-11-22T06:44:42.954051+00:00"}	2026-11-22 06:44:42.940645+00	2026-11-22 06:44:42.967402+00
11	943cd041-5014-47d0-91d7-5beb703ce254	database.paused	1	1	{"data": {"host": "127.0.0.1", "name": "carts", "plan": "free", "port": 13306, "uuid": "ddff8953-802b-4f4b-a3d7-74fc22ad17bc", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "paused", "db_name": "tx4xftaeihjngxznsctiibs", "db_type": "mysql", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:44:32.893018Z", "updated_at": "2026-11-22T06:45:43.591988Z", "db_username": "tx4xftaeihjngxznsctiibs", "connection_string": "mysql://tx4xftaeihjngxznsctiibs:********@127.0.0.1:13306/tx4xftaeihjngxznsctiibs"}, "event": "database.paused", "timestamp": "2026-11-22T06:45:43.622186+00:00"}	2026-11-22 06:45:43.591988+00	2026-11-22 06:45:43.636937+00
12	512a7346-d84e-4b59-a497-dbede28b3a3b	database.provisioned	6	1	{"data": {"host": "127.0.0.1", "name": "more-0", "plan": "free", "port": 15432, "uuid": "1ebbca1e-79cf-4bdb-a720-bee58ca6360f", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "active", "db_name": "tn45ubqkxzsijxtl3oxtmvw", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:46:25.443791Z", "updated_at": "2026-11-22T06:46:25.443791Z", "db_username": "tn45ubqkxzsijxtl3oxtmvw", "connection_string": "postgresql://tn45ubqkxzsijxtl3oxtmvw:********@127.0.0.1:15432/tn45ubqkxzsijxtl3oxtmvw"}, "event": "database.provisioned", "timestamp": "2026-11-22T06:46:25.455479+00:00"}	2026-11-22 06:46:25.455713+00	2026-11-22 06:46:25.489423+00
13	9eeddda7-fbdb-4774-96f9-8403c0fc39cc	database.provisioning_started	9	1	{"data": {"host": "127.0.0.1", "name": "more-1", "plan": "free", "port": 15432, "uuid": "193664dd-7961-4765-ab39-36985932f03e", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "provisioning", "db_name": "tsas3t7urqbdbowepp7ollk", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:46:25.483350Z", "updated_at": "2026-11-22T06:46:25.483350Z", "db_username": "tsas3t7urqbdbowepp7ollk", "connection_string": "postgresql://tsas3t7urqbdbowepp7ollk:********@127.0.0.1:15432/tsas3t7urqbdbowepp7ollk"}, "event": "database.provisioning_started", "timestamp": "2026-11-22T06:46:25.501959+00:00"}	2026-11-22 06:46:25.48335+00	\N
14	3f9f2204-a015-45c9-bccc-333e559d3bf7	database.provisioning_started	10	1	{"data": {"host": "127.0.0.1", "name": "under-way", "plan": "free", "port": 15432, "uuid": "800dec75-ec18-4188-8bf9-7b424b59697c", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "provisioning", "db_name": "tohp5nedqazmfarjtq5ooad", "db_type": "postgres", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:46:25.560512Z", "updated_at": "2026-11-22T06:46:25.560512Z", "db_username": "tohp5nedqazmfarjtq5ooad", "connection_string": "postgresql://tohp5nedqazmfarjtq5ooad:********@127.0.0.1:15432/tohp5nedqazmfarjtq5ooad"}, "event": "database.provisioning_started", "timestamp": "2026-11-22T06:46:25.601370+00:00"}	2026-11-22 06:46:25.560512+00	\N
15	a69f0602-c16d-4864-bcb1-4108d7702418	database.provisioned	5	1	{"data": {"host": "127.0.0.1", "name": "under-way-2", "plan": "free", "port": 13306, "uuid": "8ccb899f-0bb5-4301-b5ca-a1e2d6ed29de", "limits": {"connection_hard_limit": 10, "storage_hard_limit_gb": 0.5, "warning_threshold_pct": 80}, "object": "database", "quotas": {"connection_hard_limit": null, "storage_hard_limit_gb": null, "warning_threshold_pct": null}, "region": "us-east-1", "status": "active", "db_name": "t4hdbftt5ojb7d4pku44fdm", "db_type": "mysql", "team_id": 1, "team_name": "Operator", "created_at": "2026-11-22T06:46:25.672653Z", "updated_at": "2026-11-22T06:46:25.672653Z", "db_username": "t4hdbftt5ojb7d4pku44fdm", "connection_string": "mysql://t4hdbftt5ojb7d4pku44fdm:********@127.0.0.1:13306/t4hdbftt5ojb7d4pku44fdm"}, "event": "database.provisioned", "timestamp": "2026-11-22T06:46:25.675352+00:00"}	2026-11-22 06:46:25.675589+00	\N
\.
COPY public.findings (id, host_id, rule, subject, mark, detail, first_seen_at, last_seen_at) FROM stdin;
1	1	missing_on_host	b764988d-5058-4f3d-9945-2f1992c86ce3		lacks its database on 127.0.0.1:15432	2026-11-22 06:46:03.052279+00	2026-11-22 06:46:22.037843+00
2	1	access_closed	b764988d-5058-4f3d-9945-2f1992c86ce3		is active, and 127.0.0.1:15432 lets nobody log in to it	2026-11-22 06:46:03.052279+00	2026-11-22 06:46:22.037843+00
3	1	active_unreachable	b764988d-5058-4f3d-9945-2f1992c86ce3		127.0.0.1:15432: database "tnpuwmku2sijbda3ps4qyf6" does not exist	2026-11-22 06:46:03.052279+00	2026-11-22 06:46:22.037843+00
\.
COPY public.idempotency_keys (id, user_id, key, fingerprint, owner, locked_until, resource, response_status, response_sealed, created_at, expires_at) FROM stdin;
1	1	d374a8af-6ce0-4123-befa-edd589187d5d	\\xab22d915098ea5a4ef4953ad819c5d4bfcf97cf28ce5c1c48a6fb0d35d6983a7	\N	\N	c00a6bcc-1b44-47a2-985f-49b0f7463beb	201	\\x6b310023d44f6ecc86774f917a82c21f6b8a8d7d4a0f338c0c0180d933ba87859049cb1769b635fec8fadfbe2345a8d5817f6934bfe1b961411b3480d61755a756c27b419e3c39a5e60de89e6b1bf52dda3cd4d88402b4ca34a5995f409d26c09a2d42f0759204e7ddc7913b11f0d1ae0b6366d31ced3f42048c2e4db0003f5953dc9712348f57d58b0bb1f7ead745ca285bf7f78c3e3be44bba987e741fe0a6573b695c18d29a87cdb078dc9ab898e9342138b73a66004eefdc3f219bdb7683ef16c69bc7350985c8e763e9bba120a053d8e0f8251078868ce2ad763ab7a4c8b9b54ba665e3b2c1da2603bbdbdb5c705926f806edc87f7aaed2b404ce52a16844cabc30e761f0a115613d2074213b5e09cd5bc3a23b7d7d1102e9c422fa6d53fb0d7c08ba07b0d96f56a08d3ba169da92a2e05158a6a9b55056f4017cd9db9783bed3bd5c76c5b6bb0dfded915a3995f8148d38e69c4e41c6233fc7849798250914c173c3948cb5e5e6e805a07e1a69d5a78137cad08a9b0a7383b65fa9c5d7404e1a442053dde3ecf65d9e9c2e7f8889b2ff6bb27c59e9b3c64dde6128e262232ab6f584369e06229517ccc6e1915d13b6f7c511338ce7945fe717f667cefee6eace56b30515d3f121ec31f9b52c	2026-11-22 06:44:32.712139+00	2026-11-23 06:44:32.712139+00
2	1	afa4003b-d9a9-4fca-8cd9-2a01238ac6b1	\\x5a6a663c58ea7183e702c28687e95dd166981ef4d0bc595a679e496cc6c398c6	\N	\N	2d329485-26d7-407b-896b-72b5330dcc15	201	\\x6b3100ffd89eed9fe17a03120ba35418e024b371a77ce88f76a2d2c60c3a8756318e8955cb54ca8caa8a16fa3e1bcf1276eb2468198dc3914a27e0a03532c29b781a0c11136c836107b1fe19db96892ce06063db64ec3297a94f1be61be350a83018a1f7c6acd81d65507503a760a0911f8529e1a601af14818f7d5543c1fe5e424205087e6a9ee056e89db2ae920ece1551f0cee8f532c760e9d22f2a688493e8175c6620c1f948b50413511eaf6f8c153464d04adba8af85d95f2c04ee5eb043dcc80604a2e49bd655022f605fd60fba17661e1998a0cb42b9d726d60249364fbcaa8171a36599bec7d246e57db8020a6b8212a4c0aab09a565c1b141f4ee1b89e89ec89d597e8c2dc150c175c2ae8512f803174602fb722ab4f19a7c78de57aa122111cc98fc1c33291c8f7a93a8e87fdd57f848ade00777a24088d05f95640ef8439970f669973af363d1359eb8a0ec786f15830264faaffd89f6d8789c513d6deb334514c43cf34b490adf9dcc414b565f9bc1cfe0d76b064201f5c3713735125383e7c4f6b0febe596bd5347286b93c96cd3db7d08fc970368f79c5102692a41ce7313fc2d17d8e14fb3a98164ad998c0b846bb3e785848337ac3e39cd2922cb7b1f9a64a74909273728ab2e	2026-11-22 06:44:32.744938+00	2026-11-23 06:44:32.744938+00
3	1	7dc074f2-0535-45a1-98ad-5eb55056440c	\\x910b875669eb3b791af72d81e98925670669a4b4aabfd6a2278c9f44239addae	\N	\N	3db9f2da-cf49-4753-8139-4ce486e075db	201	\\x6b31001792cca3abfc83ef0150b5a9bc9e98517108367d2d2d9bf041446cb8ed5bbffd002ab88e58180e778e965294c6cec0c625fdf0eeb0119bcb9260f2ca5d2c74e6dd1bc67b8525552b4ffc2a4f58f1213b53f69aa7d5ed1a6eea05971392ec9ee9661545ce7f9b9f2add4040b6f41920c0235835d9471ac0b32ca5aa5fa23105619df585bd0f22cd2e83a9cb4fe8ac9bf3a5c4130aff10908a0c1befeed9c66ba2099df981610fe59b0a2f36bacf3592bcacca17fbea2c435ec6d05d8a14e222499722dff3d63dff2ea776b0a7f54d57527ed0491454bfe80115956b1df24b2079110f43074e2a84f32977aff5b5d1b4bae6be1a522eff108581891737df516136d69cbe795ee6390f5fa18f59304e1ed27422ce19395a27c0a7378cef11838a9a4aa8344b97ccd55efc89f961874104320a588936111fb0ad60896a9cf3b2e8274c9b4133bfefe683136425e66c33c3eed90677c8b23e3b2ad83eab81557640189eec723b2a469d6a98655d864578c3be6210731a73a011c82d455ff7fd64442bf18a883b224c4e51620d5cb9c9a8fc6e3ddeee7c0f86ee4cdea6651ffdf33443	2026-11-22 06:44:32.783401+00	2026-11-23 06:44:32.783401+00
8	1	4ae70ad0-4184-4ae2-9d0b-6e7ff1146840	\\x1374e140dc0fb295c31ad120e835e3f1d658454f23baea995e46bbd673ecb808	\N	\N	5dac4d2f-4104-4a69-8c06-f6f3deb68383	201	\\x6b3100f83bf33a3065bede8a32bbb7e3c681e67c8781f85e084cde4ea6329bb7f8d81ef45c009899f3edf4031cfd90cd1cbe1e6ab833369ca42006865e23262ed3911d33ece58d30fc1b28b5258c36e52e5b90ca475bb84e9c196916af99cc9c0dcef332999431fae677a5b8a92d0f1d364e6dd9c379aa509044c90afd5fb737d00c5464e9c7c81ba32cf37bd79ffea59788d080fc7cca3349918fbf0351bd05605ae4a9d4b7b7b8989e69b2efd6696c2657859ba654b918056c135c7dca873b7cc24b266c89196c5739791bfec0f881f592bba83206c8688947eb09db4fd74ade90045a181948b50d9967c6322ff0070464dcec2b12537d473a4e632d19b11c2b6f8b5727cb1002e40a2e01461e3aff4df79339c62f6c64603cf1c0a871ef4d0e83b05e14255ddc8b9cd51e8a42d378e540a2eb230a6687d311178db464aab7d316e0b2c622571ff241d7f74ee8aedd45447c3d1d5ad6a15943c53ac6bd714aad93ef430732768b084dda894ad577142edafdd8d78afca32b56b8679ee0c7faccc727a42ed127cd1b2a5b16ab5bc779a0460423820283f02b9043596a3494bf47abcdc8ef875d07cfaa54ee6c7f23d7b11457ac4d0405e12e9d81b5de14e1e9a4ed39b15cfb9940a0e0f1cfe8334c54169bbc99c2d84aebefac1a4f9cea54850bac74af86f0cb61d1fed254f308ad7c4e97cbe79c1c073a76b4ef797ebab830b8163cb4125a5e4e6f99e772d982e0feffe6a6562dfc3ef4d9d49f88009450359431beb49b3c3cfac82d24eac3a0bf72030f64f92d7671d6aae37efaa9e5ef60bd008aa21af659cd90db5a5f0f3250c69f0553a9af94e69ddaeb00a63df4ab9986d51a8200bec5ca1acd74d177e76bac7375e39078f182c4d0ba72ffd2f4442bbf424fef5575197400f6193431b5ba7afe894b1a2ceb2ae5b038c09126b40e7ccc88b202bdd30710a4f0d0287a79deafe4dfd65f282b53f0ce9184655a23e76407e0b3289aa79e18e9a58c2c5d6ba383ad533ece95cd784ee24253e97abdc1e642117f0ec25d1f2e68169b1e1e1ebe824f641ed13aac68d173df6623d56d82bda7a2c9cac42191101416bef9f7ff2cacd32fc6653c91d1fb4f2e64e4090c4012c7e9477e7126fc233d855dc12968ac31bb882d99be89d693d9c5af9790793e07ff44e053b5b34814352a6bb40fadc5abd61770d9f92a023415094eb6f284a013dc3ab9c780c4946176b9c891	2026-11-22 06:44:33.371735+00	2026-11-23 06:44:33.371735+00
4	1	a91a4b07-170c-4b57-a306-386ca5990ab8	\\xc2671ee1e4f07cdcc1511ba451b0a83af811ba370c9ec86ae5f403c739467282	\N	\N	8a91dbd3-7e8f-4e0a-9246-7c79c895aef8	201	\\x6b31006adbb9c19501cdd73e604682ddeae48f082528f6bba8c4e83b0583c19a7e26c2a1a1a078b43e18ff4712d8c0932742334499a01bacef6e90ab81eb3694bf3bb9092a1e327b4b9b2e241dbb6342607f31b5fc711cd23237332537c8e941608cc5a596bbf19538310be217f7fa21378d3de5e911dc4d0c2ef5db0b83f9eb28162e2c24e780e49dce24c0b5ad3c394ffdc69badc0bcc5f66c3b4149141cb49d7f918ec4a185944cd7330695f8055d3dcd980083794e285655447c1781050540df1e294bf21b3b7bafaf7c4c624d4dd04a67051108ee1b5c6bbe2e50ee17d20e21c62be7a3cfa7c4ab1923f1cdad8be2406eb42696e72a99e61457a060b930250f9256365f900cdc0ae6923b3d6604bf21e7258a0eae49a1c756a86aad73d3da978c0b0efff1328992ede44334347f816009308777c407963cb3ad786ba9a4feb0682686b9d5d9e83993143f5eba86b35496c1bad18ede6ab432179deca704f73c975e39e2ff4a3feef60de283e7d268a533158b181790bd43b04eaf28651db18504c1ca26281f2405503fee4a2b19da50a1d894bd90e29baa9e5fcbe2febac3d39b8701e78520640f0c6466ffe6fb60a53f6f43f73dfd65cae4cee5f67464a18e4e971a86c9c796ec2631410ee4e806b3c958ef9f54ff07145fb1d114e86d56c0d97204361acab9c7d112eb99ee6b9afab1862ba5b60c8a10886ac54475d29c78253c5a4eb2b646cb9b9dea7d42d07edf87e190a90f1d1bf5822cef9478ea8a6890252380c1f19fd23d6fb8bc9b7991c85a099e28a67f9f939f6646d8cdb4a95d0a9085cd65e72dff5824f0bc365fc340bee40ed5c5c0ae2fc15c1cbe593eee3b03226a7ad22fdae4a5eb0e570d6e34e388ca91914849fedc20e47af094b7	2026-11-22 06:44:32.797464+00	2026-11-23 06:44:32.797464+00
5	1	44cf83a5-b498-497e-af25-9401ae7d187e	\\xb072e41172dc8671ac4c9a3978548f84ee7b843f2a323f373c2e6292af77ef34	\N	\N	ea21ec55-06fd-46e3-8112-82677b00b78c	201	\\x6b31008745a2db06d7811ad5e8fd5ce006e3c4f3c8acbbb70a9592bbacc8e3142525e3d99d62a33ef7e0949ac7326aeb14afc421a366aa07e09bda7a373a049e49864d27c1ce0e3b87ab8a9cbe512ff88dcd92e2a95cd0d8a9e9a520832a8834a9623319ada6ab83cfec320a3e887cc1d8ac430f9d7f59673ad8728a8a22694e520396a3b2c93bb888cd548c18abba158fb640edddf5b0571cce31b172599d656b1f0da2d50d267606818b27ab43c9ae2a245ab8a5fc327479a55e03fa1d57143e42467d0ba100e4f97bed05518b3673aa91794f3fe01d90bc725ea3ec4fd2bdd0a39c251f815e43570ecc9aeafc4c7ad8da04a1a6eda79515b78f3140c768d7f008bb688dd8690b1c9e5a249c3d2ff91b3e2d03821083aa341796a298d3218e1e3df0776bf08fed74e2862270d45429b6ac7787ab67dbff091f7e21fa4768915e61ee6e61fa299a59a4cfc4a14b8d623172162524c65831747d6204db73598978188021491026d4ab5f20979cfb1c68a3eba847c34518cdd7a148b1f7e2f42c37c7e54a1ca75a5fe6ef8dc8692f968650821e51f1afad28b5eda1d0e389fbb0f7a4071dc676284438ad494bb450d6444943f523b62742afa9278a75a47b16fa2ed73b583caef6101b647c86da95a5d7ba6eb0252788e59f3aa7d99c9284b6fb978ae21c5d268b1fbaabd104fdc1fcf2b58c126956b05340e86c8664d760e744b3d8fb4666bcdb453269a775203e73225014b33168155073e65e28cf7539568c73aa16174e9617e3ff2837af283b621b6e679d9896f2571cd23219c028598f4e6322da04804ef69e73e353e300fb701ff52d18ce0310c2b36b08246b673046770472b2bdbcda6696c1087204eaf75c91b08f298841bd6e34c04b7bcd99525f6bd2486fbc4cff661eb16de580298933faf31bdce53e985e2000f56b3808959861f820573b9457103709883cc8218035a0c6fa19b5927a8bee6aa4459e03e3c117649f95bfd4ce54f65384feaf7897ed5f5e86bd8eb0e882d840ebadcac3cbbebd2b77abff94c8261b636422c2917a48d569008b7afbdede22547c740c3a6774d36f48062295a41af304c27f1ae31747e4d9a896c01a6407a883a7ef8ec9176247bf00e00354762409784a26eb7e6db164085af21cf27e45f38fc09c6c51af3cc0cc511ad6f0c849584263eb70a88e49717d7e4818cd0a6e90958937902707557b55127e4ff10b7b08	2026-11-22 06:44:32.8832+00	2026-11-23 06:44:32.8832+00
6	1	86ff911e-1842-4524-84b9-cd0322da458d	\\xd1c7cad4cee5169f85de6ef5aefdbad058500f5a410757dc48314dd2e1bb5896	\N	\N	ddff8953-802b-4f4b-a3d7-74fc22ad17bc	201	\\x6b3100c7bcf665814b9a606a48f9f9ac8ff6bbcf8808b46345629802a73e08f64c388329d501f8786c5b4a35bee65ff710b85c69aec66aa33b670a22042ed3c4d5d368fb2d329552d92748ca2bb488616ed8fddbe27fde7c5497292de6034d4373a5cf8d80472ac06de98cf05bf1ef861bd478c0a74c85c18b7a1e26e41a07178b0920f981d2c8683ec3d0dd7bf4070573a9338ac516d1499d7dd62a62953d02667a2a7a88e33ac82954ccb7c36154a994ea388c7ec82d28c65ca3243dcd7c77e5a04b9f1f54c21abc7e99d36d4549b72da287b924a87b1fec4d119c397051a8b11e42e7b17bbe40bfc6f28f15c266f489c01eff3a5d8af3780b1ec93ed4a7a492953a73f177af58643778748c0992061ab2dbcda28f90f9099b7ff59dfd3dfd069fdfcb84ad40dc6c535e46aa5e89eec25e016fc42036bdd1c9861b8217c737b727df1a4d6b197c290b55024f1401569a6b37f92bc18eaef15e5a3df7fd94d27c0777e3b361130c180e3e1dfdee37d5282dac4d86a7fcc3183dc36b506b532ac822f9ef88eb640adf11f5f4462d91083bb04aa7a10817e3043145388d8e99887c190c8fbfc12fa12062aa50da3c61991138be971081e3443df7d45798fc13789e0c56a6f46666701f93e3bde093427f21c2d22a05af077080c38ac2ff2ce64bf4175630eac4466adae29e129990f09978808db9c3ba9e56e5fb1ec03d46e89362fb4fa14ab614a1a0d8dfa52fdbbbfadfde538a9e4df795b3306ae7b463177422e02f93dee11c9f4d1fd3e90bad7406ab1c459ea3cd7e5610c74d578970295c02a52f451a176cd0412405fb50d30dda8bea35c28300fbc1ee5b9d395bfa3358879f5516f1c15737d2d65202fc1627ca7d360468b35a77d78456683725c94156f48ce58cd49e82b21074cc1a8a2beb0be9a8c6653c2b50e69f28684ef31038ef57a735d98ce2e501cf2787d1cc687bacb482ac6ed5e8c53a0e61086c4c1eebd1c02e552646781162ce4ec38f613507db8c7cd8c18649fcfd7590e9770f74b0a6ba515db9a9092e8516d92a8f35c7879af515d96a5b060c784e867957bbde8038a4cdf87e99622299a9d96f44e97a67c2b0a11365d5676c05446f8b91b2fda415ac38a0a83139c4e71f1a809df4f47ba99d3833d453d3c00a5088f8e6d8ee503d697076e95108291641c2ce46288ebf495a0091277472890ebc8a85f78b4ac6	2026-11-22 06:44:32.89606+00	2026-11-23 06:44:32.89606+00
7	1	83b37ead-1a9f-4d10-bcd5-7e8302c43e31	\\x6dd1f729b5acc8089f370cde5a5bd93cdef7ccede1e553aaba4c7858e642dbd4	\N	\N	b764988d-5058-4f3d-9945-2f1992c86ce3	201	\\x6b310092d00f11c6925261f6407753416755059e551c95358fee41953e9b40f12939b8434f381cf54b445b23ef7c5cc86d4e6ea99c9e874f4e5b4ce514c0bd6ba37e6ad5eab2e3c465daa389e2b0a23a7b70589f0a2c847b61753bc859b3e46fc7846062bd6ac01e82d2895a5c266b3a6b575f2f6c2000a48ba3b8157d21894c1de49a755f0c21f1ac551e8548e66bed923df99ff119094ea844a11e455f74ef4411d0596deedb5567fb4dc9c1f461ec339a2c45daaed6e4dded00c0a426ecedb4356a31225d6f01528e369f019e8c4f40048174d8561efa2b94ac3961e874aa519fe0f52c6d6f925e9749da854ef8ab142f007163ffdd419a827c5dc8d1b0565c2430fa3a8b15759c72b450bae922c04fd6f5f3b66ad3dc442e38bcfbd154974616383931b0dc5922c08a4c98344fbc2f61661f32c0b7763cb39020bede7bcb8534c9e91df7cb56bf5687730266cdb077e66e2117d0560d68a91f78de3fae97125ccadf337ea5bc537e4045385a6a14d90431e1f18b909951e26ece6deabc3f71602a5c10ac72ecd3d4b6e349a6299282fd9bfec2f390c74854d80b854c07bc9bc73b52ee263c92c4a1c26cb3d456de38a156929ab0cffb41212a1fefd070927ecf1de3df869c348055ba7cdaaa22af15146167e790073ef2ce2e524cebde94ec25427554ed30dd31727e1e1ab3827fe05b7f3c38f4ddad709fb6a4dcd4a43ca378da6562f1a9c08084e4d39476abea407ddd09c1ab680c8f431366c98df7018951a892a58137e2c074dc0692a9c459c2d1a774c8152b308bbf5be826b29f35ae2596d1d6d9c52b9a56149bbaa3d62fdd403d3110d62eb2de88c564d2453459bc696a945042034ff4328277afdf93def2770672f468a4056db1445375ad07fb029fc978e666591efaabce3546c662a83722aa94560114ec25733c23e8ef726700d1a52597639005bef47b2fc1b1aa00b22db2b19e5e94ddb88ad47969ce496877da5b2997ad951c811a5da78c3e237ad4899584275b164a2c6dbe981a8965a4ba27257d67c1315bade41517d446275d9be6a1274e8b7a0857d2d72e45e961e7e82cbc4699c16ed0d7ac887507a12b2386bf73ebd6612626ac776530208290cdde13dbac1a61898960a30315c24f691e588c0d2843bc044ab7b7a15e912a6dc2b5c21ca8aba411b63c6836940145320cb9b7bbdffb097cf099932dfd5c5216c7fa7ca9cd050c773e0c	2026-11-22 06:44:32.922236+00	2026-11-23 06:44:32.922236+00
9	1	038cb3f6-e2f5-4c0a-9a01-94e13cdee1ce	\\x4d3c404166d73894def8660b274206b4a4d62cb3f05facea68c0a0f16a00a66c	\N	\N	3cd8a12b-2b36-45d2-8c52-22bb8a22e0fb	201	\\x6b31005c6bd199e1f218ded69859892a577d01dec22e31e42ce7dbf8dfe0af8f73a5cc31829cda45b5bf3b4b31c26e8b2980982e1872c750a6d2bac65a394c328ae6570e0e31959dc26a273ed8353435a920347d62eb21673834a620e6c300fd67bda95b2537d87409a66cf15960eefc0151595b302c136e414f7cc3197053672f40765a3a83a5b1580732c85e4f0e4379a622f8d8e5bc23ec75e591d5010ed13c5bf6b31a89981f9239cbb71b69b79d31a9b8cfd9e02295327dd044c8fb35288a2fa37d901270d07b43f8ba293c914e00d35763c919d53a22059b6710088cdea75aff791d35807e32d544d00fda14cb82c29f01839d9806cb6411f61a7629de58700c2debd2aab97f47dbdd247b7836bc6cae09a29aca9b18d3fee716c327524ba4d0e8f13c0d6b83382ff163288db278d16179460d4e61174b765a8ecd9d15fc95bd8d5ce67304d148640082cedd9dbafcf03633f18733372cdb138cf9ce062a5814f1477289934281368cf2d6e0b39275cecaa9f9ac2bb0319670a46faa1882c41da0aa2e7e5dabdb4bb79a4d32dc4b1921797efc5a32638c33a6258e5614a7b554ef45a0203f76b9bfb8ee219e26c3a3e9b86447afc6a5ffa79210eec316eda1183c941b089b1340c64b072e4f25026ad0488ddad68b4abcff809d02affe6fa71167bdc1fc85dab7f2f4344b0710494517f9d7830dafe13a0b0b5e67d3d04dea86d4527a47b64624a71d0e677ab26e5a0a81fd8c4f7eb3e226190ca16f32f0385790aa9cbae72bb91ea74241ca42fcaf49715390aaad1f1a35b32d0921fdb5c180ef11f28f551b6a04bb89f8cf3012e30c156c4d3657abd48937c21e945947657225e2bb91f35601f077d3d382ca4cecf5975829bcfe252f6365ae4b734e3cf086418c7dcb1637fcd44f60bdbade3d9a5dfbdd3ff7a02ee75e4f29ffb5cf8fd8cb68089ff0b4f8be1734c79d4afe0434dc60eea8b2e18dd0b1d5c59b698f1fb21d053cd686c05d92dd9caa889c17305fdcb4bc4ab8baa90d7d70804419b7d25b80922fb3393e59ffeaef3a7ddd93544aaeb712b60964a2fffdcff3555fb7916f7cf4ae787eb0f5e64122b1062860437eee7b7702647a421427f979ff378fd91bb36357efd5029f615dd2a9a36e883e0c79ca23e6c762909d225bfa3c69bd5e580c104b34ac88bd5fa9782e89606a78c0e0eb6ed415562e3845908c53bb802f14b9	2026-11-22 06:44:33.774399+00	2026-11-23 06:44:33.774399+00
14	1	f000c9ca-859b-472b-910a-7779d79eb450	\\x829e289aaaef62093fbeed00e4e860e24adf3fcb65df41f395e4b39948020d1a	\N	\N	5dac4d2f-4104-4a69-8c06-f6f3deb68383	200	\\x6b310005e9a456d82fc6b15659cf9b2c4d95124fe0028b0d1d2800aa0c18e29d792dd301e0bab3410941d5e585851aa3638bb7b1bc3bcf37e43b13a2b1a14e7ca0854e9254965a1891ffcfdd62d94bfb5ffe2fc4658b67de111c26caa7f98aa0cd8cb39c8a5a7ed561bbb47184bc74c47e0e608d233515f8bfb42a98e2e697d1aecd33e55c68baf40c2c3a23815455b3fe0ac8a28eadf7e6feb2543d1eadda8cac78eb244666ed4f4d7f67b48a5e38cee1f44e229986953305e3a5457a299e7b8386882fc4b28d960e0b3ac1379faa93160a0061b9a6bf41467d1656d304303202ed6210dd070cc77e43215d7d16122f0f9ae2c57378e77db41623f2652eb558dd93a428cba09daa4c4a104c2d7d691db14145539119710813a20a6e7faefb3551188645eb910395336a8f7688f6e5d7b1eb	2026-11-22 06:44:42.637647+00	2026-11-23 06:44:42.637647+00
10	1	26ad3eb3-67ea-4955-8065-e45b82c35d73	\\x7c75e34a2f5d2eba7127dadf037f02d2e660973450f50a2de1d2f22d2d9620c3	\N	\N	1	200	\\x6b31007084079a0c4fd7e342282deaae1a972019de30fa6a1bbbc93bd6b8874da5e7dfbe8a79e18f19d0d71b8585c7d70b8722665019bb6e64c060810c802ac0103115f08fedbaee499bff4696952c6ec7fc524ca55094e4bde835a0ea659e4526b05d350d947bd01d288061f65b4b2078e5a9b01d12a1d21de2909290cb14973475e9da9f3b88418fcd8c4b25d26eddd28bae2b69842bc2a5487b613384ebeb68eb3242c57c0410b23e032f72ab1fca87d24a3ac4118ba131ebed9c84f6a7bd533505cfc9e4bb3b0a63850b6bf08e4c95b8044aaf213222243ed03137f00283fcdb4f57e5812fbc114172301e4a413ec2a2146d43daf091bd11eb96cb4ff527f5dd3a0c9e8ad8003ae2c837d8101daa2731f39ce501f4f7af54787821668b76d77b8b430da60e39754a0efac031c15f5a1fee1f4921888a8ee3d4829aa1082cf493e2dffdc2b52e852a64f4ee3a58256e17d62ad4377b8456f32682c3bf2e8fcc5827db663c8fcb25419618ad962fdae4605ff3385414bfe30c9a063bb6f43ab0cc57135582b64ecab8904b510b0ba950a5f35409ee8a25331252473a1bfbdc0df0be823c9160aceff7a011da41002492036090e998a431519a08a8ae1e0fdd285d01a4dce7246c9180ff831699cc490974d9ea6eb3c6f86bf3255046d50429637070d3a80c9adc5c1fbf60473da342d146f1d8ff3340ddb29d304621ac0ca08943b610193b87b52e5e088ddb61a7f1e9399403b5d262ac5659a14ab52effb52606911eea97d2b9c9ffae56794af30d671d561bdf20ea0530ab56083414134b4aaadaa60b10d45ae7f412146585cadc6a437a32ef7a52314e99fd72977715f83deae15c47ec90528121beeef84af27363bc3273bfdc22e311796f3f9d74428a6e42c85dcd1b348f493f3944dd5681fb4634475a19a0d2f3c11f184550e0ebca2362c0e75d57002390552870fbb72f40bf8d84b61ff218d6df5406e096a37b3cdd7ee4134bebd20541ed51b4c57c8b3959d14f3cb98f10ea6b57982bc37298058e2241ad3a61fe1c395a0f68f1c9220cb3941726ed1b024714d1b8acc12251be2c05cbc59fe948994db4e5bdaa992cf2372cf29745928398e45b42ddf66292c98c7d09a1e9c70acaabd54a928ca92ee8d2544538bf3a3dcfc3be600034e506952c9ada625155a0676985520f96c87d7bed580e6c83e8a4192926cfbeb3b72de780a72158da07bc29b3bc27f7f26a09efb361539d1afec36c77636e35c777c71ee1062a186af3005260990bee9e5232babb8b01c5c941a5501d63f6723d4169297e17499a7699d5087eddd1e3a6bb47dc1261051e495b6a83bfe09e38c4c286a323f58b691b5a84e4c7f238ad2ca9967f985719a0b0f940df4662219ec4382b04ce5e3ca38d93a26a26ff43b4e13d222d74a39b9d8cd87159258a5d34ab86f0efd43b4368b2bf384f64c3a2d5a0534c5d6285f6ef	2026-11-22 06:44:34.188549+00	2026-11-23 06:44:34.188549+00
11	1	6eb43ab5-9fc9-4fdb-85d0-d97d5650e078	\\x7bc0fe22bc9bd1445f94a66553ceb9b43ba023be48207bfc411c3a49e85e7e5d	\N	\N	2	200	\\x6b310033cde2641aaa60ebfbfac533735a894b536b47b2a96c3a7414192ef0b1af0b25eeb2846b7e45e1d89873afd779a6240fcec23eea06ad20a1be8fc9160be79584c519f72dc5d438abb59ac64d73472e3b98ad45bec860cbc47c363f0bb29eae9f722a2af1f06d0d19792c06b6985a6a6e27069e1bca177ef4fd9a503d773c924a92f7bf3a5e133bb4e8783dab5ed7392fb8c26e86f5e77dd520afb7dadebee6329aacafe3f9f52c154b194226b9f2b73a372f6d244b16079458e39a3b168f9ae663c98266933a3a624a04c8b74433aab5627bbbab7917c2eb0b813f7ff4ca39f43abc5c112a97d9a565735b9510fc7d5fd74b117b73380b456ec7fd25b5e4f939fccbdf1aaac929a36cc6c77767f856a9d0288baee8ee115a6319b0aa4c6abd8f846560e0597c7fd4486681d5a9b2bad80c5cce9683c468dae4a587fadeb447a14f83415d41c63a6469fb3703547211614cb6f0914565dd393b1e3e205390842d13d1a7a04a4221103525f63ebe8f3c4ce5eca7d9da019efc5f357c9078bd49d6488d30e41a78e868e3289564d9ff6edcd9c765595d1739940bbb477800f726198af19244ab570b20fb051bb3c2c72c1e4fdb0c3dea1128ececa577855ff2cc5e523aa5441244e571e63daa1052eb67850ca657eb74eb62fd2777b07abf0d6956b9181f7fbeda4903c6a453224bf7d44a0ee8b580815187170f8f45de43f536f92890aed6cbf9fec156fe3955cd391b9accc8a57f1dc504704d1b6aa511def56542f69a4d8f0f2f06b2033ac8a37efe1810bd71b5577aa6f4e9bbe27cfad5a72ab5c609448d9593d696a21e8af010e500fba34f6e27c03fe0706464631fe9b29f24b54257c01eb562210d8fa6a04e69f5050f61afd7a8d60d9c0476e0870bbf2073748a2ca765f71f350c7c3f01f5083e89ce9e630f67001243f5be9498c903669dedeb41dabdfd2501a71f57783b15a1b55cc4591f82ed31dbaac4f65225242674968297c30d0b1f01bde22113b7e7015b43bbc1fa2307c73473b6ea37e8820137b6e68b6cdea318b4ead017134060b10d151b388e0970a1cd24d8ac95b61a949fe118084307dd45f07f6c3cba40e0ce4fb419a7b81a94a07f6c6abdcc3076e0e85c04fafecefa4ccce8751708bb5210d15b71899c6c2c02312bdf5fdd17bb8c6cdfdbd12fa8ee2726341ec5761bcff8bf74a68664b03666601b1450d22f000d45d54c1663505dbfc8773ff583f919cae488da8dad0df12d685dee2a4e2818671a4c7bf84f75d5479fa9f03cc8b586bfb333e30e190d1104b21184f6101d2fc4c3418500168543e160b5e6080fb8c59fd47891d975916e91615ba21839a60ae25c47ddb12dcb8e771fe4fc7e83f73ded4f29924cdd280cca06c28af6d96c889e698688cecbeae28568190ee5e38e3a291ee5cf2afe4a6a9c1d80f6b18fb69150dec13c91ba6dbb93bfbcf869ac31a6f43853d56edcd640dc3ba3f2def7d65e33d11cc931dbf5a2bc4434467558b14063189e624dcd5f02f4d44eab33d5cc2f2db0c5e24743c80036314253631a81227d208eb87d35984f6627fee01521b006783f791278d0e70cd1269939ff7e4156a0fc5c501fbc84e7f8362cafa9a50f1eb214afed01cafa01c38fdfa61a3eed7113eb3b608a52f8fda080149d3413b43fe1f7aa2e9f0da563afa03bd5ee859e89df92bba5a4a99327b21f45cb6e0e58917fd2becb5fe0	2026-11-22 06:44:34.619938+00	2026-11-23 06:44:34.619938+00
16	1	a32624e3-012c-4b76-8592-76a0e5c8997e	\\xcea7dd36076f90a60884a89531fac3c50d09c474fec9d356aee696e6538c1152	\N	\N	1ebbca1e-79cf-4bdb-a720-bee58ca6360f	201	\\x6b3100fa3a77bf5e92da18ecba4a5a61e38f1d13f673409ea8b34f729658772b15913adb286518f4e7af4c9b3c2804a6e9eecca5f92463a633330b517c835082feff7fa4b10b96ae9e8a4c89eef02ce118edd096d93b8f934ae25336fca852355a170b40b4d4b473c72868b290f1c95674a0925f1c9a30b016b7f1f375eac68735a7be0fb8894f9b49d175ec3940a85d7dfa5cd12dfd8ad6f822a6266d60311a131fb385bfd6a9ba1ae21b7d07bd70e5cd92de27929d38694ccccb450560366ba39a6ea2f3a5c5536effa11ea5fae8654a4f72da0e84a4b7d08fc56b23814075ba83d5653c2ef77565382851194927b73757f272c2b2d74f8e69c150d119fb5816013795894eec044dec43b811415d06c25b7b65dab0b51e19242c8f6d672db11c4fbdf83976b40a35ab5428ed18eeb39bd6e091b4214d47f47bdef93d0f8700569f6c1a431363e6f669fb0a466bf39347218a02328926cd4e88b4ff4795fe5c92be72aad71d12f2861e3c45340b97e794e8729c071399dcfeac68c53eb7cec61c1a4722bb329ac9ff1c304dd4c3ad833214157ad48b9a7de4148f6f75dbd8913e97e06100768366f4b6ea08db6a4eedcbed598943f4ca8af53835a5ac9fdd6b1f3e302dfb07f06b3bbef4d41d59b53217ed8717c966b4c330a3164617666dd50744f6d7b41dd0289a04a6b5cd77dd0a2ee1983f7488c0cbb1ae7f54e4b2c5bb9edc08afa43b490f4fb23d7cb97929c85bc703c08ae1fd063c4e688fbcaf47bcc631117d264a79dcea3d60da31b0818ad251d60b2bb953afdcb87e7f801966a4de112983a5a4a1bdc640d474228901e6d3888354e5e8d28d7cb9215381ba624c3ba4c74af8bb3f12c35f8f5dbf2ed59312fca62209df47a96bca33439da8a6184eb10d7c22c3bbd98eed05be3d20232bbf16f98d650f356cdb36e980ef76dcf42eb27a1c36cb4b7318fea7b09451a37959461c19c257e1e089f296fbfd49cd11c51f1531b7766f0455f489846c2a77366cc18844a0c6c6eb0f06031d61d0e42a39cb699e4070c5c7ef788e018b41d3c304db4acc21fec6328903df543658fafd73d5e8327318a738d24caf9217f0045abf858b8875ddff1062ec81c54177f442002012f1d8203d5533f28aa5071f1c23f5660597a065256d895bd16a096ca563a8f2ef90915eab22d1ac0ba62c0f46f3427fe1276acdbc770993438396b52afa45d004b0905ca76e	2026-11-22 06:46:25.455713+00	2026-11-23 06:46:25.455713+00
12	1	202f8eb7-16ce-48df-a883-4c78f64b3ced	\\x508728530c3e96dbf0136026402f9d223891b9ac109568678252f97ba97f2944	\N	\N	3	200	\\x6b3100f045d7ccaa7ca690dbf2470b9c6839d86ff76b673177cab9e5fe4238fcb4008d0ddabd651e91e72ed4f63221d6c1e44988b9d402456c2e293a25ad00d0796f58abbad4b22420d25fdec023ce575f5bd73cd496f4a4a9960cc70679b1152111459dfce62a4d6083a79a5e85da689f485a0f8782f4d032cb76c511660fc1fc5be8ead160aeab091e634902ca2ec933fa639bd1463e9e8021ab1ba9e5b14e01bc8e3449de98e44871a14eec78004a78c237ebd79365dab6933ae25eeac9db494bb28805a1831989a53ef1b09da990e6a44d6b794be631be1df2157bd21eabcab21099877d60f6ec37ce64bac782a49c24829a10d44222f410eaab4aad90051e4f08dcf718c483490c4fe60d245d269c543242522f84dcdf7284e90e2a1f5a4d2fc73f261aeac135f1e7a98947d5ccc0b28731c0ed28b7944ef627bc53690c78e308bfee8510242c3d560bed202a5340bc7480f6df6b408b754601bac291d7a88f7799ed84d4b9950c1e17c9dc341f3c4ff401d832302da3a43e3cc1ce257add66e81326a9109b59920cfb9315b96a10fa2b7b34152a82290b5a87e4e140ec51e32c3dc96d55d15612530d60f6061e24fcc0f2ede1eba61abe43ff8942f8a0f5c7c2987ca4ea7ee4be8d50998becc7a17bfa4e0df25512934ef8e5a3208e6386a6a49c2240bf8e78dddce8321505dd9873f65a2ac624e68702a473d835ea30e1a132eadaf83400e591c5330b1fa1b3291bb5e0aad02ead6e3e087d5cef5932e859e570a5624c7e1276697905f937af473714713d539d4c057cf12646c2438a356f5c9b7b5d13f0318f1540ca750fe1931dfeb70f04a039bf8b04dd72f4247bba1379aa113f46aa5d670f4cc8b2f47ea584d4520ed1c4db55b5fae60be2eca3469db35113d88f6f5e01d3d8d489c29db48d0c042fd4c9d95fe5daa81492c0ef2e64240aa4bc5034e343a41ed11e934c9d354b2036f49a65f3cb549c5ea90d49cc0e46b2e1566e32cc8ced28ec042cd805c2fd320559481838ff4b3dd4fc7e4af71a2fb6fd247b3624d44f37653580747508ac321df6911d655505b242b0b6d3ee890e0da54fe1e20c9a85c2f28b26ec3112a0ef9b5ecd0975cd95b5c301250f0af2a4946ac25fb63cac6cde78d05f923b8272a579a22886110cbfbd37e104f0d086ae00f9a1d8c383071d78bb7d1c61a6919bca2a46850456a4c16ca620bdbffe6cc96676de4f5b1ae2f5c2b2209e4eef2c6e3ae0f9a46d097014a91fd04979307aeededed7bd89422676ba1ab6af1a14ae30fc83c46fdd263a5720baec07a5498b345baf4c75a3c93a7104e974910115104c12575029899e3b26a3a799761ddc36a475162730e496edfa4ac3b1353c1fef19052be4d671c0aff8377df7fc7fdbc95dbbb17223aa66d5576cd9dc0fb33c626409bba271afe5813fe4cc45aea50067228b7cfa6daf3f2f45de7579eeaeec9f0d	2026-11-22 06:44:35.77487+00	2026-11-23 06:44:35.77487+00
15	1	cc379e8f-df8b-4758-8645-e4f017327d98	\\x4aa16719e3897b4ddc1ae5ad653646192a8bcb7ca4feaa6f56211f09b9276169	\N	\N	3cd8a12b-2b36-45d2-8c52-22bb8a22e0fb	200	\\x6b3100d43cd2097328284073f461ad4c741ea68c886189199a45ad90bb1217f0917e950c0b8dccdf9d8fd5cbc3a06ecfbf5051519735464c6468d8c444a193dfc33310c8f8612beaafc9a99a8ba8da71696f0cdb1f5ad22fd6f5258fd346680e14ca15a0e5b7cc16d82a1aabafed047dcf7aba70fa4242920e3ca8d2cddaacb8808d96ac3a32e027fb5f90e1b0cdeed41bd8ee4c9ab259e991aa9eae779a0999b3b8b89ad301e33026ec2d4bf7ae183911d563e5f03bc8cd46b75d3da62de17fabf574ccfa0df17e99150d9e12093a9baa992ddc58048112c6a151f765a8b607835a3c696bb9213b5d80eb1ef043680574290194a1fdcf4a5a5a6551bfd5bb6e6e15e665849bc2af5085433a4f8bb1a7463a1e033a3ea8b94d888c7cf0fbf51d7cdf14dd6f1ffcf2da27ac6006298e49a4b7	2026-11-22 06:44:42.940645+00	2026-11-23 06:44:42.940645+00
13	1	34399490-c058-447d-a55b-0add988df932	\\xa3c571254bf6861b64f8035c0800004690aa7c87705b4688421511a91bfb230c	\N	\N	ea21ec55-06fd-46e3-8112-82677b00b78c	200	\\x6b31008414e3cf9a4ce533c5c34ed317aa9c198ec296616513b515e6c217488b297b9b8e4b21f9c13b45c6dabadbcd60b9f8eeef1f5de167686f56e8758991ad125a716ea3902097a4dba4f493f7614ec46ba63dc4dc5e4d93648d34babb8d6d2c3850b229c99c0344d2652fc827426dae11e0ad07f878c1eade5760bcdcee8929c76ff617fe7fbd48397a1b75e0e7e487e5601bcf4f642233425dcd4efad6c764a73e66bc05ee391621aadfaa4c0a80545f3bf073d9eae7e9a47bc303af1550a037f8c2007658950dc1aa91bb265489efa0eb2f6e0855d382a503ffea30d943fa6fefbe29818bb5f642a225f265126c96a070ce5cb5450946941ddc8a625f141be00a931a04085afe1fb1031e1931e5e938b8fab44794cde4e4a819a89a88892e7f57f5cad104ad1671d6a5b4a3756211c2e939fffe28cc008c81c61b7c380b7b8c4656138fcf314f3b6761b6f9a9cc8a4f3019296122ec724b7a149668b399570bd7445348e7d81cf0eb9718d28bc08b6181df07d0eb541b0201526f7be4125118d9602eebe53febe309954b2ec7a61c718639f8c0116823dc2f227da67a77bd1dd0f58fdaa6922b36d6fa39f733acf2601331c6f8bc605ea0c5ef6852b5ebdbcc922dfec57bce8913ce8e803197e606b5eaac3daccfd846bf58a69bbb28635faf08641a9095031d42a1cd01d0b049693c2b458a605963dfc877c1beb20d87f618f61d8299e14a2673c0025ff8fb41781f43726478b9202aee840cfea1531751b40862b56abb71b3a978ca8a5621c8cad152a77da0960cf5a86c5ae3c139b3a3b1480f3659d229569a3e775489ae0733c551ee3593a443855482a69eaa6acc256136658d262fcf5c38640f48e291d165d2ac9007b42c70ea32fd2f9a509c6d511d5da078e2f5b8b8ce5a61bfaed90b56e9cc02b9ee2ec1f5986b96b45f15718eeb758ae75cb8093932b501153a25fad1a415cc86becf2f86ca5fb685e2aff3d0f9830c7534665756bb486e8b7701c5daf2dbbd2763d0b471043d63f4f5dc1c9476c33a3ada481bbd77d59487ee5893c9da9e67e5575b75c2b8f902b593d05278ef9c4676c3d8f309bbe6672ac963d75e46f2d0aeaa3b7dcf	2026-11-22 06:44:35.946714+00	2026-11-23 06:44:35.946714+00
17	1	d0afd805-0f10-4482-a377-f7810319073c	\\xcb426009d192d41e80a78765ddb4dcaf3e7bdc2271895efd9b2346d279c66342	\N	\N	193664dd-7961-4765-ab39-36985932f03e	202	\\x6b31002a4a77b5f85a6360ab891114296e684c3f8892377f4f1bccdf3cebd5e581ee6a15a61bbba369777da691915ab7535bbfa52a11d94f5e3aa6cbb479f195919f2ffc1be064dd4b03ae2b48c2812067a75f6f2f7098cc8a120b10d85d4b03a585e9a602a14f3a637bab8497a7ea40c7831e25af01643ec9ff1d50a5a9bb6c26088beec4f80a7fccc6627aa8c2d12dde5098e40076a02354646b8a7386b380a1a7e2de1e52a74f8e7a01035966edb1a8e851fcd9c8da42377aff854a32ea563f4834a3d5b4cb1cdbc85a9eed00224b0f7e3a919f513c1a3742c13b246a7d51d2f0e0e03569ff9627289917854233024813f407aaa64f6c760a7117cc9ae068f92c1d421795ec417ad3722acb1a466fb77707cbc18c4a59bd4aac164f0f106de6f7aedb8579897456a22c642c48ca25661b04d21650d90e931e11b1999898e4d388ac622d56f47c0657b92d304b408a36f9ad4944cf57e340e0d21d361176793fffd54ef7eb551b8e5cba3d756833847655a4065f9ddf25f87a2a59d94139ec0fdb23a919c21ac57f3c66ad30650f5d616746d0ad3ab0ca2148120cdc5dc8a329c25fca8caef924b387a443fdc5860b0c47f7a4e5c4fc7b4bc09a3459753ffaaefc9322e008d88ff5991fcb3572330341cbcdbfa7d5c25560770e9cd9731ebb061f13c47a573ffda0a6dfb0c495a4bf503fee495b28bb59755c1103c175f018040c66c4271c89ff58c376917154602a6a443f674dfbb40c73c4838b68d13e18539d49e26608dcee19b1f1e0f32c6dd53b99d043ad1beacf2f50556aa58c6942effd00afd6cefa469c2c54cb7311bfa031ab7ec1526e8cc4d398668bc528a3569c64ea29925562237b5aff7d601ea0b77783a264a1251c2645dcd87b0dd72121ae373358817907fd1a0dc38887d0f5ce909972030822af9888ebece873ac996d7998969f17636c8cf5fd706f7274eb734fae2642c1846220ef40e7ffb54af1cd0d5e0f684fd4062ad085babf00b8d64d43d3c658a978d7de4ac570ec9bbd421ad9a383c9dc2315298261d949cd24aee96af95c932434397ac6c7e01e2d6b5c532f145fbedda33c9c1479789f47f7b6c1b23e63f67fe61386bbc1b4c065ee7df0fb9fe44c3c827080340b7f84dec6b36fc747f2a51a57f102955ab9daa74086ccdd9d05341a8041233e9b4df11b14178c8033915647e7ac71f483a22fae8c547bda1a1f712fff9f4a2877c8ea2f8712a958c5dfc63b20e41f73a4e72c17d65544587b58a06fbc8ea2019082c427df9e04c0ddc75d8b8ae6776efb70a58760d59684bbc0c6eec0bb6e879e05ec78a4e77d2daadd06390d0a5400e9cad45cdf4672a102b420b94cea8eda3b72411d134ecd8565d552924cfc35a177b0042b2af58c3faf6b38f47d1289bcb96a387d11b33a8a5c2c9a9b	2026-11-22 06:46:25.48335+00	2026-11-23 06:46:25.48335+00
18	1	bb3f6184-ff3c-4bd0-8f21-916bbbc73b07	\\x77e5c79fdfdb0e9901c340a3a7f59c1e5c7c73e4309edaad7157a1dc329f4b03	\N	\N	800dec75-ec18-4188-8bf9-7b424b59697c	202	\\x6b3100edcffb283097d9934f188596123a1b6518780a6e3c38c44e2eb15b2a26225685d5e02fa5f16e61721dfaafc45da19c4c178775393c3976de324d4cceb6d8bee0beddec6ec9f29a815beaa8f7084fc4e8ed16658068a6963dcff23a3f3431e8f8eeaa3e904519a47db51cf078cd26a1362a85bff51147246185866d67ba4bac0832d4f31df3fdc583025473d7b96edb9403f2110e37782d184481122cee79b29f186c9e078e4193ea498125a3a03ba1841519d0f3f7422bcb60d153060a1d74730921993bebaca5359139879a98d35d2956aa5b2ff7a8493879ce32e727fc71cef63c729b1028e9add2f1ec4d11ef7e8f3c7e377c0c8ac9a6c5c18da33aaaebade8b6507f83fd2150b89234586cb00edb2e0f0a883e5ca16875e5d9c3d4098da7a83688ac9516d1bb98ec323148b9888b3b0880c8d6721efabf89a3954a814002b65bdffbfe203fd4fb3813284c6a315253f8217e375094510b926df8c75b9d03161341d1d7d00107f797889916c1a38a5be04e52bf34fcf39306836d45fb75108c3092fa1b767c4484da090ff3cca4e0aacd558214a786095ea52b8ba6aa0bec181fabbfcfc001aff91f8afff3c3710b28ba3ce1e3cbef44026b801fbb854b6ab34fa4f615ba7c59fac1813fe4e4142306063f085df4b5a794c029ff3e96d3f02b621a746bdb96b30c24f4d2ac729b23b16aeb7f92204e70fda6843ccac29eac57bb1a7d7d1c2127e235024c9aeb0fe139c9d1a3e33d98a0b12d855dba6d0a00ca682c25291c9ae7f39908a41e20d28b0d11b9b13cb3f341e8c3881bf639ceb14bc645fed4ea9f1d0de8213b810d836d850ca477911959ef8726e7636e856d84efbec21f7ee184a811ed75911fd74e8e198b6c2b754eaa0d004073572e0672daafae5a60f6cd6fae013825ef3871d16ac7ebcaa4857ba0df9886308ffcecbc3434728a67ba297a89c78032e975a1d1ec418a535a6f9d521d86efcfc98d39ea490a3f5f40305792e2612f7f702917094ce3f485ab98ef43f421590f5f19cf06cc4bb70b26a5e4c85bec053704f2ed7fd12f5b0426e6c2b814bec4d9f0164e5545e582eb307015c9a15c50c71b8fda62a85dc5bc59f32f37640a9958f120ca56d1064706e675c3c4446c460e13b3426ce8dae8085db25ef6aca6e0f80443b73248adb3bd052d57e6e2512c5ab28ba0a342d2e22f161145d0a79f1ba8295815e830ccb10691507a32f65661146289e70dbd652a9eddcc96d6ebb670d4d4a3a7d373bad954537b09b9949bf937b8017b2edd4ae25087bc2cb31f85a67de9b0592c743ce55e745663bd0246f687d6064e323efd75a2476c68f9aa632472d581dc0138ca95c3521e97316bfa0dc224a2b2590a75651f69695d3f6853e5c86948e13908c0c03ba463d87527c48353c9c3796a5a3f11e0e4d435ba9a44e3fd3a7cc4ba5095f71f18463c7cba698ca657391b71a8f6e76ae95dfa0616d4b45d1992ccac27e66c6b733c0af572f07169a9fe8e09beb473fe49a45e773f9c1a59d9369dbd5d2e3f08c871f66cb73fad4f2220025ab1493b97c0797d1f4247be27b3b596a11f22cfb00d3c55633d552ac098b07753c889fded8ce58ed06443dca2852f4a1f85435c7d49e540cce2e3aebb37d0982e9c0f918fa96506aabd0bbe37f694a8448cba21dfe889ca72d08de4b3b3e4ec3bce7de94d435e7fe177a9cd6fad86ddd6c3cd5cfe2b66463c5672092b7a4e109a7fbb7359693c2ff9a696200cc096f3ee971c578f38d21800ccdba9179000c4e1df3536f82440fa37987dfedd68a7ee58afd3643a74878f25161ac71eda34914aea2a80050b473d4cda594b13d11f9337a85b125108785444bc362563fee55c7d5f148ddc07c08d9e22d0da47886e11f3f7f3d72e5b12c9952b76ed4e17500c7a455354e3b285b04f764862e43c8f282810f8e6a37d2681d9bb6dc14eb2b84493356f73ff3e8d0531c9cea00687879e5ddde0b91ba98c14257a35cde6d09ba3a95289391053e4ba1900cf541c5b27967f281f04c4465a51ceb303c9da6d215da0dfc78c161a58bd6577a9df2086a9206174540663bf5095766b812f45cab00493726d4d8161caafafc7f05cc785a1feec134ee7986631124f2d4cd0dae7d87161f2643f25afa3ccdc604afd3d9fc5e0306d05e72fd057ca65158c290e7dd591fd7a6279f65d2e489f8f67df48	2026-11-22 06:46:25.560512+00	2026-11-23 06:46:25.560512+00
19	1	2a624a98-c5b4-411a-bd5c-6e951e0cedf7	\\x5dc17f06fac50a42516231fe770b5d7095736929ca4f79eda7f83c0ab4e370d7	\N	\N	8ccb899f-0bb5-4301-b5ca-a1e2d6ed29de	201	\\x6b310062186463a01a312ef44563b1dbfdf1c4ad4082680a476afa18a18badac79f228a9ab8246e238e19b22790412d7a2655c145b0a5a763f36cdc75b5001117a18e5fae0466bd129b64bbfe64b248724794fa7d327f02a3529dde29409124e54684e58d2610624ab288120318fa55e5453b4425365aa888fb38d1bced9d325644973f7b275f79c2684d8512a5673e5a0346f8eed171deee251d2382d2a86abaf37e2ff1123cdc88695dbe5faa9169b3a4305aa640b564e3d9c0a0fbcd93275f2e7217d7a3020ccfce2272b3bf5105da13dd508bee73594d37fe21146186ddbad964efd9e4ebab676036acdb9cb86d215eb50216838f60c7e17dbdfde3cde9f320c65eed0bf19c702e3976b1126deac520876d6462a848d69d2569b7acd3f6af8458967be64ca503cf0d3d193772eafb3bcc43eb474486cc51585b4560cdf8ce2d90dfec8e0cf918fe12e28604e3e72ce6a4b182314b6ffdd0e0ed9950ae33111b467d4da62494c1997f51448b0207923c06b3e02475c9960de883bfaa7b0621b3454b53b3d2e13f3aa618aed17c167f053d5d6a8a3a7551bba1108de29d578cb5dc1e6fd72dbbcc5af31164adc1f9763c6d5be279ea1de9bd4e40eb6c8cfbf6973cf94be71d4f6a1d8e97cd031d3a06cb1084471beb9f711c6be3c52c7bb2f1ee67365ba15a5733ac061149c77090c0568ebf9d88712134f19d6822e46d23ccab4941d9f79dcb2641124a33b423e163e35acada63b8773682096039a9a3630e97918976e0703eadbc564e84efd6773160294760eb8ec43eaf119652c6eda5b9e04a5df3d9f185ee8ada6d462ae8e85dc11be4db8a5699e26bf02c43ed28c96eafda701ae8c99f51016b7b1298e2e7301b835829642bd08906852a2a18b0bf42452e331ea3ce34c080664227519dfbde636042893b9c4a9366818648423a1a0e19c9a59b84fd9082fce01735fdb3d95d92fffb39f18aa7128e8a1b89e5bf4afd695ca18077dfe3c0cfc57adc0434de25aef6f59527a80cfb33ac398b452d994fe76cfb57619444a20156eb3007036d29ec38a78e2a32aa98779937eab28a43def7c47f22d6592daefcaa030be00bc84767aa5eff5389110d6979901677f9299092844e3826c88cda411165517eeb160a7344d187d9ff407860d8de0dd8d30da854b0b3cb8f7744510abc0fefa0fe622d23128fc917a5cba486c6556c3451f1962d7353b1d	2026-11-22 06:46:25.675589+00	2026-11-23 06:46:25.675589+00
\.
COPY public.installation (id) FROM stdin;
b56ee108-c5c5-4e7d-b76b-53d68617448d
\.
COPY public.memberships (id, user_id, team_id, created_at) FROM stdin;
1	1	1	2026-11-22 06:43:46.367457+00
2	2	2	2026-11-22 06:45:03.398684+00
\.
COPY public.migration (id, name, app_name, ran_on) FROM stdin;
1	2026-11-22T06:30:00:000000	headwater	2026-11-22 06:49:35.587974
\.
COPY public.pool_targets (id, region, engine, size, setting) FROM stdin;
2	us-east-1	postgres	\N	1
1	us-east-1	mysql	2	1
\.
COPY public.query_executions (id, team_id, user_id, database_id, question, model, counts, reserved_until, declared_kind, sql, sql_class, verdict, reason, outcome, error_code, turns, prompt_tokens, completion_tokens, row_count, truncated, model_ms, duration_ms, created_at, finished_at) FROM stdin;
1	1	1	2	How many notes are there?	scripted-model	t	2026-11-22 06:45:42.242461+00	read	SELECT 1 AS answer	select	allowed	\N	succeeded	\N	1	100	20	1	f	11	137	2026-11-22 06:44:42.242461+00	2026-11-22 06:44:42.378893+00
2	1	1	2	[{"content": "{\\"kind\\": \\"read\\", \\"sql\\": \\"SELECT count(*) FROM notes\\", \\"refusal\\": null}"}]	scripted-model	t	2026-11-22 06:45:42.411598+00	read	SELECT count(*) FROM notes	select	allowed	\N	succeeded	\N	1	100	20	1	f	13	33	2026-11-22 06:44:42.411598+00	2026-11-22 06:44:42.442051+00
3	1	1	2	[{"content": "{\\"kind\\": \\"write\\", \\"sql\\": \\"DROP DATABASE x\\", \\"refusal\\": null}"}]	scripted-model	t	2026-11-22 06:45:42.460302+00	write	DROP DATABASE x	\N	refused	Dropdb is not a statement that a question may become.	refused	unsafe_sql	1	100	20	\N	f	10	19	2026-11-22 06:44:42.460302+00	2026-11-22 06:44:42.479299+00
4	1	1	1	How many notes are there?	scripted-model	t	2026-11-22 06:45:42.50923+00	read	SELECT 1 AS answer	select	allowed	\N	succeeded	\N	1	100	20	1	f	17	104	2026-11-22 06:44:42.50923+00	2026-11-22 06:44:42.610477+00
\.
COPY public.query_readers (id, database_id, password_sealed, created_at) FROM stdin;
1	2	\\x6b31005c5d14ee0d1171fcc4d92ae8ec9675abbc9a5b40a75cddea04bd0768e8be5f4996c3f29ec74b5d47232b6b3f8c8854364a5c51462ce846cd8bf246dc	2026-11-22 06:44:42.25753+00
2	1	\\x6b3100c682a663c01a6845a9b0f620b4a2fe845abc6f4a6d81fd7a1ef2529301bef88fdc5b80f7a0b1431a68c11775eed4ad0d84671478a27777eac0b50336	2026-11-22 06:44:42.515178+00
\.
COPY public.teams (id, name, tier, created_at, queries) FROM stdin;
1	Operator	pro	2026-11-22 06:43:46.367457+00	ddl
2	Second	free	2026-11-22 06:45:03.398684+00	ddl
\.
COPY public.users (id, email, name, created_at) FROM stdin;
1	operator@localhost	Operator	2026-11-22 06:43:46.367457+00
2	second@example.com	Second	2026-11-22 06:45:03.398684+00
\.
COPY public.webhook_attempts (id, delivery_id, response_code, error_message, response_body, duration_ms, created_at) FROM stdin;
1	3	\N	No connection: Connection refused.	\N	49	2026-11-22 06:44:33.070887+00
2	2	\N	No connection: Connection refused.	\N	10	2026-11-22 06:44:33.127171+00
3	1	\N	No connection: Connection refused.	\N	6	2026-11-22 06:44:33.127551+00
4	5	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:33.163989+00
5	4	\N	No connection: Connection refused.	\N	17	2026-11-22 06:44:33.151242+00
6	6	\N	No connection: Connection refused.	\N	3	2026-11-22 06:44:33.449594+00
7	7	\N	No connection: Connection refused.	\N	2	2026-11-22 06:44:33.457231+00
8	8	\N	No connection: Connection refused.	\N	2	2026-11-22 06:44:33.567745+00
9	9	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:33.89151+00
10	10	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:33.910519+00
11	11	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:34.014596+00
12	13	\N	No connection: Connection refused.	\N	8	2026-11-22 06:44:34.277623+00
13	12	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:34.323332+00
14	14	\N	No connection: Connection refused.	\N	2	2026-11-22 06:44:36.178576+00
15	4	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:37.775318+00
16	6	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:38.330013+00
17	3	\N	No connection: Connection refused.	\N	2	2026-11-22 06:44:38.882622+00
18	5	\N	No connection: Connection refused.	\N	6	2026-11-22 06:44:38.882487+00
19	1	\N	No connection: Connection refused.	\N	6	2026-11-22 06:44:38.882411+00
20	2	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:38.908533+00
21	8	\N	No connection: Connection refused.	\N	8	2026-11-22 06:44:39.483317+00
22	12	\N	No connection: Connection refused.	\N	16	2026-11-22 06:44:39.491235+00
23	7	\N	No connection: Connection refused.	\N	15	2026-11-22 06:44:39.491987+00
24	11	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:39.49656+00
25	9	\N	No connection: Connection refused.	\N	16	2026-11-22 06:44:39.490686+00
26	13	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:39.504625+00
27	10	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:39.55619+00
28	15	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:42.882148+00
29	16	\N	No connection: Connection refused.	\N	10	2026-11-22 06:44:42.911453+00
30	18	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:43.07111+00
31	17	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:43.069076+00
32	17	\N	No connection: Connection refused.	\N	2	2026-11-22 06:44:47.562117+00
33	16	\N	No connection: Connection refused.	\N	9	2026-11-22 06:44:47.564414+00
34	15	\N	No connection: Connection refused.	\N	1	2026-11-22 06:44:47.623382+00
35	18	\N	No connection: Connection refused.	\N	18	2026-11-22 06:44:49.24899+00
36	19	\N	No connection: Connection refused.	\N	1	2026-11-22 06:45:43.715785+00
37	19	\N	No connection: Connection refused.	\N	1	2026-11-22 06:45:48.40767+00
\.
COPY public.webhook_deliveries (id, webhook_id, endpoint_id, event_id, event_type, payload, status, response_code, error_message, attempt_count, round, spent, next_attempt_at, round_started_at, finished_at, created_at, waiting) FROM stdin;
14	msg_7e1bdef46763423f8d7bd264558236b0	1	\N	ping	{"event":"ping","timestamp":"2026-11-22T06:44:36.172619+00:00","data":{"object":"webhook_endpoint","id":1,"team_id":1,"url":"https://127.0.0.1:28475/events","events":["database.provisioned","database.deleted"],"status":"active","last_success_at":null,"last_failure_at":"2026-11-22 06:44:34","created_at":"2026-11-22 06:44:32"}}	failed	\N	No connection: Connection refused.	1	0	1	\N	2026-11-22 06:44:36.178576+00	2026-11-22 06:44:36.178576+00	2026-11-22 06:44:36.178576+00	f
4	msg_4aa4d8aad62a48f9a25cc11617c60ec9_2	2	2	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:48:45.229113+00	2026-11-22 06:44:32.919495+00	\N	2026-11-22 06:44:32.919495+00	t
6	msg_85b3015cdeda483c8a1b50222c00efe5_1	1	4	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:31.371231+00	2026-11-22 06:44:33.354635+00	\N	2026-11-22 06:44:33.354635+00	t
3	msg_4aa4d8aad62a48f9a25cc11617c60ec9_1	1	2	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:48:56.111132+00	2026-11-22 06:44:32.919495+00	\N	2026-11-22 06:44:32.919495+00	t
5	msg_9968f168bac84534bb236675d59fa66a_2	2	3	database.provisioning_started	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:50.377419+00	2026-11-22 06:44:33.081946+00	\N	2026-11-22 06:44:33.081946+00	t
1	msg_c6be93b8df4e44349ad82aa5525a427b_1	1	1	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:02.238677+00	2026-11-22 06:44:32.919495+00	\N	2026-11-22 06:44:32.919495+00	t
2	msg_c6be93b8df4e44349ad82aa5525a427b_2	2	1	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:06.231062+00	2026-11-22 06:44:32.919495+00	\N	2026-11-22 06:44:32.919495+00	t
8	msg_9c3be3d4bf144bd7b4bcde3844c75ff8_2	2	5	database.provisioning_started	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:02.06625+00	2026-11-22 06:44:33.453547+00	\N	2026-11-22 06:44:33.453547+00	t
12	msg_b83085cd967647219412f28bfee30dca_1	1	8	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:31.844691+00	2026-11-22 06:44:34.138598+00	\N	2026-11-22 06:44:34.138598+00	t
7	msg_85b3015cdeda483c8a1b50222c00efe5_2	2	4	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:48:47.419848+00	2026-11-22 06:44:33.354635+00	\N	2026-11-22 06:44:33.354635+00	t
11	msg_3bd62cd1a9ff42d796519bfe1e6ca485_2	2	7	database.provisioning_started	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:00.785857+00	2026-11-22 06:44:33.918609+00	\N	2026-11-22 06:44:33.918609+00	t
9	msg_fadf5fa409244963beeabbb78bd3c852_1	1	6	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:50:25.834086+00	2026-11-22 06:44:33.757968+00	\N	2026-11-22 06:44:33.757968+00	t
13	msg_b83085cd967647219412f28bfee30dca_2	2	8	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:33.921727+00	2026-11-22 06:44:34.138598+00	\N	2026-11-22 06:44:34.138598+00	t
10	msg_fadf5fa409244963beeabbb78bd3c852_2	2	6	database.provisioned	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:50:29.93249+00	2026-11-22 06:44:33.757968+00	\N	2026-11-22 06:44:33.757968+00	t
17	msg_3f57fe17ba3c42158a47b1a0eef6ecf7_1	1	10	database.deleted	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:50:07.748639+00	2026-11-22 06:44:42.967402+00	\N	2026-11-22 06:44:42.967402+00	t
16	msg_6f49c5fcdb2f4d08b75b64d67676dccd_2	2	9	database.deleted	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:48.544259+00	2026-11-22 06:44:42.716272+00	\N	2026-11-22 06:44:42.716272+00	t
15	msg_6f49c5fcdb2f4d08b75b64d67676dccd_1	1	9	database.deleted	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:14.216595+00	2026-11-22 06:44:42.716272+00	\N	2026-11-22 06:44:42.716272+00	t
18	msg_3f57fe17ba3c42158a47b1a0eef6ecf7_2	2	10	database.deleted	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:49:49.52939+00	2026-11-22 06:44:42.967402+00	\N	2026-11-22 06:44:42.967402+00	t
19	msg_943cd041501447d091d75beb703ce254_2	2	11	database.paused	\N	pending	\N	No connection: Connection refused.	2	0	2	2026-11-22 06:51:12.036706+00	2026-11-22 06:45:43.636937+00	\N	2026-11-22 06:45:43.636937+00	t
20	msg_512a7346d84e4b59a497dbede28b3a3b_1	1	12	database.provisioned	\N	pending	\N	\N	0	0	0	2026-11-22 06:46:25.489423+00	2026-11-22 06:46:25.489423+00	\N	2026-11-22 06:46:25.489423+00	f
21	msg_512a7346d84e4b59a497dbede28b3a3b_2	2	12	database.provisioned	\N	pending	\N	\N	0	0	0	2026-11-22 06:46:25.489423+00	2026-11-22 06:46:25.489423+00	\N	2026-11-22 06:46:25.489423+00	f
\.
COPY public.webhook_endpoints (id, team_id, created_by_id, url, events, last_success_at, last_failure_at, slow_failures, circuit_until, revoked_at, created_at, next_attempt_at, claimed_by, claimed_until) FROM stdin;
1	1	1	https://127.0.0.1:28475/events	{database.provisioned,database.deleted}	\N	2026-11-22 06:44:47.623382+00	0	\N	\N	2026-11-22 06:44:32.712139+00	2026-11-22 06:48:56.111132+00	\N	\N
2	1	1	https://127.0.0.1:28475/all	{}	\N	2026-11-22 06:45:48.40767+00	0	\N	\N	2026-11-22 06:44:32.783401+00	2026-11-22 06:48:45.229113+00	\N	\N
\.
COPY public.webhook_secrets (id, uuid, endpoint_id, secret_sealed, expires_at, created_at) FROM stdin;
1	c00a6bcc-1b44-47a2-985f-49b0f7463beb	1	\\x6b3100db5a8af66261284cae983f0a16ff8ad8bf7bb9d925b655791b7cb6e5e06094e8d8ad7ffac436f64d6fb0047c35850eff17cadbcc02142d254b5a7bece284de4fda243a01bcdb3640d7ba408509c1	2026-11-23 06:44:32.744938+00	2026-11-22 06:44:32.712139+00
2	2d329485-26d7-407b-896b-72b5330dcc15	1	\\x6b310004fac07fc4ee0fd9b83eec33d06394f9edac5d654a8100d43eb7bbb7c7aad2930fc418d292b19285fdb8bca28ded534dacf8d8bec3bed9ddef60f145143b7832235328d5a135b993c70044b881e4	\N	2026-11-22 06:44:32.744938+00
3	3db9f2da-cf49-4753-8139-4ce486e075db	2	\\x6b31006d356e69fae7a45754042c9d84f49077c81159e4be0ff1462215e4f701da6b9f0980b585d5a24fc69fc3251e0f81e107df65f4331827f17ea78134f68978aed9a2ac383a68339b2d214eb81725ae	\N	2026-11-22 06:44:32.783401+00
\.
COPY public.workflow_starts (id, workflow, workflow_id, input, priority, attempts, last_error, next_attempt_at, created_at, summary, signal) FROM stdin;
34	DeliverWebhook	deliver-webhook/512a7346-d84e-4b59-a497-dbede28b3a3b/1	{"event": "database.provisioned", "round": 0, "team_id": 1, "database": "1ebbca1e-79cf-4bdb-a720-bee58ca6360f", "delivery": 20, "endpoint": 1, "request_id": null}	3	0	\N	2026-11-22 06:46:27.489423+00	2026-11-22 06:46:25.489423+00	database.provisioned about database "more-0", 1ebbca1e-79cf-4bdb-a720-bee58ca6360f, to endpoint 1 of team "Operator", 1	\N
35	DeliverWebhook	deliver-webhook/512a7346-d84e-4b59-a497-dbede28b3a3b/2	{"event": "database.provisioned", "round": 0, "team_id": 1, "database": "1ebbca1e-79cf-4bdb-a720-bee58ca6360f", "delivery": 21, "endpoint": 2, "request_id": null}	3	0	\N	2026-11-22 06:46:27.489423+00	2026-11-22 06:46:25.489423+00	database.provisioned about database "more-0", 1ebbca1e-79cf-4bdb-a720-bee58ca6360f, to endpoint 2 of team "Operator", 1	\N
36	ProvisionDatabase	provision-database/193664dd-7961-4765-ab39-36985932f03e	{"round": 0, "engine": "postgres", "region": "us-east-1", "team_id": 1, "database": "193664dd-7961-4765-ab39-36985932f03e", "cancelled": false, "placement": {"name": "tsas3t7urqbdbowepp7ollk", "address": "127.0.0.1:15432", "host_id": 1}, "request_id": "req_117953008b48213576bb225f"}	1	1	\N	2026-11-22 06:46:27.526452+00	2026-11-22 06:46:25.48335+00	postgres database "more-1", team "Operator", 193664dd-7961-4765-ab39-36985932f03e	\N
37	ProvisionDatabase	provision-database/800dec75-ec18-4188-8bf9-7b424b59697c	{"round": 0, "engine": "postgres", "region": "us-east-1", "team_id": 1, "database": "800dec75-ec18-4188-8bf9-7b424b59697c", "cancelled": false, "placement": {"name": "tohp5nedqazmfarjtq5ooad", "address": "127.0.0.1:15432", "host_id": 1}, "request_id": "req_15f91afc872005dcf224df04"}	1	0	\N	2026-11-22 06:46:30.560512+00	2026-11-22 06:46:25.560512+00	postgres database "under-way", team "Operator", 800dec75-ec18-4188-8bf9-7b424b59697c	\N
\.
SELECT pg_catalog.setval('public.api_key_usage_id_seq', 2, true);
SELECT pg_catalog.setval('public.api_keys_id_seq', 2, true);
SELECT pg_catalog.setval('public.blueprint_applications_id_seq', 4, true);
SELECT pg_catalog.setval('public.blueprint_statements_id_seq', 6, true);
SELECT pg_catalog.setval('public.blueprint_versions_id_seq', 4, true);
SELECT pg_catalog.setval('public.blueprints_id_seq', 4, true);
SELECT pg_catalog.setval('public.database_usage_id_seq', 34, true);
SELECT pg_catalog.setval('public.databases_id_seq', 10, true);
SELECT pg_catalog.setval('public.databases_position_seq', 15, true);
SELECT pg_catalog.setval('public.engine_hosts_id_seq', 2, true);
SELECT pg_catalog.setval('public.events_id_seq', 15, true);
SELECT pg_catalog.setval('public.findings_id_seq', 6, true);
SELECT pg_catalog.setval('public.idempotency_keys_id_seq', 19, true);
SELECT pg_catalog.setval('public.memberships_id_seq', 2, true);
SELECT pg_catalog.setval('public.migration_id_seq', 1, true);
SELECT pg_catalog.setval('public.pool_targets_id_seq', 17, true);
SELECT pg_catalog.setval('public.query_executions_id_seq', 4, true);
SELECT pg_catalog.setval('public.query_readers_id_seq', 2, true);
SELECT pg_catalog.setval('public.teams_id_seq', 2, true);
SELECT pg_catalog.setval('public.users_id_seq', 2, true);
SELECT pg_catalog.setval('public.webhook_attempts_id_seq', 37, true);
SELECT pg_catalog.setval('public.webhook_deliveries_id_seq', 21, true);
SELECT pg_catalog.setval('public.webhook_endpoints_id_seq', 2, true);
SELECT pg_catalog.setval('public.webhook_secrets_id_seq', 3, true);
SELECT pg_catalog.setval('public.workflow_starts_id_seq', 37, true);
ALTER TABLE ONLY public.api_key_usage
    ADD CONSTRAINT api_key_usage_key_id_key UNIQUE (key_id);
ALTER TABLE ONLY public.api_key_usage
    ADD CONSTRAINT api_key_usage_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.blueprint_applications
    ADD CONSTRAINT blueprint_applications_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.blueprint_statements
    ADD CONSTRAINT blueprint_statements_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.blueprint_versions
    ADD CONSTRAINT blueprint_versions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.blueprints
    ADD CONSTRAINT blueprints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.blueprints
    ADD CONSTRAINT blueprints_uuid_key UNIQUE (uuid);
ALTER TABLE ONLY public.database_usage
    ADD CONSTRAINT database_usage_database_id_key UNIQUE (database_id);
ALTER TABLE ONLY public.database_usage
    ADD CONSTRAINT database_usage_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.databases
    ADD CONSTRAINT databases_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.databases
    ADD CONSTRAINT databases_uuid_key UNIQUE (uuid);
ALTER TABLE ONLY public.engine_hosts
    ADD CONSTRAINT engine_hosts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_uuid_key UNIQUE (uuid);
ALTER TABLE ONLY public.findings
    ADD CONSTRAINT findings_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.engine_hosts
    ADD CONSTRAINT one_address UNIQUE (engine, host, port);
ALTER TABLE ONLY public.pool_targets
    ADD CONSTRAINT one_each UNIQUE (region, engine);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT one_per_endpoint UNIQUE (event_id, endpoint_id);
ALTER TABLE ONLY public.blueprint_statements
    ADD CONSTRAINT one_per_index UNIQUE (application_id, index);
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT one_per_team UNIQUE (user_id, team_id);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT one_per_user UNIQUE (user_id, key);
ALTER TABLE ONLY public.blueprint_versions
    ADD CONSTRAINT one_per_version UNIQUE (blueprint_id, version);
ALTER TABLE ONLY public.pool_targets
    ADD CONSTRAINT pool_targets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.query_executions
    ADD CONSTRAINT query_executions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.query_readers
    ADD CONSTRAINT query_readers_database_id_key UNIQUE (database_id);
ALTER TABLE ONLY public.query_readers
    ADD CONSTRAINT query_readers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.teams
    ADD CONSTRAINT teams_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_email_key UNIQUE (email);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_attempts
    ADD CONSTRAINT webhook_attempts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_secrets
    ADD CONSTRAINT webhook_secrets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_secrets
    ADD CONSTRAINT webhook_secrets_uuid_key UNIQUE (uuid);
ALTER TABLE ONLY public.workflow_starts
    ADD CONSTRAINT workflow_starts_pkey PRIMARY KEY (id);
CREATE INDEX api_keys_of_user ON public.api_keys USING btree (user_id);
CREATE INDEX applications_of_blueprint ON public.blueprint_applications USING btree (blueprint_id);
CREATE INDEX applications_under_way ON public.blueprint_applications USING btree (database_id, id) WHERE (completed_at IS NULL);
CREATE UNIQUE INDEX blueprint_slugs ON public.blueprints USING btree (team_id, slug) WHERE ((deleted_at IS NULL) AND (NOT is_system));
CREATE INDEX blueprints_in_pages ON public.blueprints USING btree (team_id, ((- id))) WHERE (deleted_at IS NULL);
CREATE INDEX databases_deleted_held ON public.databases USING btree (team_id, destroy_at) WHERE ((status = 'deleted'::text) AND (destroyed_at IS NULL));
CREATE INDEX databases_in_order ON public.databases USING btree (team_id, ((- "position"))) WHERE (status <> 'deleted'::text);
CREATE INDEX databases_in_pool ON public.databases USING btree (engine, "position") WHERE ((team_id IS NULL) AND (destroyed_at IS NULL));
CREATE INDEX databases_on_host ON public.databases USING btree (host_id) WHERE (destroyed_at IS NULL);
CREATE INDEX events_of_database ON public.events USING btree (database_id);
CREATE INDEX events_over ON public.events USING btree (created_at) WHERE (dispatched_at IS NOT NULL);
CREATE INDEX events_to_dispatch ON public.events USING btree (id) WHERE (dispatched_at IS NULL);
CREATE UNIQUE INDEX findings_once ON public.findings USING btree (rule, subject, mark, COALESCE(host_id, (0)::bigint));
CREATE INDEX idempotency_keys_expired ON public.idempotency_keys USING btree (expires_at);
CREATE UNIQUE INDEX installation_is_one ON public.installation USING btree ((true));
CREATE INDEX memberships_of_team ON public.memberships USING btree (team_id);
CREATE INDEX query_executions_by_age ON public.query_executions USING btree (created_at);
CREATE INDEX query_executions_of_day ON public.query_executions USING btree (team_id, created_at) WHERE (counts IS NOT FALSE);
CREATE INDEX query_executions_under_way ON public.query_executions USING btree (team_id) WHERE (outcome IS NULL);
CREATE UNIQUE INDEX system_blueprint_slugs ON public.blueprints USING btree (slug) WHERE ((deleted_at IS NULL) AND is_system);
CREATE INDEX system_blueprints_in_pages ON public.blueprints USING btree (((- id))) WHERE (is_system AND (deleted_at IS NULL));
CREATE INDEX webhook_attempts_delivery_id ON public.webhook_attempts USING btree (delivery_id);
CREATE INDEX webhook_deliveries_finished ON public.webhook_deliveries USING btree (finished_at) WHERE (status <> 'pending'::text);
CREATE INDEX webhook_deliveries_in_pages ON public.webhook_deliveries USING btree (endpoint_id, id);
CREATE INDEX webhook_deliveries_pending ON public.webhook_deliveries USING btree (endpoint_id) WHERE (status = 'pending'::text);
CREATE INDEX webhook_deliveries_waiting ON public.webhook_deliveries USING btree (endpoint_id, next_attempt_at, id) WHERE waiting;
CREATE INDEX webhook_endpoints_claimed ON public.webhook_endpoints USING btree (team_id) WHERE (claimed_until IS NOT NULL);
CREATE INDEX webhook_endpoints_due ON public.webhook_endpoints USING btree (next_attempt_at) WHERE (next_attempt_at IS NOT NULL);
CREATE INDEX webhook_endpoints_of_team ON public.webhook_endpoints USING btree (team_id, id);
CREATE INDEX webhook_secrets_endpoint_id ON public.webhook_secrets USING btree (endpoint_id);
CREATE INDEX workflow_starts_due ON public.workflow_starts USING btree (next_attempt_at);
CREATE UNIQUE INDEX workflow_starts_one_start ON public.workflow_starts USING btree (workflow_id) WHERE (signal IS NULL);
ALTER TABLE ONLY public.api_key_usage
    ADD CONSTRAINT api_key_usage_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.blueprint_applications
    ADD CONSTRAINT blueprint_applications_blueprint_id_fkey FOREIGN KEY (blueprint_id) REFERENCES public.blueprints(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.blueprint_applications
    ADD CONSTRAINT blueprint_applications_database_id_fkey FOREIGN KEY (database_id) REFERENCES public.databases(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.blueprint_applications
    ADD CONSTRAINT blueprint_applications_requested_by_id_fkey FOREIGN KEY (requested_by_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE SET NULL;
ALTER TABLE ONLY public.blueprint_statements
    ADD CONSTRAINT blueprint_statements_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.blueprint_applications(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.blueprint_versions
    ADD CONSTRAINT blueprint_versions_blueprint_id_fkey FOREIGN KEY (blueprint_id) REFERENCES public.blueprints(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.blueprints
    ADD CONSTRAINT blueprints_created_by_id_fkey FOREIGN KEY (created_by_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE SET NULL;
ALTER TABLE ONLY public.blueprints
    ADD CONSTRAINT blueprints_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.database_usage
    ADD CONSTRAINT database_usage_database_id_fkey FOREIGN KEY (database_id) REFERENCES public.databases(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.databases
    ADD CONSTRAINT databases_created_by_id_fkey FOREIGN KEY (created_by_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE SET NULL;
ALTER TABLE ONLY public.databases
    ADD CONSTRAINT databases_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.engine_hosts(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.databases
    ADD CONSTRAINT databases_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_database_id_fkey FOREIGN KEY (database_id) REFERENCES public.databases(id) ON UPDATE CASCADE ON DELETE SET NULL;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.findings
    ADD CONSTRAINT findings_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.engine_hosts(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.query_executions
    ADD CONSTRAINT query_executions_database_id_fkey FOREIGN KEY (database_id) REFERENCES public.databases(id) ON UPDATE CASCADE ON DELETE SET NULL;
ALTER TABLE ONLY public.query_executions
    ADD CONSTRAINT query_executions_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.query_executions
    ADD CONSTRAINT query_executions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE SET NULL;
ALTER TABLE ONLY public.query_readers
    ADD CONSTRAINT query_readers_database_id_fkey FOREIGN KEY (database_id) REFERENCES public.databases(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_attempts
    ADD CONSTRAINT webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES public.webhook_deliveries(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.webhook_endpoints(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_event_id_fkey FOREIGN KEY (event_id) REFERENCES public.events(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_created_by_id_fkey FOREIGN KEY (created_by_id) REFERENCES public.users(id) ON UPDATE CASCADE ON DELETE SET NULL;
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE ONLY public.webhook_secrets
    ADD CONSTRAINT webhook_secrets_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.webhook_endpoints(id) ON UPDATE CASCADE ON DELETE CASCADE;
