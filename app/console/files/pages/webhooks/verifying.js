import { html } from "../../html.js";
import { EndpointPage } from "./frame.js";
import { Snippets } from "./snippets.js";

/** @param {import("../../router.js").PageProps} props */
export default function Verifying({ params: { id } }) {
  return html`<${EndpointPage} id=${id}>${() => html`<${Snippets} />`}<//>`;
}
