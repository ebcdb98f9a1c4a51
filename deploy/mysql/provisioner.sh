#!/bin/bash
# The account that Headwater uses on this MySQL server: able to provision, and no more. The image sources this once,
# at the first start, and lends it `docker_process_sql`; the statements may run again and put right what they find.

if [[ ! ${PROVISIONER_PASSWORD:-} =~ ^[A-Za-z0-9]+$ ]]; then
    echo "PROVISIONER_PASSWORD is missing, or has characters other than letters and digits" >&2
    exit 1
fi

# In the place of the certificate that the server has made itself, which carries no name. It reads them at its next
# start, which the image does when this is over.
if [[ -n ${ENGINE_CERTIFICATE:-} ]]; then
    base64 -d <<< "$ENGINE_CA" > "$MYSQL_DATA/ca.pem"
    base64 -d <<< "$ENGINE_CERTIFICATE" > "$MYSQL_DATA/server-cert.pem"
    (umask 077 && base64 -d <<< "$ENGINE_CERTIFICATE_KEY" > "$MYSQL_DATA/server-key.pem")
fi

docker_process_sql <<SQL
CREATE USER IF NOT EXISTS 'headwater_provisioner'@'%' IDENTIFIED BY '$PROVISIONER_PASSWORD';
ALTER USER 'headwater_provisioner'@'%' IDENTIFIED BY '$PROVISIONER_PASSWORD' REQUIRE SSL;
SQL

# As app.engines.mysql.administrator_grants says; a test holds the two together.
docker_process_sql <<'SQL'
GRANT CREATE USER, PROCESS, CONNECTION_ADMIN, XA_RECOVER_ADMIN, SHOW_ROUTINE ON *.* TO 'headwater_provisioner'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, TRIGGER ON `t%`.* TO 'headwater_provisioner'@'%' WITH GRANT OPTION;
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX ON `headwater`.* TO 'headwater_provisioner'@'%';
GRANT SELECT (Host, User) ON mysql.user TO 'headwater_provisioner'@'%';
GRANT SELECT (Host, Db, User) ON mysql.db TO 'headwater_provisioner'@'%';
GRANT SELECT ON performance_schema.data_locks TO 'headwater_provisioner'@'%';
GRANT SELECT ON performance_schema.events_transactions_current TO 'headwater_provisioner'@'%';
GRANT SELECT ON performance_schema.events_transactions_summary_by_user_by_event_name TO 'headwater_provisioner'@'%';
GRANT SELECT ON performance_schema.metadata_locks TO 'headwater_provisioner'@'%';
GRANT SELECT ON performance_schema.prepared_statements_instances TO 'headwater_provisioner'@'%';
GRANT SELECT ON performance_schema.status_by_user TO 'headwater_provisioner'@'%';
GRANT SELECT ON performance_schema.threads TO 'headwater_provisioner'@'%';
SQL
