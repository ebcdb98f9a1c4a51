-- A small CRM, in SQL that both engines take.
CREATE TABLE companies (
    id INTEGER NOT NULL PRIMARY KEY,
    name VARCHAR(120) NOT NULL,
    country CHAR(2) DEFAULT 'DE',
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT companies_name_key UNIQUE (name)
);

CREATE TABLE contacts (
    id INTEGER NOT NULL PRIMARY KEY,
    company_id INTEGER NOT NULL,
    email VARCHAR(254) NOT NULL,
    score DECIMAL(6, 2) DEFAULT 0.00 CHECK (score >= 0),
    notes TEXT,
    CONSTRAINT contacts_company_fk FOREIGN KEY (company_id) REFERENCES companies (id) ON DELETE CASCADE
);

CREATE INDEX contacts_email ON contacts (email);
CREATE VIEW contact_names AS
    SELECT c.id, c.email, co.name AS company FROM contacts c JOIN companies co ON co.id = c.company_id;

INSERT INTO companies (id, name) VALUES (1, 'Blum & Söhne; Ltd.'), (2, 'O''Hara -- Partners'), (3, '${name} {{name}}');
INSERT INTO contacts (id, company_id, email, score, notes)
    VALUES (1, 1, 'a@example.org', 1.50, 'first line
second line /* no comment */ # nor this'),
           (2, 2, 'b@example.org', 0, NULL);
UPDATE contacts SET score = score + 1 WHERE company_id = 2;
DELETE FROM contacts WHERE id = 2;
/* the end; really */
