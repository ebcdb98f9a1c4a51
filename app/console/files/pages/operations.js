import { Page } from "../components/page.js";
import { html } from "../html.js";
import { OperationTable } from "./operations-table.js";

export default function Operations() {
  return html`<${Page} title="Operations">
    <p>Every change that takes time, from its request to its end.</p>
    <${OperationTable} label="Operations" />
  <//>`;
}
