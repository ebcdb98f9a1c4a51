// Runs the script of the documentation's page as a browser does, but for the part that draws. Prints the keys of four
// requests: two changes in a row, one with a key typed in, and one that reads.

const [origin] = process.argv.slice(2);
const script = await (await fetch(`${origin}/docs/page.js`)).text();
const { spec, requestInterceptor } = await new Promise((drawn) => {
  const load = (path) => fetch(new URL(path, origin));
  new Function("SwaggerUIBundle", "fetch", script)(drawn, load);
});
const sent = (method, headers = {}) => requestInterceptor({ method, headers }).headers["Idempotency-Key"];
const parameters = Object.values(spec.paths).flatMap((item) => Object.values(item).flatMap((one) => one.parameters));

console.log(
  JSON.stringify({
    first: sent("POST"),
    second: sent("POST"),
    typed: sent("DELETE", { "Idempotency-Key": "mine" }),
    reads: sent("GET") ?? null,
    demanded: parameters.filter(({ name, required }) => name === "Idempotency-Key" && required).length,
  }),
);
