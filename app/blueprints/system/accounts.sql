-- Users, the sessions that they are logged in with, and the roles that they have.
-- Identifiers are UUIDs that the application makes; secrets are kept as digests only.

CREATE TABLE users (
    id varchar(36) PRIMARY KEY,
    email varchar(254) NOT NULL UNIQUE,
    display_name varchar(200) NOT NULL,
    password_hash varchar(255),
    email_verified_at timestamp NULL,
    disabled_at timestamp NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE roles (
    name varchar(50) PRIMARY KEY,
    description varchar(500) NOT NULL
);

CREATE TABLE user_roles (
    user_id varchar(36) NOT NULL,
    role_name varchar(50) NOT NULL,
    granted_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (user_id, role_name),
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    FOREIGN KEY (role_name) REFERENCES roles (name) ON DELETE CASCADE
);

CREATE TABLE sessions (
    token_digest char(64) PRIMARY KEY,
    user_id varchar(36) NOT NULL,
    user_agent varchar(500),
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    expires_at timestamp NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX user_roles_by_role ON user_roles (role_name);

INSERT INTO roles (name, description) VALUES ({{admin_role}}, 'May do everything.');
