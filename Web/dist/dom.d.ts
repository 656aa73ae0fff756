import type { Store } from "./trebuchet.js";
/** Calls the listener with the value of now, and with each new one. Gives what ends it. */
export declare function watch<T>(store: Store<T>, listener: (value: T) => void): () => void;
/** Shows a value as the text of an element, empty while there is none. */
export declare function show<T>(store: Store<T>, element: Node, text?: (value: NonNullable<T>) => string): () => void;
/**
 * Keeps an element for each element of an array, in its order: made by `make` when its key is new, brought up to date by `update` when
 * its value has changed, and taken away when its key is gone. What the three throw is told as any uncaught error is: a value that has no
 * element is tried again with the next change, one that was not brought up to date when it changes.
 * `make` and `update` may change the store.
 */
export declare function list<T, E extends ChildNode>(store: Store<readonly T[] | undefined>, parent: ParentNode & Node, key: (value: T) => unknown, make: (value: T) => E, update?: (element: E, value: T) => void): () => void;
