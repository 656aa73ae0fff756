import type { JSONCoder } from "./trebuchet.js";
/** A coder that reads and writes `bigint` and all digits of a `Decimal`: `connect(url, { json: exact })`. */
export declare const exact: JSONCoder;
