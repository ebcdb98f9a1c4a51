// What the console knows of the engines by itself. The types name each one: with another in the API's description, the
// check of types says what is missing here and in `snippets.js` and `editor.js`.

/** @typedef {import("./api.js").Schemas["Engine"]} Engine */

/** @type {Record<Engine, string>} */
export const ENGINES = { postgres: "PostgreSQL", mysql: "MySQL or MariaDB" };

export const ENGINE_OPTIONS = Object.entries(ENGINES).map(([value, label]) => ({ value, label }));

/** @type {Engine} */
export const USUAL_ENGINE = "postgres";

/**
 * Whether a rotation gives a new password to the same login: then no session shows which password opened it.
 * @type {Record<Engine, boolean>}
 */
export const KEEPS_LOGIN = { postgres: false, mysql: true };

/** The engine by whose words SQL is coloured that these take. @param {Engine[]} [dialects] @returns {Engine} */
export const colouredAs = (dialects = []) => (dialects.includes(USUAL_ENGINE) ? USUAL_ENGINE : (dialects[0] ?? USUAL_ENGINE));
