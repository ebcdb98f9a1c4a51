import { OperationTable } from "../operations-table.js";
import { html } from "../../html.js";
import { DatabasePage } from "./shell.js";

/** @param {{ params: { uuid: string } }} props */
export default function Operations({ params: { uuid } }) {
  return html`<${DatabasePage} uuid=${uuid} part="/operations">
    ${() => html`<${OperationTable} label="Operations of the database" database=${uuid} />`}
  <//>`;
}
