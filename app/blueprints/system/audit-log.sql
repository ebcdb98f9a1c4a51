-- Who did what, when, and to what: rows are added and never changed.

CREATE TABLE {{audit_table}} (
    id varchar(36) PRIMARY KEY,
    happened_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    actor varchar(200) NOT NULL,
    action varchar(100) NOT NULL,
    subject_type varchar(100) NOT NULL,
    subject_id varchar(200) NOT NULL,
    request_id varchar(100),
    details text
);

CREATE INDEX {{by_subject_index}} ON {{audit_table}} (subject_type, subject_id, happened_at);
CREATE INDEX {{by_actor_index}} ON {{audit_table}} (actor, happened_at);
