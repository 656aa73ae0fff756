import type { Store } from "./trebuchet.js";
/** Calls the listener with the current value, and with each new one. Returns a function that ends the subscription. */
export declare function watch<T>(store: Store<T>, listener: (value: T) => void): () => void;
/** Shows a value as the text of an element; the text is empty while there is no value. */
export declare function show<T>(store: Store<T>, element: Node, text?: (value: NonNullable<T>) => string): () => void;
/**
 * Keeps one element for each element of an array, in array order.
 *
 * - `make` creates the element of a new key.
 * - `update` applies a changed value.
 * - The element of a removed key is removed.
 *
 * Errors of `key`, `make` and `update` are reported like uncaught errors. A value without an element is tried again at the next change, and
 * a failed `update` when its value changes. `make` and `update` may change the store.
 */
export declare function list<T, E extends ChildNode>(store: Store<readonly T[] | undefined>, parent: ParentNode & Node, key: (value: T) => unknown, make: (value: T) => E, update?: (element: E, value: T) => void): () => void;
