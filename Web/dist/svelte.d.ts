import type { Store } from "./trebuchet.js";
/** Returns a store in Svelte's form: `const todos = readable(list.state)`, and then `$todos`. It also accepts a part or a status. */
export declare function readable<T>(store: Store<T>): {
    subscribe(run: (value: T) => void): () => void;
};
