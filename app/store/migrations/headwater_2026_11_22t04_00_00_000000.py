"""Taking a question's place in its team's day counts those under way too: -1 where there are as many as may be."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T04:00:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "questions under way"

_FUNCTION = """
CREATE FUNCTION take_question_place(
    for_team bigint, for_user bigint, for_database bigint, asked text, by_model text,
    most_seconds double precision, place_seconds double precision, allowance integer, at_once integer
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
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
END $$
"""


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def add_function() -> None:
        await DB.run_ddl(_FUNCTION)

    manager.add_raw(add_function)
    return manager
