// How a receiver verifies what arrives, in several languages.
import { Copy } from "../../components/copy.js";
import { html } from "../../html.js";

const SNIPPETS = [
  {
    name: "Python",
    text: `import base64
import hashlib
import hmac
import time


def is_ours_and_fresh(body: bytes, headers: dict[str, str], secret: str) -> bool:
    """By webhook-signature, no older than five minutes."""
    moment = headers["webhook-timestamp"]
    if abs(time.time() - int(moment)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{moment}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, given) for given in headers["webhook-signature"].split(" "))`,
  },
  {
    name: "Node.js",
    text: `const crypto = require("node:crypto");

function equal(a, b) {
  return a.length === b.length && crypto.timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

// By webhook-signature, no older than five minutes.
function isOursAndFresh(body, headers, secret) {
  const moment = headers["webhook-timestamp"];
  if (Math.abs(Date.now() / 1000 - Number(moment)) > 300) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const hmac = crypto.createHmac("sha256", key).update(\`\${headers["webhook-id"]}.\${moment}.\`).update(body);
  const expected = \`v1,\${hmac.digest("base64")}\`;
  return headers["webhook-signature"].split(" ").some((given) => equal(expected, given));
}`,
  },
  {
    name: "Shell, with OpenSSL",
    text: `digest() { openssl dgst -sha256 -r | cut -d ' ' -f 1; }
equal() { [ "$(printf %s "$1" | digest)" = "$(printf %s "$2" | digest)" ]; }

# is_ours_and_fresh FILE_WITH_THE_BODY WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE SECRET
is_ours_and_fresh() {
    age=$(($(date +%s) - $3))
    [ "$age" -le 300 ] && [ "$age" -ge -300 ] || return 1
    key=$(printf %s "\${5#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')
    expected="v1,$({ printf '%s.%s.' "$2" "$3"; cat "$1"; } |
        openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)"
    for given in $4; do
        if equal "$expected" "$given"; then return 0; fi
    done
    return 1
}`,
  },
];

export function Snippets() {
  return html`
    <h2>Verifying what arrives</h2>
    <p>
      Over the raw bytes of the body, before anything parses them. The headers are those of Standard Webhooks, whose libraries
      verify them too. Nothing older than five minutes is taken.
    </p>
    ${SNIPPETS.map(
      ({ name, text }) => html`<section key=${name} aria-label=${name}>
        <h3>${name} <${Copy} text=${text} what=${name} /></h3>
        <pre tabindex="0">${text}</pre>
      </section>`,
    )}
  `;
}
