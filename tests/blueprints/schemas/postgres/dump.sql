--
-- PostgreSQL database dump
--

\restrict vc5OhlkmAiAparzJna4dfpwPfyceGG0UpZBaKmQyS5fvtqnYj64IzVDWbbp7PLq

-- Dumped from database version 18.6
-- Dumped by pg_dump version 18.6

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

--
-- Name: accounting; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA accounting;


ALTER SCHEMA accounting OWNER TO postgres;

--
-- Name: plain; Type: COLLATION; Schema: public; Owner: postgres
--

CREATE COLLATION public.plain (provider = libc, locale = 'C');


ALTER COLLATION public.plain OWNER TO postgres;

--
-- Name: citext; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;


--
-- Name: EXTENSION citext; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION citext IS 'data type for case-insensitive character strings';


--
-- Name: money_pair; Type: TYPE; Schema: accounting; Owner: postgres
--

CREATE TYPE accounting.money_pair AS (
	amount numeric(12,2),
	currency character(3)
);


ALTER TYPE accounting.money_pair OWNER TO postgres;

--
-- Name: email; Type: DOMAIN; Schema: public; Owner: postgres
--

CREATE DOMAIN public.email AS text
	CONSTRAINT email_check CHECK ((VALUE ~ '^[^@]+@[^@]+$'::text));


ALTER DOMAIN public.email OWNER TO postgres;

--
-- Name: float_range; Type: TYPE; Schema: public; Owner: postgres
--

CREATE TYPE public.float_range AS RANGE (
    subtype = double precision,
    multirange_type_name = public.float_multirange
);


ALTER TYPE public.float_range OWNER TO postgres;

--
-- Name: mood; Type: TYPE; Schema: public; Owner: postgres
--

CREATE TYPE public.mood AS ENUM (
    'sad',
    'ok',
    'happy',
    'ecstatic'
);


ALTER TYPE public.mood OWNER TO postgres;

--
-- Name: CAST (public.mood AS accounting.money_pair); Type: CAST; Schema: -; Owner: -
--

CREATE CAST (public.mood AS accounting.money_pair) WITH INOUT;


--
-- Name: add_person(text); Type: PROCEDURE; Schema: public; Owner: postgres
--

CREATE PROCEDURE public.add_person(IN given text)
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO people (name) VALUES (given); END $$;


ALTER PROCEDURE public.add_person(IN given text) OWNER TO postgres;

--
-- Name: added(integer, integer); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.added(a integer, b integer) RETURNS integer
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT 1;
 SELECT (a + b);
END;


ALTER FUNCTION public.added(a integer, b integer) OWNER TO postgres;

--
-- Name: fun;ction(); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public."fun;ction"() RETURNS text
    LANGUAGE plpgsql
    AS $_$
DECLARE
    found text := $inner$;$inner$;
BEGIN
    -- a comment; with ' one quote
    IF found = ';' THEN
        RETURN 'a;b';
    END IF;
    RETURN (SELECT "quo""te" FROM "semi;colon" LIMIT 1);
END;
$_$;


ALTER FUNCTION public."fun;ction"() OWNER TO postgres;

--
-- Name: old_style(integer); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.old_style(integer) RETURNS integer
    LANGUAGE plpgsql
    AS $_$BEGIN RETURN $1 + 1; END;$_$;


ALTER FUNCTION public.old_style(integer) OWNER TO postgres;

--
-- Name: touch(); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.touch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN NEW.name := trim(NEW.name); RETURN NEW; END $$;


ALTER FUNCTION public.touch() OWNER TO postgres;

--
-- Name: FUNCTION touch(); Type: COMMENT; Schema: public; Owner: postgres
--

COMMENT ON FUNCTION public.touch() IS 'Trims "names"';


--
-- Name: product(double precision); Type: AGGREGATE; Schema: public; Owner: postgres
--

CREATE AGGREGATE public.product(double precision) (
    SFUNC = float8mul,
    STYPE = double precision,
    INITCOND = '1'
);


ALTER AGGREGATE public.product(double precision) OWNER TO postgres;

--
-- Name: ===; Type: OPERATOR; Schema: public; Owner: postgres
--

CREATE OPERATOR public.=== (
    FUNCTION = int4eq,
    LEFTARG = integer,
    RIGHTARG = integer
);


ALTER OPERATOR public.=== (integer, integer) OWNER TO postgres;

--
-- Name: plain; Type: TEXT SEARCH CONFIGURATION; Schema: public; Owner: postgres
--

CREATE TEXT SEARCH CONFIGURATION public.plain (
    PARSER = pg_catalog."default" );

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR asciiword WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR word WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR numword WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR email WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR url WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR host WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR sfloat WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR version WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR hword_numpart WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR hword_part WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR hword_asciipart WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR numhword WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR asciihword WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR hword WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR url_path WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR file WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR "float" WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR "int" WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.plain
    ADD MAPPING FOR uint WITH simple;


ALTER TEXT SEARCH CONFIGURATION public.plain OWNER TO postgres;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: invoices; Type: TABLE; Schema: accounting; Owner: postgres
--

CREATE TABLE accounting.invoices (
    number integer NOT NULL,
    person integer,
    total accounting.money_pair,
    period daterange
);


ALTER TABLE accounting.invoices OWNER TO postgres;

--
-- Name: invoice_numbers; Type: SEQUENCE; Schema: accounting; Owner: postgres
--

CREATE SEQUENCE accounting.invoice_numbers
    START WITH 1000
    INCREMENT BY 5
    NO MINVALUE
    NO MAXVALUE
    CACHE 2;


ALTER SEQUENCE accounting.invoice_numbers OWNER TO postgres;

--
-- Name: invoice_numbers; Type: SEQUENCE OWNED BY; Schema: accounting; Owner: postgres
--

ALTER SEQUENCE accounting.invoice_numbers OWNED BY accounting.invoices.number;


--
-- Name: auth_user; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.auth_user (
    id integer NOT NULL,
    password character varying(128) NOT NULL,
    last_seen timestamp with time zone,
    is_superuser boolean NOT NULL,
    username character varying(150) NOT NULL,
    email text NOT NULL,
    first_name character varying(150) NOT NULL
);


ALTER TABLE public.auth_user OWNER TO postgres;

--
-- Name: auth_user_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

ALTER TABLE public.auth_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: people; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.people (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    mail public.email,
    mood public.mood DEFAULT 'ok'::public.mood,
    born date,
    initials text GENERATED ALWAYS AS ("left"(name, 1)) STORED
)
WITH (fillfactor='90');
ALTER TABLE ONLY public.people ALTER COLUMN name SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.people ALTER COLUMN mood SET STATISTICS 200;


ALTER TABLE public.people OWNER TO postgres;

--
-- Name: TABLE people; Type: COMMENT; Schema: public; Owner: postgres
--

COMMENT ON TABLE public.people IS 'Who; we know';


--
-- Name: cheerful_people; Type: VIEW; Schema: public; Owner: postgres
--

CREATE VIEW public.cheerful_people WITH (security_barrier='true') AS
 SELECT id,
    name
   FROM public.people
  WHERE (mood = 'happy'::public.mood)
  WITH LOCAL CHECK OPTION;


ALTER VIEW public.cheerful_people OWNER TO postgres;

--
-- Name: copies; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.copies (
    id integer,
    name text COLLATE pg_catalog."C"
);


ALTER TABLE public.copies OWNER TO postgres;

--
-- Name: django_migrations; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL
);


ALTER TABLE public.django_migrations OWNER TO postgres;

--
-- Name: django_migrations_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

ALTER TABLE public.django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: events; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.events (
    id uuid DEFAULT gen_random_uuid(),
    at date NOT NULL,
    kind text
)
PARTITION BY RANGE (at);


ALTER TABLE public.events OWNER TO postgres;

--
-- Name: events_2026; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.events_2026 (
    id uuid DEFAULT gen_random_uuid(),
    at date CONSTRAINT events_at_not_null NOT NULL,
    kind text
);


ALTER TABLE public.events_2026 OWNER TO postgres;

--
-- Name: events_rest; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.events_rest (
    id uuid DEFAULT gen_random_uuid(),
    at date CONSTRAINT events_at_not_null NOT NULL,
    kind text
);


ALTER TABLE public.events_rest OWNER TO postgres;

--
-- Name: people_by_mood; Type: MATERIALIZED VIEW; Schema: public; Owner: postgres
--

CREATE MATERIALIZED VIEW public.people_by_mood AS
 SELECT mood,
    count(*) AS n
   FROM public.people
  GROUP BY mood
  WITH NO DATA;


ALTER MATERIALIZED VIEW public.people_by_mood OWNER TO postgres;

--
-- Name: people_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

ALTER TABLE public.people ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.people_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: semi;colon; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public."semi;colon" (
    id integer NOT NULL,
    "quo""te" text DEFAULT ';'::text
);


ALTER TABLE public."semi;colon" OWNER TO postgres;

--
-- Name: shop_order; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.shop_order (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    total numeric(12,2) NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    tags text[] DEFAULT ARRAY[]::text[] NOT NULL,
    placed timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT shop_order_total_check CHECK ((total >= (0)::numeric))
);


ALTER TABLE public.shop_order OWNER TO postgres;

--
-- Name: shop_order_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.shop_order_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER SEQUENCE public.shop_order_id_seq OWNER TO postgres;

--
-- Name: shop_order_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.shop_order_id_seq OWNED BY public.shop_order.id;


--
-- Name: events_2026; Type: TABLE ATTACH; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.events ATTACH PARTITION public.events_2026 FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');


--
-- Name: events_rest; Type: TABLE ATTACH; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.events ATTACH PARTITION public.events_rest DEFAULT;


--
-- Name: invoices number; Type: DEFAULT; Schema: accounting; Owner: postgres
--

ALTER TABLE ONLY accounting.invoices ALTER COLUMN number SET DEFAULT nextval('accounting.invoice_numbers'::regclass);


--
-- Name: shop_order id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.shop_order ALTER COLUMN id SET DEFAULT nextval('public.shop_order_id_seq'::regclass);


--
-- Data for Name: invoices; Type: TABLE DATA; Schema: accounting; Owner: postgres
--

INSERT INTO accounting.invoices VALUES (1000, 1, '(10.50,EUR)', '[2026-01-01,2026-02-01)');


--
-- Data for Name: auth_user; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.auth_user VALUES (1, 'pbkdf2_sha256$260000$salt$hash=', NULL, false, 'ann', 'ann@example.org', '');


--
-- Data for Name: copies; Type: TABLE DATA; Schema: public; Owner: postgres
--



--
-- Data for Name: django_migrations; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.django_migrations VALUES (1, 'auth', '0001_initial', '2026-01-01 00:00:00+00');


--
-- Data for Name: events_2026; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.events_2026 VALUES ('de9e6ac3-9280-4b9f-a4d0-99aaecb91a66', '2026-01-02', 'seed');
INSERT INTO public.events_2026 VALUES ('989dbbbb-aef9-46b4-bbf7-3fa905c1d3b7', '2026-01-03', 'seed');
INSERT INTO public.events_2026 VALUES ('435aa057-9449-4f27-b0f6-a37fe350776f', '2026-01-04', 'seed');
INSERT INTO public.events_2026 VALUES ('f6d633b9-c3bd-4093-8e60-9af8187aa795', '2026-01-05', 'seed');
INSERT INTO public.events_2026 VALUES ('0a95e514-c7ef-49d6-b718-70b373364e4f', '2026-01-06', 'seed');
INSERT INTO public.events_2026 VALUES ('1da2a212-b1f4-49bc-8e93-ab7e0a42c1bc', '2026-01-07', 'seed');
INSERT INTO public.events_2026 VALUES ('812cac54-c503-482f-b635-4bacdeafe893', '2026-01-08', 'seed');
INSERT INTO public.events_2026 VALUES ('6ffc9b3a-03bc-4e84-b160-b314cb07ea2c', '2026-01-09', 'seed');
INSERT INTO public.events_2026 VALUES ('e4cdd193-d267-4927-a709-3fa788919853', '2026-01-10', 'seed');
INSERT INTO public.events_2026 VALUES ('0e261d75-6b25-456f-a280-fe8212ea5726', '2026-06-03', 'cte');
INSERT INTO public.events_2026 VALUES ('f3df4624-108f-463e-bda9-fe752a4e80ae', '2026-06-05', 'cte');
INSERT INTO public.events_2026 VALUES ('3d99ad23-3cb4-49fe-b265-9c1de902be4e', '2026-06-07', 'cte');
INSERT INTO public.events_2026 VALUES ('cf5d6192-b1f7-40f5-a7f6-65a20c63ea48', '2026-01-01', 'merged');


--
-- Data for Name: events_rest; Type: TABLE DATA; Schema: public; Owner: postgres
--



--
-- Data for Name: people; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.people OVERRIDING SYSTEM VALUE VALUES (1, 'Ada', NULL, 'ok', NULL, DEFAULT);


--
-- Data for Name: semi;colon; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public."semi;colon" VALUES (1, 'it''s; here');
INSERT INTO public."semi;colon" VALUES (2, 'back''slash; \');
INSERT INTO public."semi;colon" VALUES (3, 'dollar; ''quoted'' "$"');
INSERT INTO public."semi;colon" VALUES (4, 'with $$ inside; $other$ and $tag ');
INSERT INTO public."semi;colon" VALUES (5, 'data; ');
INSERT INTO public."semi;colon" VALUES (6, 'first and; second');
INSERT INTO public."semi;colon" VALUES (8, 'trailing backslash\');
INSERT INTO public."semi;colon" VALUES (9, '-- no comment; ');
INSERT INTO public."semi;colon" VALUES (10, '/* neither; ');


--
-- Data for Name: shop_order; Type: TABLE DATA; Schema: public; Owner: postgres
--



--
-- Name: invoice_numbers; Type: SEQUENCE SET; Schema: accounting; Owner: postgres
--

SELECT pg_catalog.setval('accounting.invoice_numbers', 1005, true);


--
-- Name: auth_user_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.auth_user_id_seq', 1, true);


--
-- Name: django_migrations_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.django_migrations_id_seq', 1, true);


--
-- Name: people_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.people_id_seq', 1, true);


--
-- Name: shop_order_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.shop_order_id_seq', 1, false);


--
-- Name: invoices invoices_person_period_key; Type: CONSTRAINT; Schema: accounting; Owner: postgres
--

ALTER TABLE ONLY accounting.invoices
    ADD CONSTRAINT invoices_person_period_key UNIQUE NULLS NOT DISTINCT (person, period);


--
-- Name: invoices invoices_pkey; Type: CONSTRAINT; Schema: accounting; Owner: postgres
--

ALTER TABLE ONLY accounting.invoices
    ADD CONSTRAINT invoices_pkey PRIMARY KEY (number);


--
-- Name: auth_user auth_user_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_pkey PRIMARY KEY (id);


--
-- Name: auth_user auth_user_username_key; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_username_key UNIQUE (username);


--
-- Name: django_migrations django_migrations_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);


--
-- Name: people people_int4range_excl; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_int4range_excl EXCLUDE USING gist (int4range(id, id, '[]'::text) WITH &&);


--
-- Name: people people_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_pkey PRIMARY KEY (id);


--
-- Name: semi;colon semi;colon_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."semi;colon"
    ADD CONSTRAINT "semi;colon_pkey" PRIMARY KEY (id);


--
-- Name: shop_order shop_order_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.shop_order
    ADD CONSTRAINT shop_order_pkey PRIMARY KEY (id);


--
-- Name: invoices_person_idx; Type: INDEX; Schema: accounting; Owner: postgres
--

CREATE INDEX invoices_person_idx ON accounting.invoices USING btree (person);


--
-- Name: auth_user_username_like; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX auth_user_username_like ON public.auth_user USING btree (username varchar_pattern_ops);


--
-- Name: people_by_mood_key; Type: INDEX; Schema: public; Owner: postgres
--

CREATE UNIQUE INDEX people_by_mood_key ON public.people_by_mood USING btree (mood);


--
-- Name: shop_order_data; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX shop_order_data ON public.shop_order USING gin (data jsonb_path_ops);


--
-- Name: shop_order_recent; Type: INDEX; Schema: public; Owner: postgres
--

CREATE UNIQUE INDEX shop_order_recent ON public.shop_order USING btree (user_id, placed DESC) INCLUDE (total) WHERE (total > (0)::numeric);


--
-- Name: people_stats; Type: STATISTICS; Schema: public; Owner: postgres
--

CREATE STATISTICS public.people_stats (dependencies) ON mood, born FROM public.people;


ALTER STATISTICS public.people_stats OWNER TO postgres;

--
-- Name: cheerful_people no_delete; Type: RULE; Schema: public; Owner: postgres
--

CREATE RULE no_delete AS
    ON DELETE TO public.cheerful_people DO INSTEAD NOTHING;


--
-- Name: semi;colon two_things; Type: RULE; Schema: public; Owner: postgres
--

CREATE RULE two_things AS
    ON DELETE TO public."semi;colon" DO ( SELECT 1 AS "?column?";
 SELECT 2 AS "?column?";
);


--
-- Name: people touched; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER touched BEFORE INSERT OR UPDATE OF name ON public.people FOR EACH ROW WHEN ((new.name IS NOT NULL)) EXECUTE FUNCTION public.touch();


--
-- Name: invoices invoices_person_fkey; Type: FK CONSTRAINT; Schema: accounting; Owner: postgres
--

ALTER TABLE ONLY accounting.invoices
    ADD CONSTRAINT invoices_person_fkey FOREIGN KEY (person) REFERENCES public.people(id) ON UPDATE CASCADE ON DELETE SET NULL;


--
-- Name: shop_order shop_order_user_fk; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.shop_order
    ADD CONSTRAINT shop_order_user_fk FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: people own_rows; Type: POLICY; Schema: public; Owner: postgres
--

CREATE POLICY own_rows ON public.people FOR SELECT USING ((name = CURRENT_USER));


--
-- Name: people; Type: ROW SECURITY; Schema: public; Owner: postgres
--

ALTER TABLE public.people ENABLE ROW LEVEL SECURITY;

--
-- Name: people_by_mood; Type: MATERIALIZED VIEW DATA; Schema: public; Owner: postgres
--

REFRESH MATERIALIZED VIEW public.people_by_mood;


--
-- PostgreSQL database dump complete
--

\unrestrict vc5OhlkmAiAparzJna4dfpwPfyceGG0UpZBaKmQyS5fvtqnYj64IzVDWbbp7PLq

