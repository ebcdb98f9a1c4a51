-- A queue of jobs in a table. A worker takes one with
--   SELECT … WHERE status = 'ready' AND run_at <= CURRENT_TIMESTAMP ORDER BY priority, run_at LIMIT 1
--   FOR UPDATE SKIP LOCKED
-- and sets it to 'running'. What fails is tried again until its attempts are spent.

CREATE TABLE {{queue_table}} (
    id varchar(36) PRIMARY KEY,
    kind varchar(100) NOT NULL,
    payload text NOT NULL,
    status varchar(10) NOT NULL DEFAULT 'ready',
    priority integer NOT NULL DEFAULT 100,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT {{max_attempts}},
    run_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    locked_until timestamp NULL,
    last_error text,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    finished_at timestamp NULL,
    CHECK (status IN ('ready', 'running', 'done', 'dead')),
    CHECK (attempts <= max_attempts)
);

CREATE INDEX {{due_index}} ON {{queue_table}} (status, priority, run_at);
