// The blueprint that a new database begins with.
import { Choice } from "../../components/choice.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";
import { Values, valuesOf } from "./variables.js";

/**
 * What a create says of its blueprint.
 * @param {any} blueprint @param {Record<string, string>} texts
 * @returns {{ blueprint_uuid?: string, blueprint_variables?: Record<string, any> }}
 */
export function chosenBlueprint(blueprint, texts) {
  if (!blueprint) return {};
  const values = valuesOf(blueprint.variables, texts);
  return { blueprint_uuid: blueprint.uuid, ...(Object.keys(values).length > 0 && { blueprint_variables: values }) };
}

/** The same without the values of secret variables, to be shown. @param {any} blueprint @param {Record<string, string>} texts */
export function shownBlueprint(blueprint, texts) {
  const secret = Object.keys(texts).filter((name) => texts[name] && blueprint?.variables?.[name]?.secret);
  const body = chosenBlueprint(blueprint, texts);
  const masked = Object.fromEntries(secret.map((name) => [name, "…"]));
  return secret.length > 0 ? { ...body, blueprint_variables: { ...body.blueprint_variables, ...masked } } : body;
}

/**
 * A choice among the blueprints for an engine, and the fields of the variables of the one that is chosen.
 * @param {{
 *   engine: string,
 *   blueprint: any,
 *   onBlueprint: (blueprint: any) => void,
 *   texts: Record<string, string>,
 *   onTexts: (texts: Record<string, string>) => void,
 *   errors: Record<string, string>,
 * }} props
 */
export function BlueprintField({ engine, blueprint, onBlueprint, texts, onTexts, errors }) {
  const list = useList("/blueprints", { exact: true });
  const fits = list.rows?.filter((/** @type {any} */ row) => row.metadata?.dialects?.includes(engine) ?? true);
  const renamed = Object.fromEntries(Object.entries(errors).map(([name, text]) => [name.replace(/^blueprint_/, ""), text]));
  return html`
    <${Choice}
      label="Blueprint"
      list=${{ ...list, rows: fits }}
      option=${(/** @type {any} */ row) => ({ value: row.uuid, label: row.name })}
      value=${blueprint?.uuid ?? ""}
      onValue=${(/** @type {string} */ uuid) => onBlueprint(fits?.find((/** @type {any} */ row) => row.uuid === uuid) ?? null)}
      none="None"
      chosen=${blueprint?.name}
      hint="Applied as soon as the database is active."
      error=${errors.blueprint_uuid ?? renamed.variables}
    />
    ${blueprint && html`<${Values} definitions=${blueprint.variables} texts=${texts} onTexts=${onTexts} errors=${renamed} />`}
  `;
}
