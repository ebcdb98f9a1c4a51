// The answer of a path, from the API's description.
import type { paths } from "../types/api.js";

type Root = "/api/v1";
type Full<P extends string> = `${Root}${P}`;
type Short<P> = P extends `${Root}${infer Rest}` ? Rest : never;

/** A path below /api/v1 that can be read, as the description writes it: `/databases/{uuid}`. */
export type ReadPath = { [P in keyof paths]: paths[P] extends { get: object } ? Short<P> : never }[keyof paths];

type Content<R> = R extends { 200: { content: { "application/json": infer A } } } ? A : any;

export type Answer<P extends string, M extends string> = Full<P> extends keyof paths
  ? M extends keyof paths[Full<P>]
    ? paths[Full<P>][M] extends { responses: infer R }
      ? Content<R>
      : any
    : any
  : any;
